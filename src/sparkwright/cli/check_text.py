"""What a check found, as text: one entry for what several nodes share, and a last line that sums up."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

import click

from sparkwright.app.check import Checked
from sparkwright.cli.columns import fold
from sparkwright.cli.text import COLORS
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.units import duration

_INDENT = 14
_ORDER = tuple(Severity)


def shown(findings: Sequence[Finding], least: Severity) -> list[Finding]:
    """Those that weigh at least so much."""
    return [one for one in findings if _ORDER.index(one.severity) <= _ORDER.index(least)]


def entries_text(findings: Sequence[Finding], nodes: Collection[str] = ()) -> str:
    """Worst first as they come; what is the same on several nodes is said once. nodes: which ones are all."""
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for one in findings:
        groups.setdefault((one.code, one.severity, one.cause), []).append(one)
    return "\n".join(line for group in groups.values() for line in _entry(group, nodes))


def _entry(group: Sequence[Finding], nodes: Collection[str]) -> Iterator[str]:
    first = group[0]
    head = f"{first.severity.upper():<8} {first.code}"
    for number, (title, subjects) in enumerate(_by_text((one.subject, one.title) for one in group).items()):
        lead = head if not number else " " * len(head)
        line = fold(f"{lead}  {_named(subjects, nodes)}: {title}", len(head) + 2)
        yield click.style(lead, fg=COLORS[first.severity], bold=True) + line[len(lead) :]
    for label in ("evidence", "cause"):
        yield from _lines(label, [(one.subject, getattr(one, label)) for one in group], nodes)
    yield from _lines("remedy", [(one.subject, _remedy(one, len(group) > 1)) for one in group], nodes)
    yield from _lines("--fix", [(one.subject, one.fix.says if one.fix else "") for one in group], nodes)


def _remedy(finding: Finding, several: bool) -> str:
    """Where several nodes need it, what is the same on each is to read the same."""
    here = f"on {finding.subject}: "
    several = several and finding.remedy.startswith(here)
    return f"on each: {finding.remedy.removeprefix(here)}" if several else finding.remedy


def _lines(label: str, told: Sequence[tuple[str, str]], nodes: Collection[str]) -> Iterator[str]:
    """What all say, once; else each text with the subjects that say it."""
    by_text = _by_text(told)
    by_text.pop("", None)
    alone = len(by_text) == 1 and all(text for _, text in told)
    for number, (text, subjects) in enumerate(by_text.items()):
        where = "" if alone else f"{_named(subjects, nodes)}: "
        yield fold(f"    {f'{label}:' if not number else '':<9} {where}{text}", _INDENT)


def _by_text(told: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Text -> the subjects that say it, each once; a subject may be several nodes (`a, b`)."""
    found: dict[str, dict[str, None]] = {}
    for subject, text in told:
        found.setdefault(text, {}).update(dict.fromkeys(subject.split(", ")))
    return {text: list(subjects) for text, subjects in found.items()}


def _named(subjects: Sequence[str], nodes: Collection[str]) -> str:
    return f"all {len(nodes)} nodes" if len(nodes) > 2 and set(subjects) == set(nodes) else ", ".join(subjects)


def summary(checked: Checked, least: Severity = Severity.INFO) -> str:
    """The last line of a check: how many nodes answered and how fast, what was found, what --fix can mend."""
    answered, findings = checked.asked - len(checked.lost), checked.findings
    nodes = "all " if answered == checked.asked else f"{answered} of "
    told = [f"{nodes}{checked.asked} nodes answered in {duration(checked.seconds)}: {_counts(findings)}"]
    if hidden := len(findings) - len(shown(findings, least)):
        told.append(f"{hidden} not shown (--severity info)")
    if fixes := len({(one.code, one.fix) for one in findings if one.fix}):
        told.append(f"`sparkwright check --fix` mends {fixes}")
    return "; ".join(told)


def _counts(findings: Sequence[Finding]) -> str:
    counted = Counter(one.severity for one in findings)
    each = ", ".join(f"{counted[severity]} {severity}" for severity in Severity if counted[severity])
    return f"{len(findings)} finding{'' if len(findings) == 1 else 's'} ({each})" if findings else "no findings"
