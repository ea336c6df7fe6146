"""The registry cannot be reached.

Detects: pulls that fail at name resolution, connection or the TLS handshake.
Why: no route to the internet, a proxy that Docker does not know, or a slow resolver; a fabric default route takes
  the traffic away.
Evidence: the daemon's network error with the registry's host.
Remedy: repair name resolution and proxy for the daemon, or copy the image.
References: https://docs.docker.com/engine/daemon/proxy/
"""

from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import LIKELY, POSSIBLE, line

CODE = "LIMG019"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "registry cannot be reached"
CAUSE = "registry-unreachable"
SIGNS = (
    line(
        r"(/v2/|registry|docker\.io|nvcr\.io|ghcr\.io|quay\.io).{0,240}(no such host|i/o timeout"
        r"|tls handshake timeout|context deadline exceeded|network is unreachable|connection refused"
        r"|connection reset|server misbehaving)",
        LIKELY,
    ),
    line(r"(no such host|i/o timeout|server misbehaving).{0,80}(registry|docker\.io|nvcr\.io|ghcr\.io)", LIKELY),
    line(r"client\.timeout exceeded while awaiting headers", POSSIBLE),
)
FIX = (
    "curl -sI https://registry-1.docker.io/v2/ | head -1; resolvectl query nvcr.io",
    "ip route get 1.1.1.1   # not over the fabric",
    "or: docker save {image} | ssh {peer} docker load",
)
EXPLAINS = ()
