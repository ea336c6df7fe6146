"""NCCL was built for another CUDA.

Detects: NCCL that cannot be captured in a graph, or that says its CUDA does not fit.
Why: the library was built with a CUDA that is older than the engine's; graphs need one of at least 11.3.
Evidence: NCCL's own line.
Remedy: install the NCCL package of the engine's CUDA.
References: https://github.com/vllm-project/vllm/issues/3069
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LRDM006"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "NCCL was built for another version of CUDA"
CAUSE = "nccl-cuda-version-incompatible"
SIGNS = (
    line(r"NCCL cannot be captured in a graph", CERTAIN),
    line(r"wasn't built with CUDA runtime >= ?\d+\.\d", CERTAIN),
    near(
        r"NCCL version \d[\d.]*\+cuda(?:9|10|11)\.\d",
        r"Cuda failure|unhandled cuda error|no kernel image|named symbol not found",
        sure=LIKELY,
        within=12,
    ),
    line(
        r"NCCL WARN Cuda failure.{0,30}(?:named symbol not found|no kernel image|invalid device func|unsupported PTX)",
        LIKELY,
    ),
    line(
        r"\bNCCL\b.{0,60}(?:compiled (?:for|with) CUDA|built (?:for|with|against) CUDA) ?\d+.{0,60}(?:but the"
        r"|while|incompatib|mismatch)",
        LIKELY,
    ),
)
FIX = (
    "pip install -U nvidia-nccl-cu13   # the package of the engine's CUDA; then: pip list | grep nccl",
    "python3 -c 'import torch; print(torch.cuda.nccl.version(), torch.version.cuda)'",
)
EXPLAINS = ()
