"""CUDA waits for a fabric manager that does not run.

Detects: CUDA error 802, the service's failures, a fabric state that is not completed.
Why: on servers with NVSwitch, CUDA is ready only when nvidia-fabricmanager of the driver's exact version has set up
  the switches. GB10 has none and needs none.
Evidence: `system not yet initialized`.
Remedy: install and start the service in the driver's version.
References: https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/; gb10.md A2
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LDRV006"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the NVSwitch fabric manager does not run"
CAUSE = "fabric-manager-not-running"
SIGNS = (
    line(r"system not yet initialized|cudaErrorSystemNotReady|CUDA_ERROR_SYSTEM_NOT_READY", CERTAIN),
    line(r"fabric manager NVIDIA GPU driver interface version .{0,60}(?:don't|does not|do not) match", CERTAIN),
    line(r"nv(?:idia)?-?fabricmanager.{0,60}(?:fail|not running|inactive|dead|exited|not found|missing)", LIKELY),
    line(
        r"fabric ?manager.{0,60}(?:not (?:running|installed|started|found)|fail(?:ed|s|ure)?|version mismatch"
        r"|inactive|is required|未运行|没有安装)",
        LIKELY,
    ),
    near(
        r"^\s*Fabric\s*$|GPU Fabric GUID|nvidia-smi -q",
        r"\bState\s+: (?:In Progress|Not Started)",
        sure=LIKELY,
        within=6,
    ),
    line(r"NV_WARN_NOTHING_TO_DO", POSSIBLE),
    line(r"\berror:? 802\b|error=802\b|code[= ]802\b|\b802 system|returned 802\b|cuInit.{0,20}\b802\b", 0.75),
)
FIX = (
    "systemctl status nvidia-fabricmanager; nvidia-smi -q | grep -A2 Fabric   # on {node}",
    "sudo apt install nvidia-fabricmanager-<branch of the driver> && sudo systemctl enable --now nvidia-fabricmanager",
    "no NVSwitch (GB10, GeForce): remove the package instead; error 802 then means that the driver is still starting",
)
EXPLAINS = ("no-gpu-visible-in-container",)
