"""mstflint on a freshly attached ConnectX-7 crashes the kernel.

Detects: an oops with mstflint's module in the trace.
Why: the tool reads the card's configuration space while the hot-plug handler removes it (seen on 6.17.0-1032).
Evidence: the call trace.
Remedy: reboot; read the firmware's version from sysfs instead.
References: gb10.md E18, A2
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, near

CODE = "LDRV021"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "mstflint crashed the kernel after a hot plug"
CAUSE = "mstflint-hotplug-kernel-oops"
SIGNS = (
    near(
        r"\bOops\b|Unable to handle kernel|Internal error",
        r"mstflint_access|mst_pciconf|mstflint",
        sure=CERTAIN,
        within=40,
    ),
    near(r"mstflint_access|\bmstflint\b", r"pci_bus_read_config_dword", sure=LIKELY, within=40),
)
FIX = (
    "reboot {node} with the cable in",
    "cat /sys/class/infiniband/*/fw_ver   # the firmware's version without mstflint",
)
EXPLAINS: tuple[str, ...] = ()
