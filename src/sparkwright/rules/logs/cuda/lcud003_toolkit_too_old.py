"""The CUDA toolkit is too old for this GPU.

Detects: nvcc or nvrtc that does not know the requested architecture, option or header.
Why: compute_120 needs CUDA 12.8, compute_121 needs 12.9, and all of sm_121a is there from 13.0; an older nvcc from
  the distribution is first in PATH. FlashInfer prints `SM 12.x requires CUDA >= 12.9` also where all goes well: then
  only a hint.
Evidence: nvcc's fatal line.
Remedy: CUDA 13 first in PATH, and a build in a clean directory.
References: https://docs.nvidia.com/cuda/cuda-toolkit-release-notes; https://github.com/vllm-project/vllm/issues/50705
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, HINT, LIKELY, POSSIBLE, line

CODE = "LCUD003"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the CUDA toolkit is too old for this GPU"
CAUSE = "cuda-toolkit-too-old-for-arch"
SIGNS = (
    line(r"nvcc fatal\s*:\s*Unsupported gpu architecture '(?P<arch>(?:compute|sm)_(?:[89]\d|1\d\d)[af]?)'", CERTAIN),
    line(r"Unsupported gpu architecture '(?P<arch>(?:compute|sm)_(?:[89]\d|1\d\d)[af]?)'", LIKELY),
    line(r"nvrtc: error: invalid value for --gpu-architecture|NVRTC_ERROR_INVALID_OPTION", LIKELY),
    line(r"nvcc fatal\s*:\s*(?:Unknown option|Value 'c\+\+20')", LIKELY),
    line(
        r"fatal error: cuda_fp4\.h|identifier \"__nv_fp4\w+\" is undefined"
        r"|identifier \"__nv_fp8_e8m0\" is undefined",
        LIKELY,
    ),
    line(r"Unknown CUDA Architecture Name 1[012]\.\d|Unknown CUDA arch \(1[012]\.\d\w?\)", LIKELY),
    line(r"SM 12\.x requires CUDA >= (?P<wanted>[\d.]+)", POSSIBLE, unless=r"Failed to get device capability"),
    line(r"Failed to get device capability: SM 12\.x requires CUDA", HINT),
    line(r"detected CUDA version \((?P<have>[\d.]+)\) mismatches the version that was used to compile", POSSIBLE),
    line(
        r"(?:nvcc|cuda toolkit|toolkit).{0,60}(?:too old|predates|older than|does(?:n't| not) (?:know"
        r"|support)).{0,60}(?:sm_1|compute_1|blackwell|gb10|12\.1|spark|gpu|arch)",
        LIKELY,
    ),
    line(r"nvcc fatal\s*:\s*Value '(?P<arch>\w+)' is not defined for option", CERTAIN),
    line(
        r"unsupported CUDA (?:gpu )?architecture: ?sm_1[012]|nvcc does not support (?:sm_)?1[012]\d"
        r"|CUDA_ARCHITECTURES.{0,40}(?:1[012]\d\w?).{0,20}(?:not supported|unsupported|invalid)",
        LIKELY,
    ),
    line(
        r"(?:invalid|unknown|unsupported) (?:value|arch).{0,40}(?:compute_12\d"
        r"|sm_12\d)[af]?.{0,40}(?:nvcc|nvrtc|--gpu-arch)",
        LIKELY,
    ),
)
FIX = (
    "nvcc --version; which -a nvcc   # 13.0 or newer must come first",
    "export CUDA_HOME=/usr/local/cuda-13.0 PATH=/usr/local/cuda-13.0/bin:$PATH",
    "rm -rf build ~/.cache/flashinfer   # and build again",
)
EXPLAINS = ()
