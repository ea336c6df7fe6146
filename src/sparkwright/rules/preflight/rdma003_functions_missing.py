"""The ConnectX-7 is not, or not wholly, on the PCI bus.

Detects: a GB10 in a cluster that has fewer than four functions of the NIC on the bus.
Why: two cages are two functions on each of two PCI domains. None: the hot-plug handler has taken the NIC off (no
  cable at boot, or the peer went away). Two: one domain is missing, and with it half of the bandwidth.
Evidence: the functions that are there.
Remedy: seat the cable and reboot; the handler can be told that a cable is in.
References: https://github.com/guardkit/dgx-spark; NVIDIA's DGX Spark hardware overview
"""

from collections.abc import Iterator

from sparkwright.domain.facts import Unknown
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.fabric import nics, rails
from sparkwright.rules.reading import known, not_gb10
from sparkwright.rules.rule import Context

CODE = "RDMA003"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "functions of the NIC are missing on the PCI bus"

_FUNCTIONS = 4


def check(context: Context) -> Iterator[Finding]:
    for facts, nic in nics(context):
        functions = nic.functions
        if isinstance(functions, Unknown) or not known(facts.gpus) or not_gb10(facts):
            continue
        elsewhere = not functions and rails(facts)  # ports without a function: they are not on this bus
        if len(functions) < _FUNCTIONS and not elsewhere:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                f"{len(functions) or 'none'} of the NIC's {_FUNCTIONS} PCI functions {_verb(len(functions))} there",
                ", ".join(function.address for function in functions) or "no network function of vendor 15b3",
                "the hot-plug handler took the NIC off the bus: no cable at boot, or the peer's end went down",
                "seat the cable on both nodes and reboot both with it in "
                "(without a reboot: sudo mtk-hotplug-handler.sh plug-in, which leaves the speed capped)",
            )


def _verb(count: int) -> str:
    return "is" if count == 1 else "are"
