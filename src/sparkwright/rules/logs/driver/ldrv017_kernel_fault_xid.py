"""The kernel's log shows the engine's illegal GPU access.

Detects: Xid 13 and 31.
Why: a kernel read or wrote where it must not. That is a defect of a kernel or of its use, not of the GPU; the
  engine's log tells which. Other causes of this program name the known ones.
Evidence: the process in the Xid line is the engine's.
Remedy: look at the engine's log of the same second.
References: https://docs.nvidia.com/deploy/xid-errors/
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, line

CODE = "LDRV017"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "a GPU kernel of the engine made an illegal access"
CAUSE = "gpu-kernel-fault-xid13-31"
SIGNS = (line(r"Xid \(PCI:[0-9a-fA-F:.]+\): (?:13|31|32|62|69)\b", HINT),)
FIX = (
    "CUDA_LAUNCH_BLOCKING=1 and --enforce-eager: the trace then names the kernel",
    "sparkwright diagnose   # with the engine's log of the same time beside this one",
)
EXPLAINS: tuple[str, ...] = ()
