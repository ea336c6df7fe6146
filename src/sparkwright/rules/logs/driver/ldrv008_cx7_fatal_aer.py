"""The ConnectX-7 fails with fatal PCIe errors, and its recovery locks the kernel.

Detects: fatal AER errors of the NIC's root ports, mlx5's recovery, soft lockups in it.
Why: the link to the card fails (heat, power, firmware); the recovery of both functions loops and soft-locks CPUs.
  The API dies of it afterwards.
Evidence: the AER lines of ports 0000:00:00.0 and 0002:00:00.0 before the engine's error.
Remedy: reboot or power-cycle; cooling, clock cap, firmware.
References: https://github.com/MiaAI-Lab/DeepSeek-v4-Flash-DSpark-2x-DGX-Spark/issues/146; gb10.md A6
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LDRV008"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "fatal PCIe errors of the ConnectX-7"
CAUSE = "cx7-pcie-fatal-aer"
SIGNS = (
    line(
        r"(?:0000|0002):0[01]:00\.[01].{0,40}(?:AER: (?:Multiple )?Uncorrect\w+ \(Fatal\)"
        r"|severity=Uncorrect\w+ \(Fatal\))",
        CERTAIN,
    ),
    line(
        r"mlx5_core.{0,60}(?:mlx5_pci_err_detected|mlx5_pci_slot_reset|PCI slot is unavailable|device is in error"
        r"|recovery (?:flow|failed)|AER: can't recover)",
        CERTAIN,
    ),
    line(
        r"AER: (?:Multiple )?Uncorrect\w+ \(Fatal\) error (?:message )?received|severity=Uncorrect\w+ \(Fatal\)", LIKELY
    ),
    line(r"mlx5_pci_slot_reset|mlx5_pci_err_detected", LIKELY),
    line(
        r"mlx5_core.{0,80}(?:device's health compromised|Fatal error \d+ detected|synd 0x\w+: irrisc"
        r"|wait vital counter failed|assert_var\[0\])",
        LIKELY,
    ),
    near(
        r"Uncorrectable Fatal|Fatal Transaction Layer|fatal (?:PCIe |AER )",
        r"root port|CX-7\b| CX7\b|ConnectX|\bmlx5",
        sure=LIKELY,
        within=3,
    ),
    line(r"(?:CX-?7|ConnectX|mlx5|PCIe).{0,60}(?:fatal AER|AER fatal|AER.{0,10}致命)", LIKELY),
    line(
        r"mlx5_core .{0,40}AER: aer_status|mlx5_core .{0,60}(?:Fatal error|uncorrectable"
        r"|pci_channel_io_perm_failure)",
        LIKELY,
    ),
)
FIX = (
    "power-cycle {node} (shut down, wall power off for 60 s), then all nodes of the ring together",
    "sudo journalctl -k -b -1 | grep -E 'AER|mlx5_core|soft lockup'   # on {node}: what came before the engine's error",
    "sudo nvidia-smi -lgc 200,2000   # cooler; compare /sys/class/thermal/thermal_zone*/temp",
    "cat /sys/class/infiniband/*/fw_ver   # 28.45.4028 or later, the same on all nodes",
)
EXPLAINS = (
    "fabric-link-down",
    "uma-exhaustion-host-freeze",
    "nic-hotplug-power-cap",
)
