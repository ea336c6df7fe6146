"""A driver newer than the branches that DGX OS ships.

Detects: kernel module 600 or later on a GB10.
Why: 610.43 was seen to work with CUDA 13.3, with secure boot off or a key enrolled; hardly anybody measures or serves
  on it, so faults of it are in no list.
Evidence: the version.
Remedy: the driver that DGX OS pairs.
References: https://github.com/DoctorMasterNewb/sparkbase (610.43).
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.driver import driver_versions
from sparkwright.rules.remedies import DASHBOARD
from sparkwright.rules.rule import Context

CODE = "DRV017"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "a driver of a branch that DGX OS does not have"


def check(context: Context) -> Iterator[Finding]:
    for node, version, major in driver_versions(context):
        if major >= 600:
            yield Finding(
                CODE,
                SEVERITY,
                node,
                f"driver {version} is of a branch that hardly anybody serves on",
                f"kernel module {version}; DGX OS pairs 580",
                "installed by hand",
                f"the paired driver: the update of {DASHBOARD}",
            )
