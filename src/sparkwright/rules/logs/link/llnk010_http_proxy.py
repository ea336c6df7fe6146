"""A proxy gets requests that are meant for this machine.

Detects: requests to a local address that a proxy answers with 403, 407 or 50x, and proxy errors for local addresses.
Why: http_proxy is set and NO_PROXY lacks localhost, 0.0.0.0 or the nodes; the server's own warm-up, health checks and
  clients then ask the proxy.
Evidence: a full URL in the request line is what a client sends to a proxy.
Remedy: NO_PROXY with all local addresses, or no proxy for the server.
References: https://github.com/sgl-project/sglang/issues/9155
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import CERTAIN, LIKELY, POSSIBLE, line, near

CODE = "LLNK010"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "a proxy takes requests to local addresses"
CAUSE = "http-proxy-intercepts-local-requests"
_LOCAL = r"(?:0\.0\.0\.0|127\.0\.0\.1|localhost|10\.\d+\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.)"
SIGNS = (
    line(r"\"(?:GET|POST|HEAD|CONNECT) http://" + _LOCAL + r"[^\"]{0,200}\" (?:403|407|5\d\d)", CERTAIN),
    line(r"ProxyError.{0,300}" + _LOCAL, LIKELY),
    line(r"(?:cannot|unable to) connect to proxy", POSSIBLE, unless=r"huggingface|hf\.co|pypi|docker|github"),
    line(r"X-Squid-Error|ERR_ACCESS_DENIED|squid/\d", LIKELY),
    near(
        r"\b(?:https?_proxy|no_proxy|all_proxy)\b",
        r"localhost|127\.0\.0\.1|0\.0\.0\.0|local (?:request|address)|warm-?up re|health|get_model_info",
        sure=LIKELY,
        within=4,
        unless=r"huggingface|docker pull|OLLAMA_",
    ),
    near(r"代理", r"127\.0\.0\.1|localhost|本地|0\.0\.0\.0|no_proxy", sure=LIKELY, within=2),
    line(r"proxy.{0,60}(?:intercept|swallow|answers|catches).{0,60}(?:local|health|warm|request)", LIKELY),
    near(
        r"http_proxy|HTTPS?_PROXY|no_proxy|\bsquid\b|corporate proxy",
        r"\b50[234] |HTTP 50[234]|HTTP 403|Bad Gateway|Service Unavailable|Forbidden|times? out",
        r"localhost|127\.0\.0\.1|192\.168\.|/v1/|/health",
        sure=0.7,
        within=3,
    ),
    line(r"trust_env.{0,80}(?:\b50[234]\b|\b40[37]\b|\bhangs?\b|time[sd]? ?out|proxy)", LIKELY),
    line(r"Connection to " + _LOCAL + r"\S{0,12} failed\.?<|The system returned: ?(?:<\w+>)?\(11[013]\)", 0.85),
    line(r"cache administrator is|The requested URL could not be retrieved", LIKELY),
)
FIX = (
    "export NO_PROXY=localhost,127.0.0.1,0.0.0.0,{head},{peer} no_proxy=localhost,127.0.0.1,0.0.0.0,{head},{peer}",
    "or: docker run ... -e http_proxy= -e HTTP_PROXY= ...",
)
EXPLAINS = ()
