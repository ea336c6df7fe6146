"""Driver and GSP firmware do not belong together: the adapter does not start.

Detects: GSP timeouts and failed adapters while the driver starts.
Why: a bare `apt upgrade` moved the driver without its firmware (seen with 580.173.02 on OTA2607). The GPU's
  processor waits for a firmware that never answers; no device is found.
Evidence: `GSP_INIT_DONE` timeouts, `Cannot initialize GSP firmware RM`, RmInitAdapter failed.
Remedy: the DGX Dashboard's update again, or the exact paired packages; then hold them.
References: gb10.md E8, A2
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LDRV014"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the GPU's firmware does not start after an update"
CAUSE = "gsp-firmware-unpaired"
SIGNS = (
    line(r"waiting for GSP_INIT_DONE|GSP_INIT_DONE", 0.8),
    line(
        r"ksec2PrepareBootCommands\w*: SEC2 secure boot partition timed out|SEC2 secure boot partition timed out",
        CERTAIN,
    ),
    line(r"RmInitAdapter: Cannot initialize GSP firmware RM|Cannot initialize GSP firmware", LIKELY),
    line(r"unexpected WPR2 already up, cannot proceed with booting GSP", LIKELY),
    line(r"RmInitAdapter failed! \(0x\w+:0x\w+:\d+\)", POSSIBLE),
    near(r"nvidia-smi|NVRM", r"^No devices were found", sure=POSSIBLE, within=40),
    line(
        r"torn.{0,20}(?:OTA|driver|update)|GSP firmware.{0,40}(?:mismatch|does not match|unpaired|older than)", LIKELY
    ),
)
FIX = (
    (
        "nvidia-smi -q | grep -E 'Driver Version|GSP Firmware'; dpkg-query -W 'nvidia-firmware-580-*' "
        "nvidia-driver-580-open   # on {node}: one version everywhere"
    ),
    "DGX Dashboard (http://localhost:11000): run the update again, then reboot",
    "sudo apt-mark hold nvidia-driver-580-open linux-modules-nvidia-580-open-nvidia-hwe-24.04   # afterwards",
)
EXPLAINS = (
    "no-gpu-visible-in-container",
    "gsp-rpc-timeout",
    "nvidia-driver-not-loaded",
)
