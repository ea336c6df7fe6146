"""Findings as text: one entry for what several nodes share."""

from collections.abc import Collection, Iterable, Iterator, Sequence

import click

from sparkwright.cli.columns import fold
from sparkwright.domain.finding import Finding, Severity

COLORS = {Severity.BLOCK: "red", Severity.OVERRIDE: "red", Severity.WARN: "yellow", Severity.INFO: "blue"}
_INDENT = 14


def severity_word(severity: Severity) -> str:
    """`override` is an error on screens: `up` refuses it until --force."""
    return "error" if severity is Severity.OVERRIDE else severity


def findings_text(findings: Sequence[Finding], nodes: Collection[str] = (), fixes: bool = False) -> str:
    """Worst first as they come: code, subject, title, then evidence, cause and remedy where there are any.

    What several nodes share is printed once. nodes: which ones are all. fixes: also what `check --fix` would do.
    """
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for one in findings:
        groups.setdefault((one.code, one.severity, one.cause), []).append(one)
    return "\n".join(line for group in groups.values() for line in _entry(group, nodes, fixes))


def _entry(group: Sequence[Finding], nodes: Collection[str], fixes: bool) -> Iterator[str]:
    first = group[0]
    head = f"{severity_word(first.severity).upper():<8} {first.code}"
    for number, (title, subjects) in enumerate(_by_text((one.subject, one.title) for one in group).items()):
        lead = head if not number else " " * len(head)
        line = fold(f"{lead}  {_named(subjects, nodes)}: {title}", len(head) + 2)
        yield click.style(lead, fg=COLORS[first.severity], bold=True) + line[len(lead) :]
    for label in ("evidence", "cause"):
        yield from _lines(label, [(one.subject, getattr(one, label)) for one in group], nodes)
    yield from _lines("remedy", [(one.subject, _remedy(one, len(group) > 1)) for one in group], nodes)
    if fixes:
        yield from _lines("--fix", [(one.subject, one.fix.says if one.fix else "") for one in group], nodes)


def _remedy(finding: Finding, several: bool) -> str:
    """Where several nodes need it, what is the same on each is to read the same."""
    here = f"on {finding.subject}: "
    several = several and finding.remedy.startswith(here)
    return f"on each: {finding.remedy.removeprefix(here)}" if several else finding.remedy


def _lines(label: str, told: Sequence[tuple[str, str]], nodes: Collection[str]) -> Iterator[str]:
    """The text of all, once; else each text with its subjects."""
    by_text = _by_text(told)
    by_text.pop("", None)
    alone = len(by_text) == 1 and all(text for _, text in told)
    for number, (text, subjects) in enumerate(by_text.items()):
        where = "" if alone else f"{_named(subjects, nodes)}: "
        yield fold(f"    {f'{label}:' if not number else '':<9} {where}{text}", _INDENT)


def _by_text(told: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Text -> its subjects, each once; a subject may be several nodes (`a, b`)."""
    found: dict[str, dict[str, None]] = {}
    for subject, text in told:
        found.setdefault(text, {}).update(dict.fromkeys(subject.split(", ")))
    return {text: list(subjects) for text, subjects in found.items()}


def _named(subjects: Sequence[str], nodes: Collection[str]) -> str:
    return f"all {len(nodes)} nodes" if len(nodes) > 2 and set(subjects) == set(nodes) else ", ".join(subjects)
