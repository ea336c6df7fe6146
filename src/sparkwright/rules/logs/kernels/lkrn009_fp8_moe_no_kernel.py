"""The FP8 MoE backend has no kernel for this GPU.

Detects: a CUTLASS grouped GEMM for FP8 experts that was not compiled for the device.
Why: the selector takes CUTLASS for every GPU from SM 9.0 on, but the grouped kernel is built for SM 9.0 and 10.0
  only.
Evidence: the kernel's `No compiled ... Required capability: 90 or 100`, or the selector's line that names
  VLLM_CUTLASS.
Remedy: Triton or Marlin for FP8 experts.
References: vLLM csrc/quantization/w8a8/cutlass/scaled_mm_entry.cu; vLLM pull request 33285
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LKRN009"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the FP8 MoE backend has no kernel for this GPU"
CAUSE = "fp8-moe-no-kernel-sm12x"
SIGNS = (
    line(r"No compiled cutlass_(?:scaled_mm|moe_mm)\w* for CUDA device"),
    line(r"No compiled \w*(?:moe|group|grouped)_mm.{0,40}(?:capability|for SM)", LIKELY),
    line(r"FP8 MoE backend '?\w+'? does not support .{0,80}current device"),
    line(r"No FP8 MoE backend supports the deployment", LIKELY),
    line(r"Using '?VLLM_CUTLASS'? Fp8 MoE backend out of potential backends: \['AITER'", POSSIBLE),
    near(
        r"cutlass_moe_mm|cutlass_fused_experts_fp8|run_cutlass_moe_fp8",
        r"not supported|NotImplementedError|no kernel|No compiled",
        sure=LIKELY,
        within=8,
    ),
    line(
        r"No (?:FP8|Fp8|fp8) MoE (?:kernel|backend|implementation)|(?:FP8|fp8) (?:block|grouped"
        r"|MoE) ?.{0,30}(?:no kernel|not supported|unsupported|not implemented).{0,40}(?:sm_?12|SM ?12"
        r"|GB10|device|capability)",
        LIKELY,
    ),
    line(
        r"No compiled (?:cutlass_moe_mm|cutlass_scaled_grouped|grouped)\w*"
        r"|cutlass_moe_mm.{0,60}(?:capability|not supported|no kernel)",
        LIKELY,
    ),
    line(r"No implemented \w*(?:group\w*_mm|moe_mm)\w* for current compute capability", 0.95),
)
FIX = (
    "vLLM: a version with pull request 33285 (the log then says `Using TRITON Fp8 MoE backend`)",
    "or --moe-backend triton, --moe-backend marlin",
    "older: VLLM_USE_DEEP_GEMM=0 and no CUTLASS variables",
)
EXPLAINS = ()
