"""The hot-plug handler is armed on a node of a cluster.

Detects: /etc/nvidia/cx7-hotplug-enabled on a node of a cluster of several.
Why: when a node reboots, the handler takes the NIC of its peer off the PCI bus, and it does not always come back; a
  cable that is seated later gives 13 Gb/s (RDMA001). It is there to save about 18 W without a cable, and on one
  machine alone it should stay: there is a report of the fan stopping at idle with the NIC off.
Evidence: the marker.
Remedy: move it away on all nodes, then reboot all of them together with the cable in.
References: package dgx-spark-mlnx-hotplug; NVIDIA developer forum 378945
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.facts.nic import MARKER
from sparkwright.rules.fabric import nics
from sparkwright.rules.rule import Context

CODE = "RDMA002"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the NIC's hot-plug handler is armed in a cluster"


def check(context: Context) -> Iterator[Finding]:
    for facts, nic in nics(context):
        if nic.armed:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "a reboot of the peer takes this node's NIC away",
                f"{MARKER} is there",
                "DGX OS takes the NIC off the PCI bus when its link goes down, to save about 18 W",
                f"on all nodes: sudo mv {MARKER} {MARKER}.off; then reboot all together with the cable in",
            )
