"""One long prompt starves the running answers.

Detects: decoding that nearly stops while a long prompt is read.
Why: prompt chunks take the whole token budget of a step; the larger the chunk, the longer all others wait.
Evidence: reports or client figures: 0 to 8 tok/s during a prefill.
Remedy: smaller chunks.
References: field guide E104, E108
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, near

CODE = "LPRF004"
STATUS = "preview"
SEVERITY = Severity.WARN
TITLE = "one long prompt starves the running answers"
CAUSE = "prefill-starves-decode"
SIGNS = (
    near(
        r"prefill",
        r"starv\w*|decodes (?:drop|fall|stall)|decoding stalls",
        sure=LIKELY,
        within=2,
    ),
    near(
        r"\b(?:long|large|1M) (?:prompt|prefill)|\dK (?:prompt|prefill)",
        r"(?:other|running|concurrent) (?:requests?|users?|streams?)",
        r"\b[0-8] tok(?:ens)?/s|stall|freeze|stops?",
        sure=LIKELY,
        within=3,
    ),
)
FIX = (
    "--max-num-batched-tokens 2048 for agents, with --long-prefill-token-threshold 1024 (vLLM)",
    "SGLang: --chunked-prefill-size 2048",
)
EXPLAINS = ()
