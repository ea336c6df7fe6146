"""mlnx-fw-updater is installed and not held.

Detects: the package mlnx-fw-updater is installed and apt may update it.
Why: its update flashes the ConnectX-7 at once: 28.45.4028 to 28.47.1088 left NICs dead (pre-init, error -110), which
  only a repair cured.
Evidence: the package and its version.
Remedy: hold it; flash NIC firmware only by fwupd and on purpose.
References: https://github.com/DoctorMasterNewb/sparkbase; https://github.com/guardkit/dgx-spark
"""

import re
from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.remote import repair
from sparkwright.rules.reading import gb10s, known
from sparkwright.rules.rule import Context

CODE = "DRV006"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the NIC's firmware may be flashed unasked"

_UPDATER = re.compile(r"mlnx-fw-updater.*")


def check(context: Context) -> Iterator[Finding]:
    for facts in gb10s(context):
        loose = [p for p in known(facts.packages) or () if _UPDATER.fullmatch(p.name) and not p.held]
        if loose:
            names = [package.name for package in loose]
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "an upgrade may flash the NIC unasked",
                ", ".join(f"{p.name} {p.version} is not held" for p in loose),
                "the package's installation flashes the ConnectX-7; such a flash has left NICs dead",
                f"sudo apt-mark hold {' '.join(names)}",
                repair.hold_fix(facts.node, names),
            )
