"""Growing segments of PyTorch's allocator: sources contradict each other.

Detects: PYTORCH_CUDA_ALLOC_CONF (or PYTORCH_ALLOC_CONF) with expandable_segments:True and driver 580.159.03.
Why: two sides. With True others have 6 to 7 GiB more room (GLM-5.3, DeepSeek-V4). With False the kernel log's 0x51
allocation failures of this driver went from 163 to 1 a boot for one owner.
Evidence: the variable, the driver.
Remedy: where the kernel log has many 0x51 lines, expandable_segments:False.
References: field guide B5, H2 (MIA, REE, VLR, BYT against AID, MPF)
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.compat.reading import served_on_gb10, variables
from sparkwright.rules.driver import driver_versions
from sparkwright.rules.rule import Context

CODE = "RCP021"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "growing segments on this driver: sources contradict each other"
_VARIABLES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
_DRIVER = "580.159.03"


def check(context: Context) -> Iterator[Finding]:
    env = variables(context)
    name = next((n for n in _VARIABLES if "expandable_segments:true" in env.get(n, "").lower()), "")
    nodes = [node for node, version, _ in driver_versions(context) if version == _DRIVER]
    if served_on_gb10(context) and name and nodes:
        yield Finding(
            CODE,
            SEVERITY,
            f"env.{name}",
            "growing segments on this driver: sources contradict each other",
            f"{name}={env[name]}; driver {_DRIVER} on {', '.join(nodes)}",
            "they gave 6 to 7 GiB more room to some; without them another had 1 instead of 163 failures 0x51 a boot",
            "where the kernel log has many 0x51 lines: expandable_segments:False",
        )
