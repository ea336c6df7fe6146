"""The gateway's port is taken.

Detects: a socket listens on `serving.door.port` of the head, and it is not this deployment's own gateway.
Why: Caddy cannot start beside it. The engine serves on loopback without a gateway.
Evidence: port and program as `ss` tells them; another user's program has no name there.
Remedy: stop it, or set another port.
References: ss(8).
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.rule import Context

CODE = "DOOR006"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the gateway's port is taken"


def check(context: Context) -> Iterator[Finding]:
    gateway = context.gateway
    if gateway and gateway.holder and not gateway.ours:
        who = "a program of another user" if gateway.holder == "?" else gateway.holder
        yield Finding(
            CODE,
            SEVERITY,
            gateway.node,
            f"port {gateway.port} is taken by {who}: no gateway",
            f"ss: port {gateway.port} {gateway.holder}",
            "something listens there already, another deployment's gateway perhaps, and two cannot",
            f"stop it (on {gateway.node}: sudo ss -ltnp 'sport = :{gateway.port}'), or set another serving.door.port",
        )
