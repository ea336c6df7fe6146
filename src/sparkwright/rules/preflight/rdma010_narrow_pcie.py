"""The NIC's PCIe link is slower or narrower than it should be.

Detects: a function of the ConnectX-7 on a GB10 whose link is below 32 GT/s or narrower than four lanes.
Why: each function has four lanes of PCIe 5 (126 Gb/s); with less the whole rail is slower: one lane of the first
  generation was reported with busbw of 2.8 GB/s.
Evidence: speed and width as sysfs tells them.
Remedy: update firmware, shut down, a minute without mains power, boot with the cable in.
References: https://github.com/DoctorMasterNewb/sparkbase
"""

from collections.abc import Iterator

from sparkwright.domain.fabric_facts import PciFunction
from sparkwright.domain.facts import Unknown
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.fabric import nics
from sparkwright.rules.reading import known, not_gb10
from sparkwright.rules.rule import Context

CODE = "RDMA010"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the NIC's PCIe link is narrow"

_SPEED, _LANES = 32.0, 4


def check(context: Context) -> Iterator[Finding]:
    for facts, nic in nics(context):
        known_gb10 = bool(known(facts.gpus)) and not not_gb10(facts)
        functions = () if isinstance(nic.functions, Unknown) else nic.functions
        narrow = [function for function in functions if known_gb10 and _is_narrow(function)]
        if narrow:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                f"the PCIe link of {narrow[0].address} is slow",
                ", ".join(f"{f.address} {f.speed_gt:g} GT/s x{f.width}" for f in narrow)
                + f"; wanted: {_SPEED:g} GT/s x{_LANES}",
                "old firmware, or a NIC that was attached while the machine ran",
                "update the firmware (fwupdmgr), shut down, a minute without mains power, boot with the cable in",
            )


def _is_narrow(function: PciFunction) -> bool:
    return 0 < function.speed_gt < _SPEED or 0 < function.width < _LANES
