"""Weight-only Marlin kernels instead of native FP4 or FP8.

Detects: the warning that the GPU has no native support and that Marlin will be used.
Why: on sm_12x the engines take Marlin for FP4 weights. It is the reliable path there, and often the faster one for
  decoding.
Evidence: the warning itself; captures m2-head.log and v4-1m-s6.log ran well with it.
Remedy: none; keep Marlin unless a measured recipe says otherwise.
References: seed 001; gb10.md D2, E55;
  https://github.com/vllm-project/vllm/blob/main/vllm/model_executor/layers/quantization/utils/marlin_utils_fp4.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, POSSIBLE, line, near

CODE = "LBEN001"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "Marlin weight-only kernels: expected on this chip"
CAUSE = "benign-marlin-weight-only-warning"
SIGNS = (
    line(r"does not have native support for (MX|NV)?FP[48]", POSSIBLE),
    line(r"weight-only FP[48] compression will|lacks native FP[48] compute; using weight-only", POSSIBLE),
    line(r"Marlin\w{0,8}LinearKernel is a weight-only", HINT),
    near(
        r"marlin",
        r"weight-only|no native FP4|fallback|slower",
        r"harmless|as expected|still works|can be ignored",
        sure=POSSIBLE,
        within=2,
        unless=r"error|garbage|corrupt|\[kernel",
    ),
)
FIX = ()
EXPLAINS = ()
