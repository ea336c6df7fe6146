"""A certificate that ends soon.

Detects: the certificate of `serving.door.tls: files` ends within 14 days and is good until then.
Why: on that day no client connects any more, and it will look like a broken engine.
Evidence: its end as openssl prints it.
Remedy: renew it.
References: openssl-x509(1).
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.rule import Context

CODE = "DOOR004"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the gateway's certificate ends within 14 days"


def check(context: Context) -> Iterator[Finding]:
    pair = context.gateway.pair if context.gateway else None
    if context.gateway and pair and pair.soon and not pair.trouble:
        yield Finding(
            CODE,
            SEVERITY,
            context.gateway.node,
            "the certificate ends soon",
            f"{pair.certificate}: valid until {pair.until or 'a day within 14 days'}",
            "certificates are given for a limited time",
            f"on {context.gateway.node}: renew {pair.certificate}, then the same `sparkwright up` again",
        )
