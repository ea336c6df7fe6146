"""Ollama listens to the network.

Detects: a socket of ollama, or on port 11434, beyond loopback and the fabric.
Why: Ollama knows no keys at all: whoever reaches it runs, pulls and deletes models.
Evidence: address, port and program as `ss` tells them.
Remedy: OLLAMA_HOST=127.0.0.1, which is its default.
References: https://docs.ollama.com/faq (how to expose Ollama)
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.listening import exposed, judged, likely, said
from sparkwright.rules.rule import Context

CODE = "SEC002"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "Ollama is open to the network"

_PORT = 11434


def check(context: Context) -> Iterator[Finding]:
    for facts, listener in exposed(context):
        if listener.process.startswith("ollama") or (listener.port == _PORT and likely(listener)):
            yield Finding(
                CODE,
                judged(facts, SEVERITY),
                facts.node,
                "Ollama answers everybody, without a key",
                said(listener),
                "OLLAMA_HOST was set to all addresses; Ollama has no keys",
                "sudo systemctl edit ollama   # [Service] Environment=OLLAMA_HOST=127.0.0.1:11434; then restart it",
            )
