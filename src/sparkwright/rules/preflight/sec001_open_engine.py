"""An inference endpoint that others may reach, started by somebody else.

Detects: a socket of a program with an engine's name, or on the usual ports 8000, 8080, 30000 and 1234 (unless another
  program's name is told), that listens beyond loopback and the fabric, and is no rank of ours. Beside a rank of ours
  only the usual ports count: engines open others, on all addresses, to meet their peers.
Why: these servers ask for no key unless they were given one: whoever reaches the port reads prompts, spends the GPU
  and, with some of them, loads code. Whether it asks for a key cannot be told from outside.
Evidence: address, port and program as `ss` tells them.
Remedy: bind it to 127.0.0.1, or give it a key. Behind a firewall this is only told.
References: https://docs.vllm.ai/en/latest/usage/security/
"""

from collections.abc import Iterator

from sparkwright.domain.facts import Listener
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.foreign import engine_of
from sparkwright.rules.listening import exposed, judged, likely, said
from sparkwright.rules.reading import running
from sparkwright.rules.rule import Context

CODE = "SEC001"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "an inference endpoint is open to the network"

_PORTS = {8000: "vLLM and others", 8080: "llama-server, Open WebUI", 30000: "SGLang", 1234: "LM Studio"}
_OTHERS = ("Ollama", "Ray")  # rules of their own


def check(context: Context) -> Iterator[Finding]:
    for facts, listener in exposed(context):
        what = _what(listener)
        if what and (listener.port in _PORTS or not running(facts)):
            yield Finding(
                CODE,
                judged(facts, SEVERITY),
                facts.node,
                f"port {listener.port} ({what}) is open to the network",
                said(listener),
                "it was started on all addresses, and asks for a key only if it was given one",
                "bind it to 127.0.0.1 (--host 127.0.0.1, or -p 127.0.0.1:PORT:PORT), or give it an API key",
            )


def _what(listener: Listener) -> str:
    engine = engine_of(listener.process)
    usual = _PORTS.get(listener.port, "") if likely(listener) else ""
    return "" if engine in _OTHERS else engine or (f"usual for {usual}" if usual else "")
