"""The CUTLASS NVFP4 MoE kernel reads out of bounds.

Detects: an illegal memory access in FlashInfer's CUTLASS MoE.
Why: the grouped FP4 kernel writes outside its buffer for some shapes on SM 12.x; the error shows at the next call,
  often a memset of the output.
Evidence: the access error under the frames of the fused MoE.
Remedy: Marlin for the experts.
References: field guide E56
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LKRN031"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "the CUTLASS NVFP4 MoE kernel reads out of bounds"
CAUSE = "nvfp4-moe-cutlass-illegal-access"
SIGNS = (
    line(r"cudaMemsetAsync\(final_output", LIKELY),
    near(
        r"flashinfer_cutlass_fused_moe|cutlass_fused_moe|trtllm::fused_moe|FlashInferCutlassExperts",
        r"illegal memory access|cudaErrorIllegalAddress",
        sure=LIKELY,
        within=25,
    ),
    near(
        r"NVFP4.{0,40}MoE|FLASHINFER_CUTLASS",
        r"illegal memory access|cudaErrorIllegalAddress",
        sure=POSSIBLE,
        within=6,
    ),
)
FIX = (
    "--moe-backend marlin",
    "docker ps shows the container Up although the engine is dead: restart it ({deployment})",
)
EXPLAINS = ()
