"""The GPU no longer answers on PCIe.

Detects: Xid 79 and its wordings in the kernel's log and nvidia-smi.
Why: link, power, heat or a hardware fault: the device is gone, and every later error follows from that.
Evidence: the driver's line.
Remedy: power cycle; if it comes back, cabling, slot, supply, RMA.
References: gb10.md F3; https://docs.nvidia.com/deploy/xid-errors/
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line

CODE = "LDRV013"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the GPU has fallen off the bus (Xid 79)"
CAUSE = "gpu-fell-off-bus-xid79"
SIGNS = (
    line(r"GPU has fallen off the bus", CERTAIN),
    line(r"Xid \(PCI:[0-9a-fA-F:.]+\): 79\b", CERTAIN),
    line(r"GPU is lost\.? ?(?:Reboot the system)?|NVML_ERROR_GPU_IS_LOST", CERTAIN),
    line(
        r"Unable to determine the device handle for (?:GPU|gpu).{0,30}: (?:GPU is lost|Unknown Error|No such device)",
        LIKELY,
    ),
    line(r"\bXid ?79\b|fallen off (?:the )?bus|fell off the bus", LIKELY),
    line(r"\bGPU\b.{0,10}掉卡", LIKELY),
)
FIX = (
    "sudo shutdown -h now on {node}; wall power off for 60 s; start",
    "sudo journalctl -k -b -1 | grep -E 'Xid|AER|thermal'   # on {node}: what came before",
    "again after that: another slot and cable, or RMA; sudo nvidia-bug-report.sh for the vendor",
)
EXPLAINS = (
    "uma-exhaustion-host-freeze",
    "gsp-rpc-timeout",
    "nvidia-driver-not-loaded",
)
