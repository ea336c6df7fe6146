"""The audit log of a node: one line for each thing that sparkwright changed there, written by the same round trip."""

import os
import pwd
import shlex
import socket

from sparkwright.remote.host import texts

_sh = texts(__name__)


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
    return _sh("note").replace("@STATE@", shlex.quote(state)).replace("@REST@", rest)
