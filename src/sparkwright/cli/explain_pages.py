"""The page of each code: from the row of its CHECKS table, or from its cause's file.

`sparkwright explain` prints it; scripts/docs/docs_rules.py writes it for the site.
"""

import re
from collections.abc import Mapping
from functools import cache

from sparkwright.causes.cause import LogCause
from sparkwright.causes.load import families, whole_log
from sparkwright.checks import supervision
from sparkwright.checks.attention import FORMER as FORMER
from sparkwright.checks.catalog import CHECKS
from sparkwright.domain.check import Check
from sparkwright.domain.values import dataclass, field
from sparkwright.engines import findings as engines
from sparkwright.planner import fabric_findings

# Prefix of a code -> family, in the order of the pages
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
_FIELD = re.compile(r"(?<!\{)\{(\w+)\}(?!\})")  # `{node}` in a text, but not `{{node}}`


@dataclass(frozen=True, slots=True)
class CodePage:
    """The page that `explain` prints for a code.

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
def code_pages() -> Mapping[str, CodePage]:
    """Code -> page; checks and planner first, then the causes that logs show; each in the order of its codes."""
    found = map(_page_of_check, (*CHECKS, *fabric_findings.CHECKS, *engines.CHECKS, *supervision.CHECKS))
    logs = [_page_of_cause(cause, family) for family, causes in families().items() for cause in causes]
    logs += [_page_of_cause(cause, "hangs and silences") for cause in whole_log().values()]
    place = {family: number for number, family in enumerate(dict.fromkeys(_FAMILY.values()))}
    checks = sorted(found, key=lambda page: (place.get(page.family, len(place)), page.code))
    return {page.code: page for page in (*checks, *sorted(logs, key=lambda page: page.code))}


def _page_of_check(check: Check) -> CodePage:
    texts = check.texts
    parts = {"Detects": texts.detects, "Why": texts.why, "Cause": texts.cause, "See": " ".join(texts.see)}
    parts |= {"Formerly": ", ".join(code for code, now in FORMER.items() if now == check.code)}
    given = {name: text for name, text in parts.items() if text}
    fix = (texts.fix.replace("{node}", "<node>"),) if texts.fix else ()
    prefix = check.code.rstrip("0123456789")
    family = _FAMILY.get(prefix, prefix.lower())
    return CodePage(check.code, check.title, family, str(check.severity), texts.status, parts=given, fix=fix)


def _page_of_cause(cause: LogCause, family: str) -> CodePage:
    # Shown is the first example of a single line, else the first line of the first example
    lines = [text.strip().split("\n") for text in cause.fires]
    parts = {
        "Why": cause.why,
        "Log line": next((only[0] for only in lines if len(only) == 1), lines[0][0] if lines else ""),
        "Consequences": ", ".join(cause.consequences),
        "See": " ".join(cause.see),
    }
    given = {name: text for name, text in parts.items() if text}
    fix = tuple(_FIELD.sub(r"<\1>", step).replace("{{", "{").replace("}}", "}") for step in cause.fix)
    return CodePage(
        cause.code,
        cause.title,
        f"log: {family}",
        str(cause.severity),
        cause.status,
        parts=given,
        cause=cause.key,
        fix=fix,
    )
