"""earlyoom runs on a node of a cluster.

Detects: earlyoom is active on a GB10 of a cluster of two or more nodes. Not systemd-oomd, which Ubuntu's
  desktop brings and which looks after logins.
Why: sources contradict each other. One side: with `-m 2` it ends the engine and saves the machine from a freeze. Other
  side: it ends one rank at a peak that would have passed, and all other ranks hang. For one node the first side weighs
  more, for several it is open.
Evidence: the unit.
Remedy: know that it is there when a rank disappears.
References: https://github.com/spark-arena/sparkrun (installs it); https://github.com/bytebunkerlabs/dgx-spark-serve
  (turn it off)
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import known, sparks
from sparkwright.rules.rule import Context

CODE = "MEM008"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "a memory guard may end a rank; sources disagree on it"

_GUARD = "earlyoom.service"


def check(context: Context) -> Iterator[Finding]:
    for facts in sparks(context) if len(context.cluster.nodes) > 1 else ():
        upkeep = known(facts.upkeep)
        if upkeep and upkeep.active(_GUARD):
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "earlyoom may end a rank at a peak of memory",
                f"systemctl is-active {_GUARD}: active",
                "a guard saves one machine from a freeze, and in a cluster its kill leaves the other ranks hanging",
                "nothing by itself; when a rank disappears, look at journalctl -u earlyoom",
            )
