"""A Caddy that hides cut streams.

Detects: the head's Caddy is older than 2.7.6.
Why: when the engine dies in the middle of a streamed answer, older ones end the stream as if it were whole: the client
  takes half an answer for all of it, and nobody sees an error.
Evidence: what `caddy version` prints. The gateway's tests show it on 2.6.2 and not on 2.11.
Remedy: a newer Caddy. Debian 12, 13 and Ubuntu 24.04 have 2.6.2; Caddy's own packages and image are newer.
References: https://github.com/caddyserver/caddy/issues/5951, https://github.com/caddyserver/caddy/pull/5952
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.version import within
from sparkwright.rules.rule import Context

CODE = "DOOR002"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "this Caddy ends streams that were cut as if they were whole"

HIDES = "<2.7.6"


def check(context: Context) -> Iterator[Finding]:
    gateway = context.gateway
    if gateway and gateway.caddy and within("caddy", gateway.version, HIDES):
        yield Finding(
            CODE,
            SEVERITY,
            gateway.node,
            f"Caddy {gateway.version} hides cut streams",
            f"{gateway.caddy} version: {gateway.version}; wanted 2.7.6 or later",
            "before 2.7.6 a stream that its engine left unfinished reaches the client as if it were whole",
            "install Caddy from its own packages (https://caddyserver.com/docs/install), then `sparkwright up` again; "
            "until then clients must look for `data: [DONE]`",
        )
