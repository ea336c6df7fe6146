"""A llama.cpp RPC worker is open to the network.

Detects: a socket of rpc-server, or on port 50052, beyond loopback and the fabric, where no llama.cpp rank of ours
  runs.
Why: the protocol has no keys and writes into the worker's memory; its own authors say never to run it on an open
  network.
Evidence: address, port and program as `ss` tells them.
Remedy: bind it to the fabric address.
References: https://github.com/ggml-org/llama.cpp (tools/rpc, its warning)
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.listening import exposed, judged, likely, runs, said
from sparkwright.rules.rule import Context

CODE = "SEC004"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "a llama.cpp RPC worker is open to the network"

_PORT = 50052
_PROGRAMS = ("rpc-server", "ggml-rpc")


def check(context: Context) -> Iterator[Finding]:
    for facts, listener in exposed(context):
        foreign = listener.process.startswith(_PROGRAMS) or (listener.port == _PORT and likely(listener))
        if foreign and not runs(facts, "llama-cpp"):
            yield Finding(
                CODE,
                judged(facts, SEVERITY),
                facts.node,
                "a llama.cpp RPC worker lets everybody write into its memory",
                said(listener),
                "it was started with -H 0.0.0.0; the protocol has no keys",
                "start it with -H FABRIC_ADDRESS, the address of the link between the nodes",
            )
