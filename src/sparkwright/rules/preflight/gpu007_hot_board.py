"""An ACPI thermal zone at 93 °C or more.

Detects: a thermal zone of type acpitz of a GB10 is at 93 °C or more.
Why: the board runs some 10 °C above the GPU and trips near 95 °C: the machine then switches off under load, without a
  line in any log.
Evidence: the zone and its temperature.
Remedy: air, dust, thermal paste; a clock limit on all nodes helps for the time being.
References: https://github.com/guardkit/dgx-spark; forums.developer.nvidia.com 378315 (power-off under load).
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import known, sparks
from sparkwright.rules.rule import Context

CODE = "GPU007"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the board is hot"

_HOT = 93.0


def check(context: Context) -> Iterator[Finding]:
    for facts in sparks(context):
        board = known(facts.board)
        degrees = board.zones.get("acpitz", 0.0) if board else 0.0
        if degrees >= _HOT:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                f"the board is at {degrees:g} °C",
                f"/sys/class/thermal, hottest acpitz zone: {degrees:g} °C; it trips near 95 °C",
                "little air, dust, or thermal paste that has aged; the GPU's own temperature is some 10 °C lower",
                "give it air; for the time being sudo nvidia-smi -lgc 200,2000 on all nodes (lost at reboot)",
            )
