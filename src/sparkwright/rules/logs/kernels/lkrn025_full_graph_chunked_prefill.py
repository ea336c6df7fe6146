"""Full CUDA graphs with chunked prefill hang on SM 12.x.

Detects: an engine that stops decoding after a few requests with full CUDA graphs.
Why: the graph mode FULL_AND_PIECEWISE together with chunked prefill wedges on SM 12.x; nothing is logged. Reports
  differ on which part is at fault.
Evidence: reports that name the mode and the hang; a log has no line of its own.
Remedy: PIECEWISE graphs.
References: vLLM issue 40969; field guide E95
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line, near

CODE = "LKRN025"
STATUS = "preview"
SEVERITY = Severity.BLOCK
TITLE = "full CUDA graphs with chunked prefill hang on SM 12.x"
CAUSE = "full-cudagraph-chunked-prefill-hang-sm12x"
SIGNS = (
    near(
        r"\bhangs?\b|hanging|\bhung\b|wedge[sd]?\b|stuck|stalls?\b|freez|deadlock|no more tokens|0 decode",
        r"(?<!Mode\.)FULL_AND_PIECEWISE|(?<!Mode\.)FULL_DECODE_ONLY|cudagraph_mode.{0,12}FULL"
        r"|full cuda ?graphs?",
        r"chunked.?prefill|mixed prefill(?:s| and|,)|\d requests|requests later",
        sure=LIKELY,
        within=2,
    ),
    near(
        r"\bhangs?\b|wedge[sd]?\b|stuck\b|deadlock",
        r"(?<!Mode\.)FULL_AND_PIECEWISE|cudagraph_mode.{0,12}FULL",
        sure=POSSIBLE,
        within=2,
        unless=r"590\.",
    ),
    line(r"hangs? after ~?\d+\W{1,3}\d* ?requests", POSSIBLE),
)
FIX = (
    '--compilation-config \'{{"cudagraph_mode": "PIECEWISE"}}\'   # or NONE to make sure',
    "NCCL 2.30.4 or later on both nodes",
    "--enforce-eager shows whether graphs are the reason (slow)",
)
EXPLAINS = ()
