"""The client gives up before the first token.

Detects: time-outs of client libraries and aborted requests.
Why: a long prompt takes minutes before its first token (a million tokens: a quarter of an hour on two GB10), and
  clients wait 60 to 600 s.
Evidence: the client's time-out, together with a server that aborts the request and lives on.
Remedy: a longer time-out, streaming, shorter prompts.
References: gb10.md D1a (time to first token), F3; https://github.com/openai/openai-python
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import POSSIBLE, line, near

CODE = "LAPI015"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "client timeout shorter than the prefill"
CAUSE = "client-timeout-shorter-than-prefill"
SIGNS = (
    line(r"openai\.APITimeoutError|APITimeoutError\W", POSSIBLE),
    line(r"httpx\.ReadTimeout", POSSIBLE),
    near(
        r"client (disconnect\w*|timed? ?out|gave up|closed)|aborted request",
        r"timeout|timed out|prefill|first token",
        sure=POSSIBLE,
        within=4,
    ),
)
FIX = (
    "client: OpenAI(timeout=3600), stream=True",
    "curl http://{head}:{port}/metrics | grep num_requests   # whether the engine works on it",
)
EXPLAINS = ()
