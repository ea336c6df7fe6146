"""Graph capture across nodes takes hours.

Detects: a capture whose progress bar counts hours.
Why: full graphs with collectives over the network are captured step by step with both ranks in lockstep; 4.75 h
  were seen.
Evidence: the elapsed time in the progress bar.
Remedy: piecewise graphs.
References: field guide E69
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, line, near

CODE = "LGRA007"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "graph capture across nodes takes hours"
CAUSE = "full-graph-capture-takes-hours"
SIGNS = (
    line(r"^(?=.*Captur\w+ (?:batches|CUDA)).*\[\d+:\d\d:\d\d<.{0,40}s/it", LIKELY),
    near(
        r"(?:graph|FULL) captur\w+",
        r"\d hours",
        sure=LIKELY,
        within=1,
    ),
)
FIX = (
    '--compilation-config \'{{"cudagraph_mode": "PIECEWISE"}}\'',
    "fewer sizes: --max-cudagraph-capture-size 64 (vLLM), --cuda-graph-max-bs 16 (SGLang)",
)
EXPLAINS = ()
