"""The CUTLASS FP8 GEMM fails on SM 12.x.

Detects: `Error Internal` out of CUTLASS's scaled matrix product.
Why: the image has the kernel for another generation (or a CUDA 12 build of it), so CUTLASS cannot launch it on SM
  12.1; the first profiling run meets it.
Evidence: the file and line of the CUTLASS caller with its status.
Remedy: Marlin, or a fitting image.
References: vLLM csrc/quantization/w8a8/cutlass
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LKRN011"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the CUTLASS FP8 GEMM fails on SM 12.x"
CAUSE = "cutlass-fp8-gemm-internal-error-sm12x"
SIGNS = (
    line(r"cutlass_gemm_caller.{0,200}Error Internal"),
    near(
        r"cutlass_scaled_mm|cutlass_gemm_caller|fp8_scaled_mm",
        r"Error Internal|cutlass.{0,40}kInternal|CUTLASS error",
        sure=CERTAIN,
        within=12,
    ),
    line(r"Failed to (?:run|initialize) cutlass (?:MX)?FP8 gemm.{0,40}(?:sm ?12\d|Error)"),
    near(
        r"fp8_scaled_mm|fp8_blockwise_scaled_mm",
        r"gemm executio\w* failed|can_implement|kSuccess",
        sure=LIKELY,
        within=8,
    ),
    near(
        r"cutlass.{0,40}\bfp8|fp8\b.{0,40}cutlass",
        r"error internal|internal error",
        sure=LIKELY,
        within=3,
    ),
)
FIX = (
    "--linear-backend marlin --moe-backend marlin",
    "or an image whose FP8 kernels are built for sm_121 (CUDA 13)",
)
EXPLAINS = ()
