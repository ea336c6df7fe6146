"""The checkpoint has no scales for the FP8 KV cache.

Detects: notices about scaling factors of the KV cache, and about the quantized format.
Why: most checkpoints carry none; 1.0 is what nearly all published recipes with an FP8 cache run with. A model that
  answers badly with it should be tried without FP8 cache.
Evidence: the notice.
Remedy: none.
References: captures m2-head.log; https://docs.vllm.ai/en/latest/features/quantization/quantized_kvcache.html
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import HINT, line

CODE = "LBEN020"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "KV cache scales of 1.0"
CAUSE = "benign-kv-scale-default"
SIGNS = (
    line(
        r"using kv cache scaling factor 1\.0|uncalibrated q_scale|checkpoint does not provide a q scaling factor", HINT
    ),
    line(r"kv cache dtype.{0,60}no scaling factors? provided", HINT),
    line(r"please note that the format is experimental", HINT),
    line(
        r"w1_weight_\w*scale\w* must match w3_weight|encountered negative scales"
        r"|global scale is different for parallel layers",
        HINT,
    ),
)
FIX = ()
EXPLAINS = ()
