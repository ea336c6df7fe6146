"""Write the pages of findings and causes: what `sparkwright explain` prints, and an index.

`make site` calls it. The pages are not in git: one page for each family of checks and of causes.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields
from itertools import groupby
from pathlib import Path

from sparkwright.checks.compat.table import ENGINES, CompatibilityRow, read_table
from sparkwright.cli.explain_pages import CodePage, code_pages

NOTE = "<!-- Written by scripts/docs/docs_rules.py from CHECKS tables and causes/*.toml; do not edit. -->"
HEAD = """# Findings and causes by code

`block` stops `up`; `override` stops it unless `--force REASON` is given, which is recorded; `warn` and `info` do not
stop it. A cause that a log shows is named by `diagnose`; what is `info` there is harmless and never blamed. Codes are
never reused. `sparkwright explain CODE` prints the same. [compatibility.md](compatibility.md) has the table behind the
COMPAT codes.
"""
TABLE = """# What is known to work

Engine x version x architecture x quantization on GB10 (sm_121), from src/sparkwright/checks/compat/data. A row holds
where a recipe meets all in its first column. `plan` and `up` refuse what is blocked (COMPAT001) and warn of what
is degraded (COMPAT002); disputed rows only inform. `sparkwright recipes show NAME` has the rows of a recipe. The date
is the source's where it has one, else the month in which it was read.
"""


def main(arguments: Sequence[str]) -> int:
    target = Path(arguments[0])
    target.mkdir(parents=True, exist_ok=True)
    for name, text in rule_texts().items():
        (target / name).write_text(text)
    return 0


def rule_texts() -> dict[str, str]:
    """File name -> text."""
    made = {"README.md": rule_index(), "compatibility.md": "\n".join([NOTE, TABLE, *compatibility()])}
    return made | {name: family([*group]) for name, group in groupby(code_pages().values(), key=file_of)}


def file_of(page: CodePage) -> str:
    """`check-driver-and-gpu.md`, `log-container-and-image.md`."""
    name = page.family.removeprefix("log: ")
    return f"{'log' if page.cause else 'check'}-{name.replace(' ', '-').lower()}.md"


def family(found: Sequence[CodePage]) -> str:
    name = found[0].family.removeprefix("log: ")
    kind = "Causes that logs show" if found[0].cause else "Findings"
    return "\n".join([NOTE, f"# {kind}: {name}\n", *map(section, found)])


def section(page: CodePage) -> str:
    parts = dict(page.parts)
    urls, line, why = (parts.pop(name, "") for name in ("See", "Log line", "Why"))
    cause = f"`{page.cause}`, " if page.cause else ""
    kind = f"({cause}{page.severity}{', preview' if page.status == 'preview' else ''})"
    body = [f"## {page.code}\n", f"**{page.title}** {kind}{': ' + why if page.cause else ''}\n"]
    body += [f"A log line: `` {line} ``\n"] if line else []
    body += [f"{name}: {text.rstrip('.')}.\n" for name, text in parts.items() if name != "Cause"]
    body += [f"Why: {why.rstrip('.')}.\n"] if why and not page.cause else []
    body += [f"Cause: {parts['Cause'].rstrip('.')}.\n"] if "Cause" in parts else []
    body += ["```\n" + "\n".join(page.fix) + "\n```\n"] if page.fix else []
    return "\n".join([*body, *([f"See {', '.join(f'<{url}>' for url in urls.split())}\n"] if urls else [])])


def rule_index() -> str:
    return "\n".join([NOTE, HEAD, *(line for line in families())])


def families() -> Iterator[str]:
    for name, group in groupby(code_pages().values(), key=lambda page: page.family):
        found = [*group]
        logs = bool(found[0].cause)
        yield f"## {name[:1].upper()}{name[1:]}\n"
        yield "| code | severity | finds |" + (" cause |\n|---|---|---|---|" if logs else "\n|---|---|---|")
        for page in found:
            cause = f" `{page.cause}` |" if logs else ""
            yield f"| [{page.code}]({file_of(page)}#{page.code.lower()}) | {page.severity} | {page.title} |{cause}"
        yield ""


def compatibility() -> Iterator[str]:
    for name in ENGINES:
        table = read_table(name)
        yield f"## {table.engine}\n\n| holds for | verdict | reason | instead | source, date |\n|---|---|---|---|---|"
        yield from (f"| {' | '.join(map(table_cell, row_cells(row)))} |" for row in table.rows)
        yield ""


def row_cells(row: CompatibilityRow) -> tuple[str, ...]:
    """The cells of a row: its conditions on a recipe, and its verdict."""
    said = {"verdict", "reason", "alternative", "otherwise", "source", "date"}
    asks = {
        f.name: getattr(row, f.name) for f in fields(row) if f.name not in said and getattr(row, f.name) != f.default
    }
    asked = {name: value for name, value in asks.items() if value}
    other = f". Other side: {row.otherwise}" if row.otherwise else ""
    verdict = "disputed" if row.otherwise else row.verdict
    holds = "; ".join(f"{name} {condition(value)}" for name, value in asked.items())
    return holds, f"**{verdict}**", row.reason + other, row.alternative, f"{row.source}, {row.date}"


def condition(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {condition(one)}" for name, one in value.items())
    if isinstance(value, tuple):
        return " or ".join("(not given)" if one == "" else "(any)" if one == "*" else str(one) for one in value)
    return str(value)


def table_cell(words: str) -> str:
    return words.replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
