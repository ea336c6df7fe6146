"""LD_LIBRARY_PATH puts another library before the bundled one.

Detects: cuDNN, cuBLAS, nvJitLink or libstdc++ of another version than the wheel was built with.
Why: PyTorch wheels bring their own CUDA libraries; a directory in LD_LIBRARY_PATH is searched first, and the system's
  copy wins.
Evidence: torch's own comparison, or a missing symbol inside a CUDA library.
Remedy: Start without LD_LIBRARY_PATH, or without that directory.
References: https://github.com/pytorch/pytorch (torch/backends/cudnn/__init__.py)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line

CODE = "LCUD010"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "LD_LIBRARY_PATH puts another library before the bundled one"
CAUSE = "ld-library-path-shadows-bundled-lib"
SIGNS = (
    line(r"cuDNN version incompatibility", CERTAIN),
    line(r"LD_LIBRARY_PATH contains incompatible version of", CERTAIN),
    line(r"CUDNN_STATUS_(?:SUBLIBRARY_)?VERSION_MISMATCH", 0.85),
    line(r"undefined symbol: __?nvJitLink\w+, version libnvJitLink", CERTAIN),
    line(
        r"lib(?:cublas|cublasLt|cusparse|cudnn\w*|cusolver|cufft|nvJitLink)\.so\.\d+\S{0,20}: undefined symbol",
        LIKELY,
    ),
    line(r"undefined symbol: (?:cuda|cublas|cudnn)\w+, version lib\w+\.so", LIKELY),
    line(r"version `(?:GLIBCXX|CXXABI)_[\d.]+' not found", LIKELY),
    line(r"LD_LIBRARY_PATH.{0,100}(?:shadow|overrid|wrong|older|conflict|picks up|system cudnn)", LIKELY),
    line(
        r"(?:/usr/lib|/usr/local|/opt/(?:hpcx|nvidia))\S*lib(?:nccl|cudnn|cublas|nvJitLink"
        r"|cudart)\S*: undefined symbol",
        0.7,
    ),
)
FIX = (
    "env -u LD_LIBRARY_PATH <command>   # does it work without?",
    (
        "echo \"$LD_LIBRARY_PATH\" | tr : '\\n'   # take out directories with a system cuDNN, CUDA or a "
        "foreign libstdc++"
    ),
    "python3 -c 'import torch; print(torch.version.cuda, torch.backends.cudnn.version())'",
)
EXPLAINS = ("binary-abi-mismatch-torch",)
