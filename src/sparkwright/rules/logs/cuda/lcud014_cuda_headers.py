"""The CUDA toolkit in the image has no headers.

Detects: A kernel compilation that cannot include a header of CUDA itself.
Why: images with nvcc alone lack the development packages of cuBLAS, cuRAND, CCCL and others.
Evidence: The compiler's line with the header.
Remedy: The devel image, or the development package that brings the header.
References: https://docs.nvidia.com/cuda/cuda-installation-guide-linux (meta packages)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line

CODE = "LCUD014"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the CUDA toolkit in the image has no headers"
CAUSE = "cuda-headers-missing-for-jit"
SIGNS = (
    line(
        r"fatal error: (?P<header>(?:cuda|cuda_runtime|cuda_runtime_api|cuda_bf16|cuda_fp16|cuda_fp8"
        r"|cublas_v2|cublasLt|curand|curand_kernel|cusparse|cusolverDn|nvrtc|cudnn|nvtx3/\w+|nvToolsExt"
        r"|cub/\w+|thrust/\S+|cuda/std/\S+)\.?(?:h|cuh|hpp)?): No such file",
        LIKELY,
    ),
    line(r"(?P<header>cuda_runtime|cublas_v2|curand_kernel|cuda_bf16)\.h['\"]?(?: file)? not found", LIKELY),
    line(r"cannot open source file \"(?P<header>(?:cuda|cublas|curand|cudnn|nv/|cub/|thrust/)[\w/.]+)\"", LIKELY),
)
FIX = (
    "find / -name \"{header}*\" -not -path '/proc/*' 2>/dev/null   # nothing: not in this image",
    (
        "use the devel image, or: apt-get install -y cuda-cudart-dev-13-0 libcublas-dev-13-0 "
        "libcurand-dev-13-0 cuda-nvrtc-dev-13-0"
    ),
)
EXPLAINS = ("python-dev-headers-missing",)
