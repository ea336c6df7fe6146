"""Driver 580.159.03, about which sources disagree.

Detects: kernel module 580.159.03 on a GB10.
Why: one side: it is what OTA2607 pairs and what NVIDIA's table names, and it ends a process that takes too much memory
  where others hang the machine. Other side: a leak of memory descriptors (NV_ERR_NO_MEMORY, some 160 a boot), engines
  that end with `operation not permitted`, a decode regression by one report. Where the leak shows, MEM014 tells so.
Evidence: the version.
Remedy: nothing while it works; else the paired 580.173 or later.
References: https://github.com/DoctorMasterNewb/sparkbase; forums.developer.nvidia.com 363989
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.driver import driver_versions
from sparkwright.rules.remedies import DASHBOARD
from sparkwright.rules.rule import Context

CODE = "DRV011"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "driver 580.159.03 has contested faults"


def check(context: Context) -> Iterator[Finding]:
    for node, version, _ in driver_versions(context):
        if version == "580.159.03":
            yield Finding(
                CODE,
                SEVERITY,
                node,
                f"driver {version}: paired by DGX OS, with faults that some report",
                f"kernel module {version}",
                "some saw leaks of memory descriptors and engines that died; others serve on it for weeks",
                f"leave it while it works; else the update of {DASHBOARD} to 580.173 or later",
            )
