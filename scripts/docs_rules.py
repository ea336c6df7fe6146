"""Writes docs/rules/: one page per rule from its docstring, and a table of all codes. `--check`: fails when stale."""

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from sparkwright.rules.catalog import RULES
from sparkwright.rules.rule import Rule

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "sparkwright"
TARGET = ROOT / "docs" / "rules"
NOTE = "<!-- Written by scripts/docs_rules.py from the rules' docstrings; do not edit. -->"
HEADING = re.compile(r"^(Detects|Why|Evidence|Remedy|References):\s*", re.MULTILINE)
# Planner and engines find these while they work; they are no rule files.
ELSEWHERE = {"FAB": [SOURCE / "planner" / "fabric_findings.py"], "ENG": sorted((SOURCE / "engines").glob("*.py"))}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a page is not as it would be")
    wanted, check = pages(), parser.parse_args().check
    stale = sorted(name for name in {*wanted, *there()} if wanted.get(name) != there().get(name))
    if check and stale:
        print(f"docs/rules is stale: {', '.join(stale)}; run `python scripts/docs_rules.py`", file=sys.stderr)
    elif not check:
        write(wanted)
        print(f"docs/rules: {len(wanted)} pages, {len(stale)} changed")
    return 1 if check and stale else 0


def there() -> dict[str, str]:
    return {path.name: path.read_text() for path in TARGET.glob("*.md")}


def write(wanted: dict[str, str]) -> None:
    TARGET.mkdir(parents=True, exist_ok=True)
    for path in TARGET.glob("*.md"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (TARGET / name).write_text(text)


def pages() -> dict[str, str]:
    """File name -> text."""
    return {"README.md": index()} | {f"{rule.CODE}.md": page(rule) for rule in RULES}


def page(rule: Rule) -> str:
    """The docstring with its headings as headings."""
    summary, _, rest = (rule.__doc__ or "").strip().partition("\n\n")
    parts = HEADING.split(rest)[1:]
    body = [f"## {name}\n\n{unwrapped(text)}\n" for name, text in zip(parts[::2], parts[1::2], strict=True)]
    facts = f"Severity: **{rule.SEVERITY}**. Status: {rule.STATUS}. {summary}"
    return "\n".join([NOTE, f"# {rule.CODE}: {rule.TITLE}\n", f"{facts}\n", *body])


def unwrapped(text: str) -> str:
    return " ".join(line.strip() for line in text.strip().splitlines())


def index() -> str:
    rows = [f"| [{r.CODE}]({r.CODE}.md) | {r.SEVERITY} | {r.TITLE} | {r.STATUS} |" for r in sorted_rules()]
    return "\n".join(
        [
            f"{NOTE}\n# Findings by code\n",
            "`block` stops `up`; `override` stops it unless `--force REASON` is given, which is recorded; `warn` and "
            "`info` do not stop it. Codes are never reused.\n",
            "| code | severity | finds | status |\n|---|---|---|---|",
            *rows,
            "\n## Found by the planner (FAB) and by the engines' own checks (ENG)\n",
            "| code | finds |\n|---|---|",
            *(f"| {code} | {title} |" for code, title in others()),
            "",
        ]
    )


def sorted_rules() -> list[Rule]:
    return sorted(RULES, key=lambda rule: rule.CODE)


def others() -> list[tuple[str, str]]:
    """(code, what it finds): what a docstring says of a code, else the title with which it is first used."""
    trees = [(prefix, ast.parse(path.read_text())) for prefix, paths in ELSEWHERE.items() for path in paths]
    titles = [pair for prefix, tree in trees for pair in titled(tree, prefix)]
    told = [pair for prefix, tree in trees for pair in documented(tree, prefix)]
    return sorted((dict(reversed(titles)) | dict(reversed(told))).items())


def documented(tree: ast.Module, prefix: str) -> Iterator[tuple[str, str]]:
    """`CODE: words.` at the beginning of a docstring, `CODE words,` in a list of codes."""
    for node in ast.walk(tree):
        text = ast.get_docstring(node) if isinstance(node, ast.Module | ast.FunctionDef) else None
        for match in re.finditer(rf"(?<!-)({prefix}[0-9]{{3}})(?! to )(?:: ([^.]+)| ([a-z][^,.]+))[,.]", text or ""):
            yield match[1], unwrapped(match[2] or match[3])


def titled(tree: ast.Module, prefix: str) -> Iterator[tuple[str, str]]:
    """Finding("CODE", severity, subject, title, ...) as written in the source."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding":
            first = node.args[0] if len(node.args) >= 4 else None
            if isinstance(first, ast.Constant) and str(first.value).startswith(prefix):
                yield str(first.value), words(node.args[3])


def words(node: ast.expr) -> str:
    """A constant as it is, an f-string with `...` for what is filled in."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "..." for part in node.values)
    return str(node.value) if isinstance(node, ast.Constant) else "..."


if __name__ == "__main__":
    sys.exit(main())
