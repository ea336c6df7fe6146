"""Uncorrectable errors in the GPU's memory.

Detects: Xid 48, 64, 94, 95, 140 and CUDA's ECC error.
Why: a memory cell fails. Contained errors (94) end one process, uncontained ones (95) the GPU; rows are remapped at
  the next reset.
Evidence: the Xid; pending remappings.
Remedy: reset or reboot; replace the GPU when remapping fails.
References: gb10.md F3; https://docs.nvidia.com/deploy/xid-errors/
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, POSSIBLE, line

CODE = "LDRV016"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the GPU's memory has uncorrectable errors"
CAUSE = "gpu-memory-ecc-errors"
SIGNS = (
    line(r"Xid \(PCI:[0-9a-fA-F:.]+\): (?:48|64|94|95|140)\b", CERTAIN),
    line(r"uncorrectable ECC error encountered|cudaErrorECCUncorrectable|CUDA_ERROR_ECC_UNCORRECTABLE", CERTAIN),
    line(r"(?:Pending|Remapping Failure Occurred)\s+: Yes|row remapp\w+ (?:failed|failure)", POSSIBLE),
)
FIX = (
    "nvidia-smi -q -d ROW_REMAPPER,ECC   # on {node}",
    "stop all users of the GPU, then sudo systemctl reboot; errors that come back: RMA",
)
EXPLAINS: tuple[str, ...] = ()
