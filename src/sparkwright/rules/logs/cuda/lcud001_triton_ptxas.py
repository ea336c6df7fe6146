"""Triton's ptxas does not know this GPU.

Detects: Triton, torch.compile or TileLang whose ptxas rejects sm_121a, or that finds no ptxas.
Why: Triton before 3.6 carries a ptxas of CUDA 12, which does not know sm_121a; some containers have none at the path
  that Triton looks at. It shows only when the first kernel is compiled.
Evidence: ptxas's line about gpu-name.
Remedy: Let Triton use the ptxas of CUDA 13.
References: seed 002 (`Triton needs a ptxas symlink`); field guide E 58
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line

CODE = "LCUD001"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "Triton's ptxas does not know this GPU"
CAUSE = "triton-ptxas-too-old-sm121a"
SIGNS = (
    line(r"Value '(?P<arch>sm_\d+[af]?)' is not defined", CERTAIN, unless=r"nvcc|gpu-code"),
    line(
        r"ptxas\S* (?:fatal|error)\s*:.{0,80}(?:Unsupported \.version|Unsupported gpu architecture|is not defined)",
        CERTAIN,
        unless=r"application ptx input",
    ),
    line(r"'(?P<arch>sm_1[12]\d[af]?)' is not a recognized processor", LIKELY),
    line(
        r"Cannot find ptxas|(?:ptxas|ptxas-blackwell)\b.{0,60}(?:No such file|not found|is missing|does not exist)",
        LIKELY,
    ),
    line(r"Unsupported \.version [\d.]+; current version is", LIKELY, unless=r"application ptx input"),
    line(r"Internal Triton PTX codegen error|PTXASError", POSSIBLE),
    line(r"ptxas.{0,60}(?:过旧|太旧|不认识|不支持|找不到)", LIKELY),
    line(r"Triton JIT compilation fail|Triton JIT fail", POSSIBLE),
    line(
        r"ptxas.{0,100}(?:symlink|too old|missing|rejects|looks for|predates|outdated|does(?:n't"
        r"| not) (?:know|support)|unaware)",
        LIKELY,
        unless=r"Feature '",
    ),
    line(r"TRITON_PTXAS_PATH.{0,80}(?:sm_12|must|needed|required|CUDA 13)", LIKELY),
    line(r"bin/ptxas(?:-blackwell)?'.{0,200}--gpu-name=sm_1[12]\d.{0,200}returned non-zero", LIKELY),
)
FIX = (
    "docker exec <container> /usr/local/cuda/bin/ptxas --version   # needs 13.0 or newer",
    (
        "start the container with -e TRITON_PTXAS_PATH=/usr/local/cuda/bin/ptxas -e "
        "TRITON_PTXAS_BLACKWELL_PATH=/usr/local/cuda/bin/ptxas"
    ),
    (
        "or in its entrypoint: ln -sf /usr/local/cuda/bin/ptxas \"$(python3 -c 'import triton, os; "
        "print(os.path.dirname(triton.__file__))')\"/backends/nvidia/bin/ptxas"
    ),
)
EXPLAINS = ("python-dev-headers-missing",)
