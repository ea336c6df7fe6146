"""The audit log of a node: one line for each thing that sparkwright changed there, written by the same round trip."""

import os
import pwd
import shlex
import socket

# The log may not be writable (disk full, home read-only) and `down` must work all the same: the shell's complaint
# then stands in the command's stderr, and the command runs.
_NOTE = """(
umask 077; d=$(x @STATE@); mkdir -p "$d" &&
printf '%s %s\\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" @REST@ >>"$d/audit.log"
) </dev/null 3<&-
"""


def whoami() -> str:
    """`user@host` of this machine, for the audit log and leases."""
    uid = os.getuid()
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        user = str(uid)
    return f"{user}@{socket.gethostname()}"


def note(state: str, who: str, what: str) -> str:
    """Shell text that appends `TIME who what` to the audit log under `state` (`~` is expanded on the node)."""
    rest = shlex.quote(" ".join(f"{who} {what}".split()))
    return _NOTE.replace("@STATE@", shlex.quote(state)).replace("@REST@", rest)
