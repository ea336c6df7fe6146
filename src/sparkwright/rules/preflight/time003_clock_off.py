"""The node's clock is off from this machine's.

Detects: the node's clock differs from that of the machine that asks by 60 s or more, the time that asking took in its
  favour.
Why: leases, ages of files and start times are compared across machines; certificates may count as not yet valid. Which
  of the two clocks is wrong is not known from this alone.
Evidence: by how much at least.
Remedy: let both follow a time source.
References: timedatectl(1).
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import nodes, offset
from sparkwright.rules.rule import Context

CODE = "TIME003"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the node's clock is off"

_OFF = 60.0


def check(context: Context) -> Iterator[Finding]:
    for facts in nodes(context):
        between = offset(facts)
        gap = max(between[0], -between[1]) if between else 0.0
        if between and gap >= _OFF:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "the clock is off from this machine's",
                f"{'ahead' if between[0] > 0 else 'behind'} by {gap:.0f} s or more",
                "one of the two follows no time source, or was set by hand",
                "timedatectl on both; sudo timedatectl set-ntp true on the one that is wrong",
            )
