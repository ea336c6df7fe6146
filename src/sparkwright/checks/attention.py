"""The findings that still need attention: neither ignored by the owner nor present at an earlier check."""

from collections.abc import Iterable, Mapping, Sequence

from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import Finding
from sparkwright.domain.unknown import Unknown
from sparkwright.domain.values import dataclass, field

# Counters and log lines that stay until the next boot, whatever was done about them.
EVENTS = frozenset(("GPU004", "GPU010", "HOST015", "HOST021", "HOST023", "MEM013", "MEM014", "RDMA011", "RDMA014"))

# Codes that are gone: another one covers their defect since.
FORMER: Mapping[str, str] = {"FILE001": "MODEL004", "FILE002": "MODEL005"}


@dataclass(frozen=True, slots=True)
class Attention:
    """findings: in the order given. ignored: by their codes. events: key -> first seen, of all, for the next check.

    old: events of this boot that an earlier check has shown, each with the time of that check.
    """

    findings: tuple[Finding, ...]
    ignored: tuple[Finding, ...] = ()
    old: tuple[tuple[Finding, float], ...] = ()
    events: Mapping[str, float] = field(default_factory=dict)


def attention(
    findings: Iterable[Finding],
    facts: Mapping[str, NodeFacts],
    ignore: Sequence[str] = (),
    seen: Mapping[str, float] | None = None,
    now: float = 0.0,
) -> Attention:
    """seen: events that earlier checks have shown. What stops a start is never ignored and never old."""
    left_out = {FORMER.get(code, code) for code in ignore}
    fresh: list[Finding] = []
    ignored: list[Finding] = []
    old: list[tuple[Finding, float]] = []
    events: dict[str, float] = {}
    for one in findings:
        key = _event(one, facts)
        if one.severity.stops:
            fresh.append(one)
        elif one.code in left_out:
            ignored.append(one)
        elif key and key in (seen or {}):
            events[key] = (seen or {})[key]
            old.append((one, events[key]))
        else:
            events |= {key: now} if key else {}
            fresh.append(one)
    return Attention(tuple(fresh), tuple(ignored), tuple(old), events)


def _event(finding: Finding, facts: Mapping[str, NodeFacts]) -> str:
    """The mark that distinguishes an event from the next of its kind; '' for a state, and if the boot is unknown."""
    there = facts.get(finding.subject)
    if finding.code not in EVENTS or there is None or isinstance(there.identity, Unknown):
        return ""
    return f"{finding.code} {finding.subject} {there.identity.boot_id} {finding.evidence}"
