"""CUDA 13 no longer builds for the old GPUs in the build's list.

Detects: nvcc of CUDA 13 that is asked for Maxwell, Pascal or Volta.
Why: the project's default list has architectures that CUDA 13 took out; on GB10 only 12.1 is needed.
Evidence: nvcc's fatal line.
Remedy: Build for this GPU only.
References: https://docs.nvidia.com/cuda/cuda-toolkit-release-notes (13.0)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, line

CODE = "LCUD016"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "CUDA 13 no longer builds for the old GPUs in the build's list"
CAUSE = "cuda13-dropped-old-architectures"
SIGNS = (
    line(
        r"nvcc fatal\s*:\s*Unsupported gpu architecture '(?P<arch>(?:compute|sm)_(?:3[0-7]|5\d|6\d|7[02]))'",
        CERTAIN,
    ),
)
FIX = (
    "export TORCH_CUDA_ARCH_LIST=12.1a",
    "cmake -B build -DCMAKE_CUDA_ARCHITECTURES=121a-real",
)
EXPLAINS = ()
