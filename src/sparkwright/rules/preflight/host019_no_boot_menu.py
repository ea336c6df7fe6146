"""GRUB waits for nobody, on a node whose driver is built at install time.

Detects: GRUB_TIMEOUT=0 in a GB10's /etc/default/grub, and a package nvidia-dkms-* is installed.
Why: a DKMS build that fails half way has left machines without a bootable kernel; without a boot menu the older kernel
  cannot be chosen, and recovery needs a stick.
Evidence: the setting, and the package.
Remedy: give the menu some seconds before the next update.
References: https://github.com/DoctorMasterNewb/sparkbase (panic at boot after an update).
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import known, sparks
from sparkwright.rules.rule import Context

CODE = "HOST019"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "no boot menu to go back with"


def check(context: Context) -> Iterator[Finding]:
    for facts in sparks(context):
        upkeep = known(facts.upkeep)
        dkms = next((p for p in known(facts.packages) or () if p.name.startswith("nvidia-dkms-")), None)
        if upkeep and dkms and upkeep.grub_timeout == 0:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "no boot menu, should a driver build fail",
                f"GRUB_TIMEOUT=0, {dkms.name} {dkms.version} is installed",
                "Ubuntu hides the menu; a DKMS driver is built anew with each kernel",
                "GRUB_TIMEOUT=5 in /etc/default/grub, then sudo update-grub",
            )
