"""A keys file that cannot be read.

Detects: the head's keys file is no JSON of ours, or of a newer sparkwright.
Why: a gateway that starts with it knows no key and answers 401 to everybody; one that runs keeps what it read before.
Evidence: the file, and what is wrong with it.
Remedy: put back the last good one, or move it away and make new keys.
References: docs/security.md.
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.rule import Context

CODE = "DOOR007"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the keys of the gateway cannot be read"


def check(context: Context) -> Iterator[Finding]:
    gateway = context.gateway
    if not gateway or not gateway.keys_wrong:
        return
    yield Finding(
        CODE,
        SEVERITY,
        gateway.node,
        "the keys cannot be read: nobody gets in with one",
        f"{gateway.keys_file}: {gateway.keys_wrong}",
        "it was edited by hand, cut short by a full disk, or written by a newer sparkwright",
        f"on {gateway.node}: mv {gateway.keys_file} {gateway.keys_file}.bad; then `sparkwright keys add NAME`",
    )
