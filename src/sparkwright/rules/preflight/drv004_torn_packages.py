"""The installed driver packages do not belong together.

Detects: nvidia-driver-NNN, libnvidia-compute-NNN and the GPU firmware packages of that branch are installed, and one
  of them lacks the driver's version. Kernel module packages carry the kernel's version and are not compared.
Why: a bare `apt upgrade` has pulled a newer driver without its GPU firmware; after the next boot the GPU did not start
  (Xid 119, RmInitAdapter failed). What runs now is not yet touched.
Evidence: the packages with their versions.
Remedy: finish the update before the next reboot.
References: https://github.com/DoctorMasterNewb/sparkbase (580.159.03 to 580.173.02 on OTA2607);
  https://github.com/thatcooperguy/NVCheckup
"""

import re
from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.host_facts import Package
from sparkwright.rules.driver import driver_package, upstream
from sparkwright.rules.reading import gb10s, known
from sparkwright.rules.remedies import DASHBOARD
from sparkwright.rules.rule import Context

CODE = "DRV004"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "driver packages are of different versions"

_FAMILY = re.compile(r"(nvidia-firmware|libnvidia-compute)-([0-9]{3})(-.*)?", re.ASCII)


def check(context: Context) -> Iterator[Finding]:
    for facts in gb10s(context):
        driver = driver_package(facts)
        lacking = _lacking(driver, known(facts.packages) or ()) if driver else []
        if driver and lacking:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "torn update: driver packages are of different versions",
                f"{driver.name} {driver.version}; {', '.join(f'{p.name} {p.version}' for p in lacking)}",
                "an update was not finished, or `apt upgrade` pulled only half of it; the next boot may have no GPU",
                f"before the next reboot: run the update of {DASHBOARD} to its end, or sudo apt dist-upgrade",
            )


def _lacking(driver: Package, packages: tuple[Package, ...]) -> list[Package]:
    """Families of which no installed package has the driver's version: older firmware may lie beside the right one."""
    families: dict[str, list[Package]] = {}
    for package in packages:
        found = _FAMILY.fullmatch(package.name)
        if found and f"-{found[2]}" in driver.name:
            families.setdefault(found[1], []).append(package)
    wanted = upstream(driver.version)
    wrong = (members for members in families.values() if wanted not in {upstream(p.version) for p in members})
    return [members[-1] for members in wrong]
