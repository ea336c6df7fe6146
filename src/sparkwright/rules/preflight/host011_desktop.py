"""A desktop runs on a GB10 node.

Detects: the display manager is active on a node with a GB10.
Why: desktop, browser and display take memory of the one pool, about 10 GB by one report, and GPU time (13 % of matrix
  throughput by another). Who works at the machine wants it all the same.
Evidence: the unit that is active, and what the system boots to.
Remedy: boot to multi-user.target where nobody sits at the machine.
References: https://github.com/DoctorMasterNewb/sparkbase (about 10 GB back).
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import known, sparks
from sparkwright.rules.rule import Context

CODE = "HOST011"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "a desktop runs on the node"

_UNIT = "display-manager.service"


def check(context: Context) -> Iterator[Finding]:
    for facts in sparks(context):
        upkeep = known(facts.upkeep)
        if upkeep and upkeep.active(_UNIT):
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "a desktop runs and takes memory of the pool",
                f"{_UNIT} is active; boots to {upkeep.target or 'a target that is not told'}",
                "DGX OS starts a desktop unless it was set up without one",
                "sudo systemctl set-default multi-user.target && sudo systemctl isolate multi-user.target",
            )
