"""Persistence mode is off.

Detects: nvidia-smi says that the persistence mode of a GB10 is disabled.
Why: without it the driver lets go of the GPU when the last program ends and starts it anew for the next, which costs
  seconds and loses clock settings. DGX OS has it on.
Evidence: nvidia-smi's line, and whether nvidia-persistenced runs.
Remedy: turn it on.
References: https://docs.nvidia.com/deploy/driver-persistence/
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.remote import repair
from sparkwright.rules.reading import gb10s, known
from sparkwright.rules.rule import Context

CODE = "DRV015"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "the GPU's persistence mode is off"


def check(context: Context) -> Iterator[Finding]:
    for facts in gb10s(context):
        driver = known(facts.driver)
        if driver and driver.persistence is False:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "the GPU's persistence mode is off",
                "nvidia-smi -q: Persistence Mode Disabled",
                "nvidia-persistenced does not run, or somebody turned it off",
                "sudo nvidia-smi -pm 1   # for good: sudo systemctl enable --now nvidia-persistenced",
                repair.persistence_fix(facts.node),
            )
