"""torch is the build without CUDA.

Detects: A torch whose version ends in +cpu, or that says it has no CUDA.
Why: on aarch64 PyPI's torch was for long a CPU build, and any later pip install can put it over the right one. Driver
  and GPU are fine.
Evidence: The version, or torch's own assertion.
Remedy: torch from the cu130 index.
References: https://github.com/pytorch/pytorch/issues/168065; field guide E 84
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line

CODE = "LCUD006"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "torch is the build without CUDA"
CAUSE = "cpu-only-torch-on-aarch64"
SIGNS = (
    line(r"PyTorch version\s*: \S+\+cpu\b", CERTAIN),
    line(r"Torch not compiled with CUDA enabled", CERTAIN),
    line(
        r"libtorch_cuda\.so: cannot open shared object|ImportError: libtorch_cuda\.so",
        CERTAIN,
        unless=r"undefined symbol",
    ),
    line(r"\b\d\.\d+\.\d+\+cpu\b", LIKELY),
    line(r"\btorch\.version\.cuda\b.{0,20}\bNone\b|CUDA used to build PyTorch\s*: None", LIKELY),
    line(r"CUDA used to build PyTorch\s*: Could not collect", POSSIBLE),
    line(
        r"(?:cpu-only|cpu only|cpu-build|cpu version|cpu build) .{0,30}torch\b|torch\b.{0,40}(?:cpu-only"
        r"|cpu only|cpu build|cpu wheel|without cuda|cpu version)",
        LIKELY,
    ),
    line(r"does not have CUDA support|not built with CUDA|built without CUDA|PyTorch.{0,30}no CUDA support", POSSIBLE),
)
FIX = (
    "python3 -c 'import torch; print(torch.__version__, torch.version.cuda)'   # +cpu or None: the wrong build",
    "pip install --force-reinstall torch torchvision torchaudio --index-url https://download.pytorch.org/whl/cu130",
    "then install the rest with a constraint on that torch: pip install -c <(pip freeze | grep ^torch) <package>",
)
EXPLAINS = ()
