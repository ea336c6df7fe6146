"""The C++ compiler for run-time kernels is missing or does not fit nvcc.

Detects: No C compiler or ninja for Triton, torch.compile or FlashInfer, or a gcc that nvcc refuses.
Why: kernels compiled at run time need gcc and ninja in the container; each nvcc accepts gcc only up to a version.
Evidence: The compiler's or torch's own line.
Remedy: Install build-essential and ninja, or a gcc that nvcc accepts.
References: https://docs.nvidia.com/cuda/cuda-installation-guide-linux (host compiler support)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, line

CODE = "LCUD012"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the C++ compiler for run-time kernels is missing or does not fit nvcc"
CAUSE = "host-compiler-missing-or-unsupported"
SIGNS = (
    line(
        r"Failed to find C compiler|InvalidCxxCompiler|No working C\+\+ compiler found|Unable to find a C compiler",
        CERTAIN,
    ),
    line(r"unsupported GNU version! gcc versions later than (?P<most>\d+) are not supported", CERTAIN),
    line(
        r"Ninja is required to load C\+\+ extensions|No such file or directory: 'ninja'"
        r"|ninja: (?:command )?not found",
        CERTAIN,
    ),
    line(
        r"No such file or directory: '(?:gcc|g\+\+|cc|c\+\+)'|(?:gcc|g\+\+): (?:command )?not found"
        r"|nvcc fatal\s*: Failed to preprocess host compiler",
        CERTAIN,
    ),
    line(r"collect2: (?:fatal )?error: cannot find .{0,6}\bld\b", CERTAIN),
    line(r"nvcc fatal\s*:\s*(?:Cannot find compiler|No supported gcc)", CERTAIN),
)
FIX = (
    "apt-get install -y build-essential ninja-build   # in the image",
    (
        "where nvcc refuses gcc: apt-get install -y g++-{most} && export CC=gcc-{most} CXX=g++-{most} "
        "NVCC_CCBIN=g++-{most}"
    ),
)
EXPLAINS = ()
