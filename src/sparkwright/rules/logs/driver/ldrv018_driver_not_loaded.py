"""No NVIDIA kernel module is loaded on the host.

Detects: nvidia-smi's and the container runtime's messages that the driver does not answer.
Why: the module was not built for this kernel (a half-finished DKMS run), Secure Boot refused it, or it is
  blacklisted.
Evidence: `couldn't communicate with the NVIDIA driver`, `driver not loaded`.
Remedy: build and load the module, check Secure Boot.
References: gb10.md E26, E11
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line

CODE = "LDRV018"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the NVIDIA driver is not loaded"
CAUSE = "nvidia-driver-not-loaded"
SIGNS = (
    line(r"couldn't communicate with the NVIDIA driver", CERTAIN),
    line(r"nvml error: driver not loaded|Failed to initialize NVML: (?:Driver Not Loaded|N/A)", CERTAIN),
    line(r"modprobe: .{0,60}(?:Module nvidia not found|could not insert '?nvidia'?\b)", LIKELY),
    line(
        r"nvidia: module verification failed: signature.{0,60}|Loading of unsigned module is rejected"
        r"|Key was rejected by service",
        POSSIBLE,
    ),
    line(r"NVRM: No NVIDIA (?:GPU|devices?) (?:probed|found)", LIKELY),
    line(r"Error! Bad return status for module build on kernel", LIKELY),
)
FIX = (
    "uname -r; dkms status; mokutil --sb-state; lsmod | grep nvidia   # on {node}",
    (
        "sudo apt install --reinstall linux-modules-nvidia-580-open-$(uname -r) && sudo modprobe nvidia   # GB10: DGX "
        "Dashboard"
    ),
    "ls /lib/modules   # a kernel without modules: boot the one before",
)
EXPLAINS = (
    "no-gpu-visible-in-container",
    "nvidia-container-toolkit-missing",
)
