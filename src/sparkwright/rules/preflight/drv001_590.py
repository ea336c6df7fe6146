"""Driver of the 590 branch on a GB10.

Detects: kernel module 590.x or 595.x on a node with a GB10 (or an unknown GPU) whose GPU the recipe may use.
Why: one owner of two nodes reports a confirmed deadlock in CUDA-graph capture on 590.x; the branch is not supported on
  GB10, and it keeps the pages of ended CUDA processes. Other side: a large CUDA allocation was measured to work on it,
  and 580.159.03 has contested faults of its own. Hence an override and no block.
Evidence: the version of the loaded module.
Remedy: go back to the paired 580 driver of DGX OS; never a bare `apt upgrade`.
References: https://conselara.dev/tags/vllm/ (`Stay on 580.x`); https://github.com/thatcooperguy/NVCheckup
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.driver import driver_versions
from sparkwright.rules.remedies import DASHBOARD
from sparkwright.rules.rule import Context

CODE = "DRV001"
STATUS = "stable"
SEVERITY = Severity.OVERRIDE
TITLE = "driver 590.x or 595.x deadlocks in CUDA-graph capture"


def check(context: Context) -> Iterator[Finding]:
    for node, version, major in driver_versions(context):
        if 590 <= major < 600:
            yield Finding(
                CODE,
                SEVERITY,
                node,
                f"driver {version} is known to deadlock",
                f"kernel module {version}; wanted: 580.142 or a later paired 580",
                "CUDA-graph capture hangs on 590.x and 595.x with GB10, without an error line",
                f"install the driver that DGX OS pairs: the update of {DASHBOARD}, then reboot",
            )
