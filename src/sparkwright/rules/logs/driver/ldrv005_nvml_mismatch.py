"""The driver's libraries were updated while the old kernel module runs.

Detects: NVML's mismatch in nvidia-smi, Docker and Kubernetes, the kernel's API mismatch, CUDA error 803.
Why: apt (often an unattended upgrade) replaced the user-space libraries; the module in the running kernel is the
  old one.
Evidence: `Driver/library version mismatch`, or both versions in the kernel's log.
Remedy: reboot; hold the packages while serving.
References: gb10.md A2; https://github.com/NVIDIA/nvidia-docker/issues/584
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LDRV005"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "driver libraries and loaded kernel module differ"
CAUSE = "nvml-driver-library-mismatch"
SIGNS = (
    line(r"Driver/library version mismatch", CERTAIN),
    line(r"API mismatch: the client has the version|API mismatch: (?:the|this) (?:NVIDIA )?(?:kernel|client)", CERTAIN),
    line(r"but this kernel module has\b|kernel module has the version \d{3}\.", LIKELY),
    line(r"unsupported display driver / cuda driver combination|SystemDriverMismatch|SYSTEM_DRIVER_MISMATCH", POSSIBLE),
    line(r"NVML library version: \d{3}\.", POSSIBLE),
    near(r"nvidia-smi|NVML", r"(?:mismatch|不匹配)", r"driver|library|version|驱动", sure=LIKELY, within=2),
)
FIX = (
    "cat /proc/driver/nvidia/version; dpkg -l | grep -E 'nvidia-driver|libnvidia-compute'   # on {node}: two versions",
    "sudo systemctl reboot --no-block   # on {node}",
    "sudo apt-mark hold nvidia-driver-580-open linux-nvidia-hwe-24.04   # no unattended upgrade while serving",
)
EXPLAINS = (
    "no-gpu-visible-in-container",
    "nvidia-container-toolkit-missing",
)
