"""Ray's ports are open to the network.

Detects: Ray's dashboard (8265), its store (6379) or client port (10001) beyond loopback and the fabric, where no
  rank of ours runs on Ray.
Why: Ray runs what it is sent and asks nobody: the dashboard's job interface was used to take over thousands of
  clusters (CVE-2023-48022).
Evidence: address, port and program as `ss` tells them.
Remedy: bind it to the fabric address, or to 127.0.0.1.
References: CVE-2023-48022; https://docs.ray.io/en/latest/ray-security/
"""

from collections.abc import Iterator

from sparkwright.domain.facts import Listener
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.listening import exposed, judged, likely, runs, said
from sparkwright.rules.rule import Context

CODE = "SEC003"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "Ray is open to the network"

_PORTS = {8265: "dashboard", 10001: "client port"}
_STORE = 6379
_PROGRAMS = ("gcs_server", "raylet", "ray::", "ray-")


def check(context: Context) -> Iterator[Finding]:
    for facts, listener in exposed(context):
        what = "" if runs(facts, "vllm") else _what(listener)
        if what:
            yield Finding(
                CODE,
                judged(facts, SEVERITY),
                facts.node,
                f"Ray's {what} takes work from everybody",
                said(listener),
                "ray start was given no address of its own; Ray has no keys",
                "ray stop; then ray start --node-ip-address FABRIC_ADDRESS --dashboard-host 127.0.0.1",
            )


def _what(listener: Listener) -> str:
    """6379 is Redis' port too: only with Ray's own program."""
    if listener.port == _STORE and listener.process.startswith(_PROGRAMS):
        return "store"
    return _PORTS.get(listener.port, "") if likely(listener, *_PROGRAMS) else ""
