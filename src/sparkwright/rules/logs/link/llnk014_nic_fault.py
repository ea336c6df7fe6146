"""The network card itself fails.

Detects: cards that stay in `pre-init`, DOE mailbox errors, health errors of mlx5.
Why: an unasked firmware update can leave the card without firmware; some units have a fault that shows with several
  cables.
Evidence: the kernel's lines of mlx5_core and of PCIe.
Remedy: no update tools after a hot attach; cold start; then the vendor.
References: field guide E19, E45
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LLNK014"
STATUS = "preview"
SEVERITY = Severity.BLOCK
TITLE = "the network card does not come up"
CAUSE = "nic-hardware-or-firmware-fault"
SIGNS = (
    line(r"mlx5_core.{0,80}(?:pre-init|wait_fw_init|Firmware over \d+ MS in (?:pre-)?initializing state)", LIKELY),
    line(
        r"mlx5_core.{0,80}(?:probe .{0,20}failed with error|failed with error|init_one).{0,20}-(?:110|12|5|16)\b",
        LIKELY,
    ),
    line(r"DOE mailbox", POSSIBLE),
    line(r"mlx5_core.{0,60}(?:health compromised|synd 0x[1-9a-f]|device's health|fatal sensor)", LIKELY),
    near(r"mlnx-fw-updater", r"brick|pre-init|error -110|is dead", sure=LIKELY, within=4),
)
FIX = (
    "sudo apt-mark hold mlnx-fw-updater   # on all nodes",
    "shut down, a minute without mains power, start; if it stays: the vendor",
)
EXPLAINS = ("fabric-link-down", "nccl-socket-fallback-no-rdma")
