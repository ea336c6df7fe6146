"""Keys and prompts in the clear.

Detects: `serving.door.tls: off` with `serving.expose: all`.
Why: whoever can listen in on the network reads every prompt and answer, and the keys with them.
Evidence: the recipe's two values.
Remedy: leave `tls` as it is by default; clients trust the CA's root certificate that `up` fetches.
References: docs/security.md.
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.recipe import Expose, GatewayTls
from sparkwright.rules.rule import Context

CODE = "DOOR008"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "keys and prompts travel in the clear"


def check(context: Context) -> Iterator[Finding]:
    gateway, serving = context.gateway, context.recipe.serving if context.recipe else None
    if gateway and serving and serving.door.tls is GatewayTls.OFF and serving.expose is Expose.ALL:
        yield Finding(
            CODE,
            SEVERITY,
            gateway.node,
            "the gateway is open to the network without TLS",
            "serving.door.tls: off, serving.expose: all",
            "the recipe switches TLS off, perhaps for something in front of it that has its own",
            "remove `tls: off`, or let expose be loopback or fabric behind your own proxy on this node",
        )
