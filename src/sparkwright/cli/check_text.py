"""What a check found: which of it is shown, and the last line that sums up."""

import time
from collections import Counter
from collections.abc import Sequence

from sparkwright.app.check import Checked
from sparkwright.app.fix import Outcome, Result
from sparkwright.cli.columns import fold
from sparkwright.cli.findings import severity_word
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.units import duration

_ORDER = tuple(Severity)


def shown(findings: Sequence[Finding], least: Severity) -> list[Finding]:
    """Those that weigh at least so much."""
    return [one for one in findings if _ORDER.index(one.severity) <= _ORDER.index(least)]


def quiet_lines(checked: Checked) -> list[str]:
    """A line for each event that an earlier check has shown, and one for all that is ignored."""
    lines = [
        fold(f"seen before  {one.code}  {one.subject}: {one.evidence} (first seen {_date(at)})", 13)
        for one, at in checked.old
    ]
    codes = sorted({one.code for one in checked.ignored})
    return [*lines, *([f"{len(checked.ignored)} ignored: {', '.join(codes)}"] if codes else [])]


def _date(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))


def summary(checked: Checked, least: Severity = Severity.INFO, tried: Sequence[Result] = ()) -> str:
    """The last line of a check: how many nodes answered and how fast, what was found, what --fix can do about it.

    tried: how a --fix just went.
    """
    answered, findings = checked.asked - len(checked.lost), checked.findings
    if not answered:
        return f"none of {checked.asked} nodes answered: nothing was checked"
    nodes = "all " if answered == checked.asked else f"{answered} of "
    told = [f"{nodes}{checked.asked} nodes answered in {duration(checked.seconds)}: {_counts(findings)}"]
    if hidden := len(findings) - len(shown(findings, least)):
        told.append(f"{hidden} not shown (--severity info)")
    # What is left for --fix, and what it could not do.
    left = {(one.code, one.fix): one.fix.root for one in findings if one.fix}
    went = {(one.wanted.code, one.wanted.fix): one for one in tried}
    new = [root for key, root in left.items() if key not in went]
    hand = [went[key].wanted for key in left if key in went and went[key].outcome is Outcome.BY_HAND]
    asked = sum(one.rights.asks for one in hand)
    as_root = f" ({sum(new)} as root)" if any(new) else ""
    lines = [f"`sparkwright check --fix` fixes {len(new)}{as_root}"] if new else []
    lines += [f"{asked} need root: run with --ask-become-pass"] if asked else []
    return "; ".join([*told, *lines + ([f"{len(hand) - asked} need root: by hand"] if len(hand) > asked else [])])


def _counts(findings: Sequence[Finding]) -> str:
    counted = Counter(one.severity for one in findings)
    each = ", ".join(f"{counted[severity]} {severity_word(severity)}" for severity in Severity if counted[severity])
    return f"{len(findings)} finding{'' if len(findings) == 1 else 's'} ({each})" if findings else "no findings"
