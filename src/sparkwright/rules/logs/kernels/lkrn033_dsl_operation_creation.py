"""CuTe DSL cannot create an operation.

Detects: the b12x kernels' `Operation creation failed`.
Why: seen with nvidia-cutlass-dsl 4.5.2 on driver 580.159.03; newer packages of the same series passed.
Evidence: the ValueError, raised when a kernel is compiled.
Remedy: another version of the package.
References: forum 56807497143 by way of field guide E88
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line

CODE = "LKRN033"
STATUS = "preview"
SEVERITY = Severity.BLOCK
TITLE = "CuTe DSL cannot create an operation"
CAUSE = "cutlass-dsl-operation-creation-failed"
SIGNS = (line(r"Operation creation failed", LIKELY),)
FIX = (
    "pip show nvidia-cutlass-dsl; nvidia-smi --query-gpu=driver_version --format=csv",
    "pip install 'nvidia-cutlass-dsl>=4.5.3'   # 4.5.3 and 4.6.0 were reported to work on driver 580.159.03",
)
EXPLAINS = ()
