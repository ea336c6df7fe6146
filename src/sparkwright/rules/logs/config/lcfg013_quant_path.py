"""Quantized experts are loaded as BF16.

Detects: A quantized checkpoint that takes several times its size in memory while it loads.
Why: the quantized path was not selected for the experts, so they are expanded and the node runs out of memory.
Evidence: The note that experts are expanded or dequantized.
Remedy: Check that the log names the quantized MoE kernel, and stop if it does not.
References: field guide E 86
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, near

CODE = "LCFG013"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "quantized experts are loaded as BF16"
CAUSE = "quantized-experts-expanded-to-bf16"
SIGNS = (
    near(
        r"experts?",
        r"(?:expand|blow-?up|blown up|dequanti[sz]ed|upcast|unpacked) .{0,20}(?:bf16|bfloat16)"
        r"|bf16 (?:expert )?blow-?up",
        sure=LIKELY,
        within=1,
    ),
)
FIX = (
    "grep -iE 'moe backend|quantization' <log>   # must name the quantized path",
    "take the engine release that is known for this checkpoint: `sparkwright recipes show {recipe}`",
)
EXPLAINS = ()
