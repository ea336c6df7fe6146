"""The chosen NVFP4 MoE backend refuses this GPU.

Detects: an NVFP4 MoE backend whose device check fails.
Why: the backend was asked for by flag or variable, and its list of devices does not have SM 12.x (vLLM 0.15.0 lost
  it in a rewrite; TRT-LLM and CuTe-DSL kernels never had it).
Evidence: the ValueError with the reason `kernel does not support current device`.
Remedy: let the engine choose, or take Marlin.
References: vLLM fused_moe/modular_kernel.py; vLLM issue 33333, pull request 33417
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, LIKELY, POSSIBLE, line

CODE = "LKRN006"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the chosen NVFP4 MoE backend refuses this GPU"
CAUSE = "nvfp4-moe-backend-unsupported-device"
SIGNS = (
    line(r"NvFp4 MoE backend '?\w+'? does not support .{0,80}kernel does not support current device"),
    line(r"kernel does not support current device", POSSIBLE),
    line(r"No NvFp4 MoE backend supports the deployment", HINT),
    line(
        r"(?:\bsm_?12[01x]|\bGB10\b|RTX PRO|RTX 50\d\d|desktop Blackwell).{0,80}(?:fail|refus|reject"
        r"|cannot|not support|unable)"
        r".{0,80}NVFP4 (?:fused )?MoE",
        LIKELY,
    ),
    line(
        r"NVFP4 (?:fused )?MoE.{0,80}(?:fail|refus|reject|not support|unavailable"
        r"|gated).{0,60}(?:\bsm_?12[01x]|\bGB10\b|RTX PRO|RTX 50)",
        0.6,
    ),
    line(
        r"kernels unavailable for \w*(?:NvFp4|NVFP4|Fp4).{0,20} on current platform"
        r"|MoE kernel does not support current device",
        LIKELY,
    ),
)
FIX = (
    "unset VLLM_USE_FLASHINFER_MOE_FP4; drop --moe-backend   # then Marlin is chosen",
    "--moe-backend marlin",
    "vLLM 0.15.0: update to 0.15.1 or later, which lists SM 12.x again",
)
EXPLAINS = ()
