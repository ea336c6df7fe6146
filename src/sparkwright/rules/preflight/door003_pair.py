"""A certificate that cannot serve.

Detects: with `serving.door.tls: files`, a certificate or key on the head that is missing, not readable for the ssh
  user, no PEM, does not fit the other, has expired or is not yet valid.
Why: Caddy would not start, or every client would refuse the connection. The internal CA serves in its place: clients
  that trust it get in, others do not.
Evidence: the files, and what openssl says of them. The key itself never leaves the node.
Remedy: by what is wrong; then the same `up` again.
References: openssl-x509(1), openssl-pkey(1).
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.gateway_facts import PairTrouble
from sparkwright.rules.rule import Context

CODE = "DOOR003"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the given certificate cannot serve; the internal CA does"

_SAID = {
    PairTrouble.NO_CERTIFICATE: ("the certificate cannot be read", "give the ssh user the right to read it"),
    PairTrouble.NO_KEY: ("the key cannot be read", "give the ssh user, and nobody else, the right to read it"),
    PairTrouble.BAD_CERTIFICATE: ("the certificate is no PEM certificate", "put a PEM chain there"),
    PairTrouble.BAD_KEY: ("the key is no PEM key without a passphrase", "put the key there without a passphrase"),
    PairTrouble.DIFFERS: ("certificate and key do not belong together", "put the key there that it was issued for"),
    PairTrouble.EXPIRED: ("the certificate has expired", "renew it"),
    PairTrouble.EARLY: ("the certificate is not valid yet", "set the node's clock, or wait"),
}


def check(context: Context) -> Iterator[Finding]:
    pair = context.gateway.pair if context.gateway else None
    if context.gateway and pair and pair.trouble:
        what, hint = _SAID[pair.trouble]
        until = f", valid until {pair.until}" if pair.until else ""
        yield Finding(
            CODE,
            SEVERITY,
            context.gateway.node,
            what,
            f"certificate {pair.certificate}, key {pair.key}{until}",
            "serving.door.tls is `files`; a certificate of the head's own CA is used in their place",
            f"on {context.gateway.node}: {hint}, then the same `sparkwright up` again",
        )
