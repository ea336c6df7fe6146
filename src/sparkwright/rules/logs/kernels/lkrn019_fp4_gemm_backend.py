"""The FP4 GEMM is tied to a backend for SM 10.x.

Detects: an FP4 matrix product whose backend refuses capability 12.x.
Why: code names a backend (cute-dsl, trtllm, cudnn) instead of asking what the device has, and that backend is for
  SM 10.x.
Evidence: FlashInfer's BackendSupportedError, which names backend and capability.
Remedy: choose the backend by flag, or a version that chooses by the device.
References: FlashInfer utils.py and gemm; vLLM kernels/linear/nvfp4
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LKRN019"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the FP4 GEMM is tied to a backend for SM 10.x"
CAUSE = "fp4-gemm-backend-hardcoded-sm10x"
SIGNS = (
    line(r"mm_fp4 does not support backend '?[\w-]+'? with capability"),
    line(r"does not support backend '[\w-]+' with capability 12\d", LIKELY),
    line(r"BackendSupportedError", LIKELY),
    line(r"Arch unsupported for CUTLASS FP4", LIKELY),
    line(r"Failed to (?:run|initialize) cutlass FP4 gemm on sm12", POSSIBLE),
    line(r"FP4 GEMM with \w+ quantization is not supported on SM12\d"),
    line(r"Failed to initialize cutlass FP4 gemm on sm10[03]"),
    line(r"No compiled nvfp4 mm kernel|(?:TGV GEMM|cute-?dsl).{0,20}requires SM ?_?10", LIKELY),
    near(
        r"hard-?coded|unconditionally|always (?:picks|chooses|uses)|routed? to",
        r"cute-?dsl|trtllm|cudnn|sm_?10[0x]",
        r"mxfp4|nvfp4|mm_fp4|\bFP4 (?:gemm|linear)",
        sure=LIKELY,
        within=2,
    ),
    line(
        r"\b(?:mm_fp4|bmm_fp4|fp4_gemm|mm_fp8|mm_mxfp8)\b.{0,80}(?:(?:only|does not) support|supports only"
        r"|not supported|unsupported).{0,40}(?:capability|sm_?1|SM ?1|10\.0)?|does not support mm_fp4",
        LIKELY,
    ),
)
FIX = (
    "vLLM: --linear-backend marlin; VLLM_NVFP4_GEMM_BACKEND=marlin or cutlass in older versions",
    "SGLang: --fp4-gemm-backend auto (or flashinfer_cutlass)",
)
EXPLAINS = ()
