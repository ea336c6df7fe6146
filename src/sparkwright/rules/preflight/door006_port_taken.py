"""The front door's port is taken.

Detects: a socket listens on `serving.door.port` of the head, and it is not this deployment's own door.
Why: Caddy cannot start beside it. The engine serves on loopback without a front door.
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
TITLE = "the front door's port is taken"


def check(context: Context) -> Iterator[Finding]:
    door = context.door
    if door and door.holder and not door.ours:
        who = "a program of another user" if door.holder == "?" else door.holder
        yield Finding(
            CODE,
            SEVERITY,
            door.node,
            f"port {door.port} is taken by {who}: no front door",
            f"ss: port {door.port} {door.holder}",
            "something listens there already, another deployment's door perhaps, and two cannot",
            f"stop it (on {door.node}: sudo ss -ltnp 'sport = :{door.port}'), or set another serving.door.port",
        )
