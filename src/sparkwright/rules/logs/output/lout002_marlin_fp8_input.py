"""FP8 input to Marlin corrupts the output.

Detects: Marlin with FP8 activations.
Why: the W4A8 variant of the Marlin MoE kernel gives wrong sums on sm_121a; the gain would be about 2.5 %.
Evidence: the variable with the value fp8 and repeated or broken text.
Remedy: leave the variable out.
References: vLLM issue 49546
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line, near

CODE = "LOUT002"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "FP8 input to Marlin corrupts the output"
CAUSE = "marlin-fp8-input-corrupts-output"
SIGNS = (
    line(r"VLLM_MARLIN_INPUT_DTYPE.{0,160}(?:corrupt|garbage|wrong|loop|gibberish|repeat)"),
    line(r"VLLM_MARLIN_INPUT_DTYPE\W{1,6}fp8", LIKELY),
    near(
        r"W4A8[- ]?FP8|marlin.{0,20}W4A8|W4A8.{0,20}marlin",
        r"corrupt|garbage|gibberish|repeat\w*|</think> loop|wrong (?:output|result)",
        sure=LIKELY,
        within=3,
    ),
)
FIX = ("unset VLLM_MARLIN_INPUT_DTYPE",)
EXPLAINS = ()
