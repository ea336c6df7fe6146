"""A node that may suspend.

Detects: sleep targets of systemd are not masked on a GB10. With a desktop, whose idle timer uses them, it is a
  warning; else info.
Why: a GB10 that suspends ends all ranks and often does not come back: serving looks idle to a desktop.
Evidence: the targets that are not masked.
Remedy: mask them.
References: https://github.com/thatcooperguy/NVCheckup (suspend failure of DGX Spark); systemd.special(7).
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.facts.upkeep import SLEEP_TARGETS
from sparkwright.remote import repair
from sparkwright.rules.reading import known, sparks
from sparkwright.rules.rule import Context

CODE = "HOST012"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the node may go to sleep"


def check(context: Context) -> Iterator[Finding]:
    for facts in sparks(context):
        upkeep = known(facts.upkeep)
        awake = [u.name for name in SLEEP_TARGETS if upkeep and (u := upkeep.units.get(name)) and u.load == "loaded"]
        if upkeep and awake:
            yield Finding(
                CODE,
                SEVERITY if upkeep.active("display-manager.service") else Severity.INFO,
                facts.node,
                "the node may go to sleep",
                f"not masked: {', '.join(awake)}",
                "DGX OS leaves sleep to the desktop's idle timer",
                f"sudo systemctl mask {' '.join(awake)}",
                repair.mask_fix(facts.node, awake),
            )
