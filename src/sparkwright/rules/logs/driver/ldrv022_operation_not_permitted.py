"""The engine dies with CUDA's `operation not permitted`.

Detects: CUDA error 800 in the engine's log.
Why: every report of it ran driver 580.159.03; not proved. Elsewhere the error comes from stream capture or MPS.
Evidence: the error and that driver version on one node.
Remedy: driver 580.173 or later (DGX OS 7.6.0).
References: gb10.md E9, A2
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LDRV022"
STATUS = "preview"
SEVERITY = Severity.WARN
TITLE = "CUDA answers `operation not permitted`"
CAUSE = "cuda-operation-not-permitted-580-159"
SIGNS = (
    line(
        r"CUDA error: operation not permitted|cudaErrorNotPermitted|CUDA_ERROR_NOT_PERMITTED",
        POSSIBLE,
        unless=r"capturing|capture",
    ),
    near(
        r"CUDA error: operation not permitted|(?:engine|CUDA)\b.{0,40}operation not permitted",
        r"580\.159",
        sure=LIKELY,
        within=2000,
    ),
)
FIX = (
    "nvidia-smi --query-gpu=driver_version --format=csv,noheader   # on every node; 580.159.03: update",
    "DGX Dashboard (http://localhost:11000), Update; never a bare apt upgrade",
)
EXPLAINS: tuple[str, ...] = ()
