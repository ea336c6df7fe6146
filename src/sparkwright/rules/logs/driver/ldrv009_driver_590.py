"""The 590 driver branch deadlocks with CUDA graphs on GB10.

Detects: driver 590 together with graphs that hang.
Why: a defect of that branch on GB10; NVIDIA does not support it there.
Evidence: the driver's version and a hang in capture or replay; it works with 580.
Remedy: driver 580.142 or later of the 580 branch.
References: seed 002; gb10.md A2
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LDRV009"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "driver 590 deadlocks CUDA graphs on GB10"
CAUSE = "driver-590-cudagraph-deadlock-gb10"
SIGNS = (
    near(
        r"driver.{0,40}\b59\d\b|\b59\d(?:\.\w+)* .{0,20}driver",
        r"graphs?\b.{0,30}deadlock|graph capture (?:hangs|is stuck|freezes)|deadlock.{0,30}graph|(?:hangs|stuck"
        r"|freezes).{0,30}graph capture",
        sure=LIKELY,
        within=3,
    ),
    near(
        r"Driver Version: 59\d\.",
        r"NVIDIA GB10",
        r"shared memory broadcast block|RPC call to \w+ timed out|deadlock",
        sure=POSSIBLE,
        within=2000,
    ),
    line(r"driver 59\d\b.{0,60}(?:deadlock|hang|stuck|死锁|卡住)", LIKELY),
)
FIX = (
    "nvidia-smi --query-gpu=driver_version --format=csv,noheader   # on every node",
    "go back to the 580 branch (DGX Dashboard, or the exact packages), hold it, reboot",
    "until then: --enforce-eager (SGLang: --disable-cuda-graph)",
)
EXPLAINS = ("cuda-graph-multinode-collective-deadlock",)
