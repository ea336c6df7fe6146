"""Driver packages that do not belong on a GB10.

Detects: a package of a server or NVSwitch driver, of the branch 570, or of a DKMS server build is installed.
Why: they replace or shadow parts of the driver that DGX OS pairs; updates then leave a mixture.
Evidence: the packages.
Remedy: remove them, and run the update of DGX OS.
References: https://github.com/thatcooperguy/NVCheckup (packages to flag).
"""

import re
from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.reading import gb10s, known
from sparkwright.rules.remedies import DASHBOARD
from sparkwright.rules.rule import Context

CODE = "DRV005"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "driver packages of another product are installed"

_FOREIGN = re.compile(
    r"nvidia-driver-[0-9]{3}-server(-open)?|nvidia-driver-5[0-7][0-9].*|nvidia-dkms-[0-9]{3}(-open)?-server.*"
    r"|nvidia-fabricmanager-[0-9]{3}|nvidia-nvswitch-[0-9]{3}",
    re.ASCII,
)


def check(context: Context) -> Iterator[Finding]:
    for facts in gb10s(context):
        found = [p for p in known(facts.packages) or () if _FOREIGN.fullmatch(p.name)]
        if found:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "driver packages of other machines are installed",
                ", ".join(f"{p.name} {p.version}" for p in found),
                "installed by hand from a guide for servers, or by a script that does not know GB10",
                f"sudo apt remove {' '.join(p.name for p in found)}; then the update of {DASHBOARD}",
            )
