"""Driver and GPU firmware are of different versions.

Detects: the loaded kernel module and the GSP firmware that the GPU runs are both known and differ.
Why: an update that was cut short or done by a bare `apt upgrade` leaves such a pair; the GPU then fails at the next
  boot or under load.
Evidence: both versions.
Remedy: run the update to its end, and reboot.
References: https://github.com/DoctorMasterNewb/sparkbase; https://github.com/thatcooperguy/NVCheckup
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import gpu_may_be_used, known
from sparkwright.rules.remedies import DASHBOARD
from sparkwright.rules.rule import Context

CODE = "DRV003"
STATUS = "stable"
SEVERITY = Severity.OVERRIDE
TITLE = "driver and GSP firmware are not a pair"

_UPDATE = "sudo apt update && sudo apt dist-upgrade && sudo fwupdmgr refresh && sudo fwupdmgr upgrade && sudo reboot"


def check(context: Context) -> Iterator[Finding]:
    for facts in context.facts.values():
        driver = known(facts.driver)
        if driver and driver.torn is True and gpu_may_be_used(context, facts.node):
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "torn update: driver and GPU firmware differ",
                f"kernel module {driver.version}, GSP firmware {driver.gsp_firmware}",
                "an update was not finished, or `apt upgrade` pulled only half of it",
                f"update through {DASHBOARD}, or: {_UPDATE}",
            )
