"""Nodes with memory pools of different size.

Detects: MemTotal of GB10 nodes differs by more than 1 GiB.
Why: the firmware keeps 2 or 4 GiB for the display (a BIOS setting since 2026; older BIOS versions keep more). All
  ranks of a group hold the same share, so the smallest pool decides.
Evidence: MemTotal of each node.
Remedy: the same BIOS version and setting on all.
References: https://github.com/thatcooperguy/NVCheckup (119.7 and 121.6 GiB; the BIOS setting)
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.units import GIB, gib
from sparkwright.rules.reading import known, sparks
from sparkwright.rules.rule import Context

CODE = "MEM015"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "the nodes have pools of different size"


def check(context: Context) -> Iterator[Finding]:
    pools = {facts.node: m.total for facts in sparks(context) if (m := known(facts.memory))}
    if pools and max(pools.values()) - min(pools.values()) > GIB:
        yield Finding(
            CODE,
            SEVERITY,
            ", ".join(pools),
            "the nodes have pools of different size",
            ", ".join(f"{node} {gib(total)}" for node, total in pools.items()),
            "another BIOS version, or another setting of its display reserve",
            "bring all to one BIOS version, and set the smaller display reserve in its menu",
        )
