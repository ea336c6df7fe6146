"""A tool call is cut by max_tokens and still sent as whole.

Detects: reports of tool calls with broken JSON arguments at the token limit.
Why: the budget ends inside the call; some builds then say finish_reason tool_calls, so the client parses half of an
  object.
Evidence: the words of the report: cut arguments together with the limit.
Remedy: a larger max_tokens, and a client that checks the JSON.
References: gb10.md E121 (one source)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import POSSIBLE, near

CODE = "LAPI013"
STATUS = "preview"
SEVERITY = Severity.WARN
TITLE = "tool call truncated by max_tokens"
CAUSE = "tool-call-truncated-by-max-tokens"
SIGNS = (
    near(
        r"tool[_ ]calls?|arguments",
        r"truncated|cut (off|short)|unterminated|incomplete json|invalid json",
        r"max_(completion_)?tokens|token limit",
        sure=POSSIBLE,
        within=2,
        unless=r"parser",
    ),
)
FIX = (
    "raise max_tokens for requests with tools (4096 and more)",
    "let the client refuse arguments that are no whole JSON object",
)
EXPLAINS = ()
