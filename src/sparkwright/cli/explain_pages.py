"""What there is to say of each code: from its cause's file, the docstring of its rule, or the source of other checks.

`sparkwright explain` prints it, scripts/docs_rules.py writes it into docs/rules.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from sparkwright.causes.cause import LogCause
from sparkwright.causes.load import families
from sparkwright.causes.whole_log.catalog import WHOLE_LOG
from sparkwright.checks.catalog import CHECKS
from sparkwright.domain.check import Check

HEADING = re.compile(r"^(Detects|Why|Evidence|Remedy|References):\s*", re.MULTILINE)
# Planner, engines and `up` find these while they work; they are no rule files.
_ELSEWHERE = {"FAB": "sparkwright.planner", "ENG": "sparkwright.engines", "SUP": "sparkwright.supervision"}
_FAMILY = {
    **dict.fromkeys(("HOST", "TIME"), "host"),
    **dict.fromkeys(("DRV", "GPU"), "driver and GPU"),
    "MEM": "memory",
    **dict.fromkeys(("FAB", "NET", "RDMA"), "fabric"),
    "DOCK": "Docker",
    **dict.fromkeys(("DISK", "FILE", "MODEL"), "storage and models"),
    "SEC": "security",
    **dict.fromkeys(("REC", "RCP", "PAR", "ENG"), "recipe and flags"),
    "COMPAT": "compatibility",
    "DEEP": "deep check",
    "SUP": "supervision",
    **dict.fromkeys(("PORT", "RANK"), "deployment"),
    "DOOR": "gateway",
}
_NAME = re.compile(r"(?<!\{)\{(\w+)\}(?!\})")
_HEADS = {"cause": "Why", "evidence": "Evidence", "remedy": "Remedy"}
_FIELDS = ("code", "severity", "subject", "title", "evidence", "cause", "remedy")


@dataclass(frozen=True, slots=True)
class Page:
    """All that there is to say of a code.

    parts: heading -> text. Of causes that logs show: cause, the key of the vocabulary; fix, steps and commands, with
    `<name>` for what depends on the case.
    """

    code: str
    title: str
    family: str
    severity: str
    status: str
    summary: str = ""
    parts: Mapping[str, str] = field(default_factory=dict)
    cause: str = ""
    fix: tuple[str, ...] = ()


@cache
def pages() -> Mapping[str, Page]:
    """Code -> page; checks and planner first, then the causes that logs tell; each in the order of its codes."""
    found = [*map(_check, CHECKS), *_elsewhere()]
    logs = [_log(cause, family) for family, causes in families().items() for cause in causes]
    logs += [_log(rule.CAUSE, "hangs and silences") for rule in WHOLE_LOG]
    ordered = [*sorted(found, key=_place), *sorted(logs, key=lambda page: page.code)]
    return {page.code: page for page in ordered}


def _place(page: Page) -> tuple[int, str]:
    known = list(dict.fromkeys(_FAMILY.values()))
    return (known.index(page.family) if page.family in known else len(known)), page.code


def _family(code: str) -> str:
    prefix = code.rstrip("0123456789")
    return _FAMILY.get(prefix, prefix.lower())


def _check(check: Check) -> Page:
    parts = {"Detects": check.detects, "Why": check.why, "Cause": check.cause, "See": " ".join(check.see)}
    given = {name: text for name, text in parts.items() if text}
    fix = (check.fix.replace("{node}", "<node>"),) if check.fix else ()
    return Page(check.code, check.title, _family(check.code), str(check.severity), check.status, "", given, "", fix)


def _log(cause: LogCause, family: str) -> Page:
    parts = {
        "Why": cause.why,
        "Log line": _example(cause),
        "Brings about": ", ".join(cause.consequences),
        "See": " ".join(cause.see),
    }
    given = {name: text for name, text in parts.items() if text}
    fix = tuple(_NAME.sub(r"<\1>", step).replace("{{", "{").replace("}}", "}") for step in cause.fix)
    severity = str(cause.severity)
    return Page(cause.code, cause.title, f"log: {family}", severity, cause.status, "", given, cause.key, fix)


def _example(cause: LogCause) -> str:
    """The first of a single line, else the first line of the first."""
    lines = [text.strip().split("\n") for text in cause.fires]
    return next((only[0] for only in lines if len(only) == 1), lines[0][0] if lines else "")


def _told(doc: str) -> tuple[str, dict[str, str]]:
    """The first paragraph, and the text below each heading."""
    summary, _, rest = doc.strip().partition("\n\n")
    parts = HEADING.split(rest)[1:]
    return _unwrapped(summary), {n: _unwrapped(text) for n, text in zip(parts[::2], parts[1::2], strict=True)}


def _unwrapped(text: str) -> str:
    return " ".join(line.strip() for line in text.strip().splitlines())


def _elsewhere() -> Iterator[Page]:
    """What docstrings say of a code, and the findings that are made with it."""
    for prefix, package in _ELSEWHERE.items():
        trees = [ast.parse(path.read_text(encoding="utf-8")) for path in _sources(files(package))]
        said = dict(reversed([pair for tree in trees for pair in _documented(tree, prefix)]))
        made = dict(reversed([pair for tree in trees for pair in _made(tree, prefix)]))
        for code in sorted({*said, *made}):
            yield _page(code, said.get(code, ""), made.get(code, {}))


def _sources(package: Traversable) -> Iterator[Traversable]:
    for path in sorted(package.iterdir(), key=str):
        if path.is_dir() and path.joinpath("__init__.py").is_file():
            yield from _sources(path)
        elif path.name.endswith(".py"):
            yield path


def _page(code: str, said: str, made: Mapping[str, str]) -> Page:
    """Where the title is mostly filled in by the case, what the docstring says is the title."""
    own = made.get("title", "").strip()
    title, detects = (said, "") if said and (not own or "..." in own) else (own, said)
    told = {"Detects": detects} | {_HEADS[name]: made.get(name, "") for name in _HEADS}
    parts = {name: text for name, text in told.items() if text.strip(" .")}
    return Page(code, title, _family(code), made.get("severity", "override or warn"), "stable", "", parts)


def _documented(tree: ast.Module, prefix: str) -> Iterator[tuple[str, str]]:
    """`CODE: words.` at the beginning of a docstring, `CODE words,` in a list of codes."""
    for node in ast.walk(tree):
        text = ast.get_docstring(node) if isinstance(node, ast.Module | ast.FunctionDef) else None
        pattern = rf"(?<!-)({prefix}[0-9]{{3}})(?! to | and | are )(?:: ([^.]+)| ([a-z][^,.]+))[,.]"
        for match in re.finditer(pattern, text or ""):
            yield match[1], _unwrapped(match[2] or match[3])


def _made(tree: ast.Module, prefix: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Finding("CODE", severity, subject, title, ...) as written in the source."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding":
            given = dict(zip(_FIELDS, node.args, strict=False)) | {k.arg: k.value for k in node.keywords if k.arg}
            told = {name: _words(value) for name, value in given.items()}
            if told.get("code", "").startswith(prefix):
                yield told["code"], told | {"severity": _severity(given.get("severity"))}


def _severity(node: ast.expr | None) -> str:
    """One, or both of a choice; a variable is what exact data make an override and a neighbour's a warning."""
    if isinstance(node, ast.IfExp):
        return f"{_severity(node.body)} or {_severity(node.orelse)}"
    return node.attr.lower() if isinstance(node, ast.Attribute) else "override or warn"


def _words(node: ast.expr) -> str:
    """A constant as it is, an f-string with `...` for what is filled in, of two ways to say it the first."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "..." for part in node.values)
    if isinstance(node, ast.BinOp):
        return _words(node.left) + _words(node.right)
    if isinstance(node, ast.IfExp):
        return _words(node.body)
    return str(node.value) if isinstance(node, ast.Constant) else "..."
