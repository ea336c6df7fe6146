"""A notebook server is open to the network.

Detects: a socket of jupyter beyond loopback and the fabric, or on port 8888 without a program's name.
Why: whoever gets in runs programs as its user; images for experiments often start it without a token.
Evidence: address, port and program as `ss` tells them.
Remedy: bind it to 127.0.0.1 and go there through ssh.
References: https://jupyter-server.readthedocs.io/en/latest/operators/security.html
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.listening import exposed, judged, said
from sparkwright.rules.rule import Context

CODE = "SEC005"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "a notebook server is open to the network"

_PORT = 8888


def check(context: Context) -> Iterator[Finding]:
    for facts, listener in exposed(context):
        if listener.process.startswith("jupyter") or (listener.port == _PORT and not listener.process):
            yield Finding(
                CODE,
                judged(facts, SEVERITY),
                facts.node,
                f"port {listener.port} ({listener.process or 'usual for Jupyter'}) is open to the network",
                said(listener),
                "it was started on all addresses; whether it wants a token cannot be told from outside",
                "jupyter lab --ip 127.0.0.1, and from the laptop: ssh -L 8888:127.0.0.1:8888 NODE",
            )
