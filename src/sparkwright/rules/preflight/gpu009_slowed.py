"""The hardware holds the GPU's clocks down now.

Detects: nvidia-smi names a hardware slowdown, thermal or power brake, or a thermal slowdown by software, as active.
Why: the GPU runs slower than it could, and with it every rank of a group.
Evidence: the reasons that are active.
Remedy: cool it; the supplied power adapter and its own wall socket.
References: https://docs.nvidia.com/deploy/nvidia-smi/ (clocks event reasons).
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import known, nodes
from sparkwright.rules.rule import Context

CODE = "GPU009"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the hardware holds the GPU's clocks down"


def check(context: Context) -> Iterator[Finding]:
    for facts in nodes(context):
        driver = known(facts.driver)
        if driver and driver.slowdowns:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "the hardware holds the GPU's clocks down",
                f"nvidia-smi -q: {', '.join(driver.slowdowns)} active",
                "heat, or a power supply that gives less than is asked of it",
                "give it air; use the adapter that came with it (240 W), plugged into the wall",
            )
