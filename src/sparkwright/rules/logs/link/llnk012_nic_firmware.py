"""The firmware of the network card is old, or differs between the nodes.

Detects: ~15.5 GB/s of all_gather, and reports of ConnectX firmware that throttles or does not match.
Why: firmware before 28.45.4028 of spring 2026 throttles; some versions trained PCIe at Gen1 or x2. Card and SBIOS must
  be the same on all nodes.
Evidence: the figure; a version below 28.45.4028.
Remedy: update all nodes, then switch them off and on.
References: field guide A6, B6, E48
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LLNK012"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the firmware of the network card is old or differs"
CAUSE = "nic-firmware-outdated-or-mismatched"
SIGNS = (
    line(r"Avg bus bandwidth\s+:\s+15\.\d", LIKELY),
    line(r"(?:busbw|bus bandwidth|all_gather).{0,45}\b1[56](?:\.\d+)? ?(?-i:GB/s)", LIKELY),
    near(
        r"firmware|\bBIOS\b|\bFW\b.{0,20}28\.4",
        r"ConnectX|CX-7 |mlx5|28\.4\d\.\d{4}|Mellanox|MT2910|fwupdmgr|[Gg]en5 x2",
        r"throttl|outdated|older |mismatch|differ|downgrad|update|too low|behind",
        sure=LIKELY,
        within=3,
        unless=r"mlx5_core .{0,20}firmware version:",
    ),
    near(r"固件", r"ConnectX|网卡|mlx5", sure=LIKELY, within=2),
    line(r"firmware.{0,60}(28\.\d\d\.\d{4})(?!.*\1).{0,80}28\.\d\d\.\d{4}", LIKELY),
    line(r"LnkSta:.{0,40}(?:downgraded|Speed (?:2\.5|5|8|16)GT/s)", POSSIBLE),
    line(r"(?:7\.876|15\.7\d+|31\.\d+|63\.\d+) Gb/s available PCIe bandwidth", LIKELY),
    line(
        r"(?:fw_ver|firmware)\W.{0,24}\b\d\d\.\d{2}\.\d{4}.{0,60}(?:differ|mismatch|older|outdated|other"
        r"|\b\d\d\.\d{2}\.\d{4})",
        0.7,
    ),
)
FIX = (
    "on each node: ethtool -i {iface} | grep firmware; sudo lspci -s 0000:01:00.0 -vv | grep LnkSta   # 32GT/s x4",
    "on each node: sudo fwupdmgr refresh && sudo fwupdmgr update; then shut down, a minute without mains power, start",
)
EXPLAINS = ()
