"""A thinking budget is asked for, and the server has no reasoning configuration.

Detects: requests with a thinking budget that are refused.
Why: the budget is kept by closing the thinking, and the server knows how only with a reasoning parser or
  configuration.
Evidence: the validation error.
Remedy: set the parser, or send no budget.
References: gb10.md E123; https://github.com/vllm-project/vllm/blob/main/vllm/v1/engine/input_processor.py
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, line, near

CODE = "LAPI011"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "thinking budget without a reasoning configuration"
CAUSE = "thinking-budget-needs-reasoning-config"
SIGNS = (
    line(r"thinking_token_budget is set but", CERTAIN),
    near(r"thinking_token_budget", r"http 400|BadRequest|rejected|refused|hangs", sure=LIKELY, within=2),
)
FIX = (
    "serve with --reasoning-parser of the model's family (and --reasoning-config where the version wants it)",
    "or take thinking_token_budget out of the request and of the server's defaults",
)
EXPLAINS = ()
