"""A driver from before GB10.

Detects: kernel module older than 580 on a node with a GB10 (or an unknown GPU) whose GPU the recipe may use.
Why: sm_121 needs CUDA 13, which needs driver 580; older ones do not know the chip.
Evidence: the version of the loaded module.
Remedy: update DGX OS as a whole.
References: https://github.com/thatcooperguy/NVCheckup (below 580 or CUDA 12: unsupported on GB10).
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.driver import driver_versions
from sparkwright.rules.remedies import DASHBOARD
from sparkwright.rules.rule import Context

CODE = "DRV002"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the driver is older than 580"


def check(context: Context) -> Iterator[Finding]:
    for node, version, major in driver_versions(context):
        if major < 580:
            yield Finding(
                CODE,
                SEVERITY,
                node,
                f"driver {version} is too old for GB10",
                f"kernel module {version}; wanted: 580.142 or a later paired 580",
                "GB10 (sm_121) needs CUDA 13 and with it driver 580",
                f"update through {DASHBOARD}, then reboot",
            )
