"""Secrets of the gateway that others can read or change.

Detects: the private key of the certificate can be read by all users of the head; or the keys file gives group or
  others any right. A group that may read the key (as Debian's ssl-cert) is somebody's choice and not told.
Why: who has the private key can play the server; who may write the keys file gives himself a key. Its hashes alone
  open nothing.
Evidence: mode and file.
Remedy: chmod.
References: chmod(1).
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.rule import Context

CODE = "DOOR005"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "secrets of the gateway are open to other users"


def check(context: Context) -> Iterator[Finding]:
    gateway = context.gateway
    if gateway and gateway.keys_mode and not gateway.keys_mode.endswith("00"):
        yield _finding(gateway.node, gateway.keys_mode, gateway.keys_file, "600")
    if gateway and gateway.pair and gateway.pair.key_mode[-1:] not in ("", "0"):
        yield _finding(gateway.node, gateway.pair.key_mode, gateway.pair.key, "o=")


def _finding(node: str, mode: str, path: str, wanted: str) -> Finding:
    return Finding(
        CODE,
        SEVERITY,
        node,
        f"{path} is open to other users",
        f"stat: {mode} {path}",
        "sparkwright writes its own files 0600: somebody changed it, or it was copied",
        f"on {node}: chmod {wanted} {path}",
    )
