"""No FP8 linear kernel can run here.

Detects: the choice of a linear kernel for FP8 weights that ends empty.
Why: --linear-backend marlin leaves Marlin alone as a candidate, and Marlin refuses FP8 on GPUs with native FP8;
  mixed NVFP4/FP8 checkpoints meet this. The list of reasons follows the error.
Evidence: the ValueError with `Failed to find a kernel that can implement`.
Remedy: force Marlin, or do not restrict the backend.
References: vLLM model_executor/kernels/linear
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line, near

CODE = "LKRN010"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "no FP8 linear kernel can run here"
CAUSE = "fp8-linear-no-kernel-sm12x"
SIGNS = (
    line(r"Failed to find a kernel that can implement the (?:ScaledMM|MXFP8|FP8|Int8)\w* linear layer"),
    line(r"Failed to find a kernel that can implement", LIKELY),
    near(
        r"choose_scaled_mm_linear_kernel|init_fp8_linear_kernel|choose_fp8\w*_kernel",
        r"ValueError|NotImplementedError|RuntimeError",
        sure=LIKELY,
        within=8,
    ),
    line(r"No compiled cutlass_scaled_mm for a compute capability less than", LIKELY),
    line(r"Unsupported SM version for FP8 block scaling GEMM", LIKELY),
    line(r"torch\._scaled_mm is only supported on CUDA devices with compute capability", LIKELY),
    line(
        r"fp8_blockwise_scaled_mm.{0,80}(?:not implemented|not supported|No implemented)"
        r"|No implemented fp8_blockwise_scaled_mm",
        LIKELY,
    ),
    line(r"No implemented (?:fp8|int8)\w*_scaled_mm for current compute capability", 0.9),
    line(r"No MXFP8 (?:dense )?GEMM kernel is available|block FP8 requested .{0,60}hardware does not support", 0.85),
)
FIX = (
    "export VLLM_TEST_FORCE_FP8_MARLIN=1   # lets Marlin take FP8 layers",
    "or drop --linear-backend, so that another FP8 kernel can be chosen",
)
EXPLAINS = ()
