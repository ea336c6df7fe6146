"""An ASUS GX10 with a BIOS from before 0105.

Detects: the BIOS version of an ASUS GX10 says a number below 0105. A warning where the NIC's second cage is in use.
Why: up to 0104 the second cage runs at half its speed; 0103 brought the USB-PD firmware that cured link speed and heat.
  Other makers count their BIOS versions in other ways and are not judged.
Evidence: the version.
Remedy: ASUS' update, by fwupd.
References: https://github.com/DoctorMasterNewb/sparkbase; https://github.com/guardkit/dgx-spark
"""

import re
from collections.abc import Iterator

from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.fabric import rails
from sparkwright.rules.reading import known, sparks
from sparkwright.rules.remedies import FIRMWARE
from sparkwright.rules.rule import Context

CODE = "HOST025"
STATUS = "preview"
SEVERITY = Severity.WARN
TITLE = "an ASUS GX10 with an early BIOS"
_BIOS = re.compile(r"GX10DGX\.([0-9]{4})\b.*", re.ASCII)
_GOOD = 105


def check(context: Context) -> Iterator[Finding]:
    for facts in sparks(context):
        board = known(facts.board)
        told = _BIOS.fullmatch(board.bios) if board else None
        if told and int(told[1]) < _GOOD:
            yield Finding(
                CODE,
                SEVERITY if _second_cage(facts) else Severity.INFO,
                facts.node,
                f"BIOS {told[1]} of the GX10 is an early one",
                f"bios_version: {told[0]}; wanted: GX10DGX.{_GOOD:04} or later",
                "the machine's firmware was not updated since it was set up; the second cage is slow with it",
                f"{FIRMWARE}; then reboot all nodes with the cable in",
            )


def _second_cage(facts: NodeFacts) -> bool:
    return any(rail.port.device.endswith("f1") for rail in rails(facts))
