"""Routes answer without the key.

Detects: reports that routes outside /v1 answer without a key.
Why: vLLM checks the key for /v1 only; /tokenize, /invocations, /metrics, /load and others answer anybody who
  reaches the port.
Evidence: the routes named together with the missing check; captures open-routes.json shows it for 0.21.0.
Remedy: listen on loopback or the fabric only, with a proxy in front.
References: gb10.md E130; captures vllm-0.21.0-speculation-agent/open-routes.json
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, near

CODE = "LAPI022"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "API key does not cover all routes"
CAUSE = "api-key-leaves-routes-open"
SIGNS = (
    near(
        r"/invocations|/tokenize|/metrics|/scale_elastic_ep",
        r"unauthenticated|without (a |the |any )?(api )?key|no auth\w*|not covered|open to",
        r"api[- ]?key|bearer|\bauth",
        sure=LIKELY,
        within=2,
    ),
)
FIX = (
    "serve with --host 127.0.0.1 and let a proxy with authentication pass /v1 only",
    "sparkwright check   # finds world-open endpoints",
)
EXPLAINS = ()
