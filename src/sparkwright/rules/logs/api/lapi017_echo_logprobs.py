"""A completion with echo and logprobs stops the server.

Detects: reports of an SGLang server that ends after a completions request with echo and logprobs.
Why: bounded replay of a sliding-window model keeps no states for prompt tokens, and the scheduler fails instead of
  refusing the request.
Evidence: both parameters named with the crash.
Remedy: a guard in front, or no echo.
References: gb10.md E113 (one source)
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import POSSIBLE, near

CODE = "LAPI017"
STATUS = "preview"
SEVERITY = Severity.WARN
TITLE = "echo with logprobs stops SGLang"
CAUSE = "echo-logprobs-stops-server"
SIGNS = (
    near(
        r"\becho\W{0,6}(=|:|true|and|\+|with)|echo\+logprobs",
        r"logprobs",
        r"stops|crash|dies|kill|exit|down",
        sure=POSSIBLE,
        within=2,
    ),
)
FIX = (
    "refuse echo with logprobs in the proxy (400)",
    "use /generate with return_logprob for scoring",
)
EXPLAINS = ()
