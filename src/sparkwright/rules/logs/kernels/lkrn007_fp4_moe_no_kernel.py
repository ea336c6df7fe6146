"""The FP4 MoE backend has no kernel for this GPU.

Detects: a grouped FP4 GEMM that was chosen and cannot run here.
Why: TRT-LLM generated FP4 kernels and some CUTLASS tiles exist for SM 10.x only; SM 12.x has no tensor memory and
  99 KiB of shared memory, so initialisation fails or a layout helper trips first.
Evidence: the backend's own message, or the shuffle helper's assertion in the loader.
Remedy: the Triton or Marlin kernel for experts.
References: FlashInfer fused_moe; SGLang mxfp4.py; NVIDIA/cutlass issue 3096
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LKRN007"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the FP4 MoE backend has no kernel for this GPU"
CAUSE = "fp4-moe-backend-no-kernel-for-device"
SIGNS = (
    near(
        r"get_shuffle_matrix_sf_a_row_indices",
        r"assert K % 4|AssertionError",
        sure=CERTAIN,
        within=6,
    ),
    line(r"MXFP4 MoE backend '?(?!TRITON)\w+'? does not support .{0,80}current device"),
    line(r"No MXFP4 MoE backend supports", LIKELY),
    line(r"No compiled (?:cutlass_(?:fp4|mxfp4)_group_mm|(?:silu\+?\w* ?)?\w* ?(?:nvfp4|mxfp4) experts)", LIKELY),
    line(r"Failed to initialize cutlass TMA WS grouped gemm", LIKELY),
    line(
        r"(?:MXFP4|FP4|NVFP4)\b.{0,40}MoE.{0,60}(?:requires SM|only supported on|is not supported on"
        r"|not available on)",
        LIKELY,
    ),
    line(
        r"MXFP4 Marlin requires SM|MoE is unsupported on SM"
        r"|none of the configured backends are usable on sm",
        LIKELY,
    ),
    near(
        r"^(?!.*(?:potential backends|Expected one of|INFO)).*(?:trtllm_fp4_block_scale_moe"
        r"|flashinfer_mxfp4|flashinfer_trtllm|trtllm_gen.{0,20}moe|trtllm::fp4_block)",
        r"no kernel|unsupported|not supported|only supports? sm|AssertionError",
        sure=LIKELY,
        within=8,
        unless=r"potential backends|current device|Expected one of",
    ),
    line(r"Fused_?MoE\w* (?:does not support|only supports|requires) .{0,12}SM ?_?1?\d\d", LIKELY),
    line(
        r"(?:FP4|NVFP4|fp4) (?:fused )?MoE (?:kernel|backend|runner|gemm)?.{0,40}(?:not (?:supported"
        r"|available|implemented)|no kernel|unsupported).{0,30}(?:sm_?1[12]|SM ?1[12]|GB10|device|capability)",
        0.7,
    ),
    near(
        r"Failed to run cutlass FP4 gemm|FP4 gemm Runner",
        r"fused_moe|moe_kernel|run_moe|cutlass_fused_moe|MoE layer",
        sure=0.65,
        within=12,
    ),
)
FIX = (
    "SGLang: --moe-runner-backend triton_kernel (MXFP4), or --moe-runner-backend marlin",
    "vLLM: --moe-backend marlin",
    "TensorRT-LLM: moe_config.backend CUTLASS or TRITON instead of TRTLLM",
)
EXPLAINS = ()
