"""Blackwell needs the open kernel modules; the proprietary ones are loaded.

Detects: the kernel's demand for the open modules, or a failed adapter beside the proprietary banner.
Why: from Blackwell on only the open flavour supports the GPU. The other loads, and fails when the adapter is
  initialized.
Evidence: the demand in the kernel's log; `modinfo -F license nvidia` prints NVIDIA and not Dual MIT/GPL.
Remedy: the -open package of the same version.
References: gb10.md A2; https://github.com/Start9Labs/start-technologies/pull/3693
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LDRV010"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "proprietary kernel modules on Blackwell"
CAUSE = "driver-proprietary-module-on-blackwell"
SIGNS = (
    line(r"requires use of the NVIDIA open kernel modules|requires the NVIDIA open kernel modules", CERTAIN),
    near(
        r"NVIDIA UNIX (?:aarch64|x86_64) Kernel Module",
        r"RmInitAdapter failed|No devices were found",
        sure=LIKELY,
        within=400,
    ),
    near(r"NVRM: Xid \(PCI:[0-9a-fA-F:.]+\): 169\b", r"RmInitAdapter failed", sure=CERTAIN, within=10),
    line(r"RmInitAdapter failed! \(0x62:0x1a:", LIKELY),
    near(
        r"proprietary",
        r"kernel modules?|nvidia-(?:driver|dkms)|flavou?r",
        r"Blackwell|GB10|Spark|RTX 50|sm_12|No devices",
        sure=LIKELY,
        within=3,
    ),
    line(
        r"open kernel modules? (?:being |is |are |was )?required|(?:needs?|wants"
        r"|only works with) (?:the )?(?:NVIDIA )?open kernel modules?",
        LIKELY,
    ),
    near(
        r"Blackwell|\bGB10\b|\bSpark\b|RTX 50|RTX PRO",
        r"(?:fails?|failed|refuses|unable|does not|cannot) (?:to )?bind (?:to )?(?:the )?(?:GPU|driver|card|device)"
        r"|closed(?:[- ]source)? (?:kernel )?(?:module|driver)",
        sure=0.65,
        within=2,
    ),
)
FIX = (
    "modinfo -F license nvidia   # on {node}: `NVIDIA` is the wrong flavour, `Dual MIT/GPL` the right one",
    "sudo apt install nvidia-driver-580-open && sudo reboot   # GB10: through the DGX Dashboard",
)
EXPLAINS = (
    "no-gpu-visible-in-container",
    "gsp-firmware-unpaired",
)
