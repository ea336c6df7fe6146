"""No Caddy on the head node.

Detects: neither a program `caddy` on the head's PATH nor the image caddy:2 in its Docker.
Why: the gateway is Caddy: without it there are no keys, no TLS, and nobody says when the engine will be back.
  The engine serves on loopback (or the fabric), and is supervised all the same.
Evidence: what was looked for and not found.
Remedy: install the package, or pull the image; then the same `up` again.
References: https://caddyserver.com/docs/install
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.rule import Context

CODE = "DOOR001"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "no Caddy on the head node: no gateway"


def check(context: Context) -> Iterator[Finding]:
    gateway = context.gateway
    if gateway and not gateway.caddy and not gateway.image:
        yield Finding(
            CODE,
            SEVERITY,
            gateway.node,
            "no Caddy: the engine serves without a gateway",
            "no `caddy` on the PATH, no image caddy:2",
            "the gateway is Caddy on the head node, and it is neither installed nor pulled there",
            f"on {gateway.node}: sudo apt-get install caddy && sudo systemctl disable --now caddy, "
            "or docker pull caddy:2; then the same `sparkwright up` again",
        )
