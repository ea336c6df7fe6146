"""The kernel reports a fault of the NIC.

Detects: lines of this boot's kernel log in which mlx5_core cannot initialise the NIC (`pre-init`, error -110) or loses
  its firmware; and `DOE mailbox` errors. PCIe errors are HOST021's.
Why: an unasked-for update by mlnx-fw-updater bricked NICs so; with three cables in two machines had dead ports. The
  line about insufficient power on the slot (27 W) is printed at full speed too, and is not blamed.
Evidence: the line, and how often it came.
Remedy: shut down, a minute without mains power; if it stays so, the maker has to mend it.
References: https://github.com/DoctorMasterNewb/sparkbase; NVIDIA developer forum 365584
"""

import re
from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import known, simulated
from sparkwright.rules.rule import Context

CODE = "RDMA014"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the kernel reports a fault of the NIC"

_FAULT = re.compile(
    r"mlx5_core .*(pre-init|wait_fw_init|firmware over \d+ MS|failed with error -(110|12|5)\b|error -110"
    r"|firmware (fatal|internal) error|health poll failed|health compromised)|\bDOE\b.*\bmailbox",
    re.IGNORECASE,
)


def check(context: Context) -> Iterator[Finding]:
    for facts in context.facts.values() if not simulated(context) else ():
        log = known(facts.kernel_log)
        notes = log.matching(_FAULT) if log else ()
        if notes:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "the kernel reports a fault of the ConnectX-7",
                f"kernel: {notes[0].text}" + (f" ({notes[0].count} times)" if notes[0].count > 1 else ""),
                "broken or half-written firmware, or a fault of the NIC",
                f"shut {facts.node} down and take it off mains power for a minute; if it stays, ask the maker "
                "(and: sudo apt-mark hold mlnx-fw-updater)",
            )
