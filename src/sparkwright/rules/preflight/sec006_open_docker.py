"""Docker's daemon takes orders from the network without a key.

Detects: a socket on port 2375 beyond loopback.
Why: whoever reaches it is root on the node. 2376 is the same with certificates, and is not blamed.
Evidence: address, port and program as `ss` tells them.
Remedy: no TCP socket: ssh reaches the daemon too.
References: https://docs.docker.com/engine/security/protect-access/
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.listening import exposed, said
from sparkwright.rules.rule import Context

CODE = "SEC006"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "Docker's daemon is open to the network"

_PORT = 2375


def check(context: Context) -> Iterator[Finding]:
    for facts, listener in exposed(context):
        if listener.port == _PORT:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                "whoever reaches port 2375 is root here",
                said(listener),
                "dockerd was given -H tcp://0.0.0.0:2375",
                "take it out of /etc/docker/daemon.json or the unit; from elsewhere: DOCKER_HOST=ssh://NODE docker ps",
            )
