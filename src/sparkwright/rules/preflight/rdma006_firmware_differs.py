"""The nodes' NICs run different firmware.

Detects: the newest firmware of one node's RDMA devices is another than that of another node's.
Why: everybody who runs a stable cluster keeps them equal; mixed pairs were seen at an eighth of the speed.
Evidence: the firmware of each node.
Remedy: bring the older ones up to the newest.
References: https://github.com/spark-arena/sparkrun (NCCL from 3 to 22 GB/s by equal firmware)
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.fabric import nics
from sparkwright.rules.remedies import FIRMWARE
from sparkwright.rules.rule import Context

CODE = "RDMA006"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the nodes' NICs run different firmware"


def check(context: Context) -> Iterator[Finding]:
    versions = {facts.node: sorted({d.firmware for d in nic.devices if d.firmware}) for facts, nic in nics(context)}
    told = {node: found for node, found in versions.items() if found}
    if len({tuple(found) for found in told.values()}) > 1:
        yield Finding(
            CODE,
            SEVERITY,
            ", ".join(told),
            "the NICs' firmware is not the same on all nodes",
            "; ".join(f"{node}: {', '.join(found)}" for node, found in told.items()),
            "one node was updated and another was not",
            f"on each node: {FIRMWARE}; then reboot all with the cable in",
        )
