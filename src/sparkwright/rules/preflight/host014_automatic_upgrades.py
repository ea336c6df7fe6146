"""Automatic upgrades with a driver that is not held.

Detects: unattended-upgrades is active on a GB10, and a package of the NVIDIA driver is installed and not held.
Why: an `apt upgrade` that is not DGX OS's own update has pulled a driver without its GPU firmware; the GPU did not
  start at the next boot. By default only security updates come by themselves, so this is worth knowing and no defect.
Evidence: the service, and the package.
Remedy: hold the driver while you serve, and update through the DGX Dashboard.
References: https://github.com/DoctorMasterNewb/sparkbase; https://wiki.debian.org/UnattendedUpgrades
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.driver import driver_package
from sparkwright.rules.reading import known, sparks
from sparkwright.rules.rule import Context

CODE = "HOST014"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "automatic upgrades may replace the driver"


def check(context: Context) -> Iterator[Finding]:
    for facts in sparks(context):
        upkeep, driver = known(facts.upkeep), driver_package(facts)
        if upkeep and driver and not driver.held and upkeep.active("unattended-upgrades.service"):
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "automatic upgrades may replace the driver",
                f"unattended-upgrades is active, {driver.name} {driver.version} is not held",
                "Ubuntu's automatic upgrades know nothing of the pairing that DGX OS makes",
                f"sudo apt-mark hold {driver.name}   # and unhold it before an update through the DGX Dashboard",
            )
