"""What ssh's complaint means for the user. That the connection failed is known from structure (see node_script);

the wording only chooses the advice, and unknown wording is passed on as it is.
"""

import re
import shlex

from sparkwright.domain.errors import Unreachable

_CHANGED = re.compile(r"Host key for (?P<host>\S+) has changed")
_OFFENDING = re.compile(r"Offending \S+ key in (?P<file>.+):(?P<line>\d+)")

_TROUBLES: tuple[tuple[str, str, str], ...] = (
    ("could not resolve", "no such host name", "correct the node's `ssh:` in the cluster file, or add the name to DNS"),
    ("name or service not known", "no such host name", "correct the node's `ssh:` in the cluster file"),
    ("connection refused", "connection refused", "is sshd running there, on this port? `systemctl status ssh` on it"),
    ("timed out", "no answer in time", "is the machine on and on this network? try `ping`; a firewall drops silently"),
    ("no route to host", "no route to host", "is the machine on and on this network? try `ping`"),
    ("network is unreachable", "network unreachable", "this machine has no way to that network: check its own link"),
    ("permission denied", "it accepts none of your keys", "load the key (`ssh-add`) or install it: `{copy_id}`"),
    ("too many authentication failures", "it accepts none of your keys", "name the key by IdentityFile in ssh_config"),
    ("bad configuration option", "ssh's configuration is broken", "correct the file and line named above"),
    ("bad owner or permissions", "ssh refuses a file's permissions", "`chmod 600` the file named above"),
    ("can't open user config file", "the ssh config file cannot be read", "correct --ssh-config"),
)


def translate(node: str, destination: str, stderr: str, ssh: str) -> Unreachable:
    """The error for a connection that was not made. ssh: how the user would call it by hand."""
    if changed := _OFFENDING.search(stderr):
        return _changed(node, changed["file"], changed["line"], _host(stderr, destination))
    if "Host key verification failed" in stderr:
        hint = f"run `{ssh}` once, compare the fingerprint with the one on the node's console, and accept it"
        return Unreachable(node, f"its host key is not known here ({destination})", hint)
    detail = _last_line(stderr)
    for words, what, hint in _TROUBLES:
        if words in stderr.lower():
            advice = hint.format(copy_id=ssh.replace("ssh", "ssh-copy-id", 1))
            return Unreachable(node, f"{what} ({detail})", advice)
    return Unreachable(node, f"no ssh connection to {destination}: {detail}", f"try `{ssh}` by hand")


def broken(node: str, stderr: str) -> Unreachable:
    """The error for a connection that ended while a command ran."""
    hint = "the command may still be running there: look again when the node answers"
    return Unreachable(node, f"connection lost while a command ran ({_last_line(stderr)})", hint)


def _changed(node: str, file: str, line: str, host: str) -> Unreachable:
    message = f"the host key of {host} has CHANGED: it is not the one in {file} line {line}"
    remove = shlex.join(("ssh-keygen", "-f", file, "-R", host))
    hint = (
        "either the machine was reinstalled or somebody stands in between. First verify the new fingerprint on the "
        f"node's console (`ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub`); only then remove the old one: `{remove}`"
    )
    return Unreachable(node, message, hint)


def _host(stderr: str, destination: str) -> str:
    found = _CHANGED.search(stderr)
    return found["host"] if found else destination.rpartition("@")[2]


def _last_line(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return lines[-1] if lines else "ssh said nothing"
