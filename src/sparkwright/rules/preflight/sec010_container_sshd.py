"""A second ssh server is open to the network.

Detects: a program sshd on port 2222 or 2233, beyond loopback and the fabric.
Why: TensorRT-LLM's multi-node guides start one in a container on the host's network, often with root and with the
  key of an example; it stays after the run.
Evidence: address, port and program as `ss` tells them.
Remedy: end the container, or bind the server to the fabric address.
References: https://github.com/NVIDIA/dgx-spark-playbooks (trt-llm: sshd on 2233)
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.listening import exposed, said
from sparkwright.rules.rule import Context

CODE = "SEC010"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "a second ssh server is open to the network"

_PORTS = (2222, 2233)


def check(context: Context) -> Iterator[Finding]:
    for facts, listener in exposed(context):
        if listener.port in _PORTS and listener.process in ("", "sshd"):
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                f"an ssh server listens on port {listener.port}",
                said(listener),
                "multi-node containers bring one of their own, which stays after the run",
                f"see whose it is: docker ps; sudo ss -ltnp 'sport = :{listener.port}'; end what is not needed",
            )
