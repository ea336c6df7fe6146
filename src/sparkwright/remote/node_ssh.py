"""The ssh access of one node to others for a supervisor: a key of its own, an own configuration, and nothing
accepted."""

import shlex
from collections.abc import Sequence
from dataclasses import replace

from sparkwright.domain.command import Command
from sparkwright.domain.finding import Fix
from sparkwright.domain.service import Reach
from sparkwright.remote.host import script, script_texts

_sh = script_texts(__name__)

_MOST = 6  # addresses of a worker that are tried
_OWN_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")
REWRITE = _sh("rewrite")
_HOST = """\
Host {name}
  HostName {last}
  Port {port}
  User {user}
  HostKeyAlias {name}
"""
# The first address that takes a connection: a cut fabric does not cut the way, nor a lost management network.
_MATCH = """\
Match originalhost {name} exec "timeout 2 bash -c 'exec 2>/dev/null; : </dev/tcp/{address}/{port}'"
  HostName {address}
"""
_ALL = """\
Host *
{keys}  IdentitiesOnly yes
  UserKnownHostsFile "{home}/ssh/known_hosts"
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  UpdateHostKeys no
  BatchMode yes
  ConnectTimeout 3
  ServerAliveInterval 5
  ServerAliveCountMax 3
"""


def make_key(home: str, tag: str) -> Command:
    """Prints its public half as `TYPE BASE64`; the same at every call."""
    made = script(_sh("key"), home, tag, changes=f"make an ssh key in {home}")
    return replace(made, typed=f"ssh-keygen -q -t ed25519 -N '' -f {shlex.quote(home)}/ssh/id_ed25519")


def attempt(home: str, node: str, addresses: Sequence[str]) -> Command:
    """The command on the head that prints `ADDRESS <tab> ok`, or ssh's last line, for each address."""
    return script(_sh("try"), home, node, *addresses[:_MOST], timeout=40)


def authorize(line: str, tag: str) -> Command:
    return script(REWRITE + 'rewrite "$2" "$1"', line, tag, timeout=60, changes=f"let {tag} in by ssh")


def public_key(home: str) -> Command:
    """Prints what `make_key` does; nothing where it has made none."""
    return script('cut -d" " -f1,2 "$1/ssh/id_ed25519.pub" 2>/dev/null', home)


def admit_node(node: str, line: str, tag: str) -> Fix:
    """The fix with the effect of `authorize`, undone exactly: a file that was made for it goes."""
    who = tag.partition(":")[2]
    look = script('grep -cxF -- "$1" "$HOME/.ssh/authorized_keys" 2>/dev/null', line)
    do = script(REWRITE + _sh("let_in"), line, tag, timeout=60, changes=f"let {who} in by ssh")
    undo = script(REWRITE + _sh("let_out"), tag, timeout=60, changes=f"let {who} in no more")
    typed = replace(do, typed=f"echo {shlex.quote(line)} >>~/.ssh/authorized_keys")
    back = replace(undo, typed=f"sed -i '/ {tag}$/d' ~/.ssh/authorized_keys")
    return Fix(node, f"{who} may log in by ssh", (typed,), (back,), look, "1", root=False)


def authorized_line(key: str, sources: Sequence[str], tag: str) -> str:
    """The line of authorized_keys: commands only, and only from these addresses."""
    return f'restrict,from="{",".join(sources)}" {key} {tag}'


def config(home: str, ways: Sequence[tuple[str, Reach]]) -> str:
    """ways: (node, how it is reached; addresses the best first)."""
    keys = [f'"{_plain(home)}/ssh/id_ed25519"', *(f"~/.ssh/{name}" for name in _OWN_KEYS)]
    all_nodes = _ALL.format(home=_plain(home), keys="".join(f"  IdentityFile {key}\n" for key in keys))
    return "\n".join([*(_way(name, reach) for name, reach in ways), all_nodes])


def _way(name: str, reach: Reach) -> str:
    tried = reach.addresses[:_MOST]
    first = "".join(_MATCH.format(name=name, address=one, port=reach.port) for one in tried[:-1])
    return first + _HOST.format(name=name, last=tried[-1], port=reach.port, user=reach.user)


def known_hosts(ways: Sequence[tuple[str, Reach]]) -> str:
    return "".join(f"{name} {key}\n" for name, reach in ways for key in reach.keys)


def _plain(path: str) -> str:
    """ssh expands `%` in paths."""
    return path.replace("%", "%%")
