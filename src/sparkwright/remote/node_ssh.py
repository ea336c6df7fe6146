"""How one node reaches others by ssh for a supervisor: a key of its own, an own configuration, and nothing accepted."""

from collections.abc import Sequence

from sparkwright.domain.command import Command
from sparkwright.domain.service import Reach
from sparkwright.remote.host import script

_MOST = 6  # addresses of a worker that are tried
_OWN_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")
_KEY = r"""
umask 077; d="$1/ssh"; mkdir -p "$d" || exit 1
[ -s "$d/id_ed25519" ] && [ -s "$d/id_ed25519.pub" ] || {
  rm -f "$d/id_ed25519" "$d/id_ed25519.pub"; ssh-keygen -q -t ed25519 -N '' -C "$2" -f "$d/id_ed25519" || exit 1; }
cut -d' ' -f1,2 "$d/id_ed25519.pub"
"""
# All at once: a cut cable costs its timeout once.
_TRY = r"""
c="$1/ssh/config"; n="$2"; shift 2
for a in "$@"; do
  ( e=$(ssh -F "$c" -o HostName="$a" -o ControlPath=none -o ConnectTimeout=5 -- "$n" true 2>&1 </dev/null) && e=ok
    printf '%s\t%s\n' "$a" "$(printf %s "$e" | tail -n 1)" ) &
done
wait; exit 0
"""
# `rewrite TAG LINE`: ours under TAG becomes LINE, or nothing; prints `was` for a change. The file is replaced as a
# whole, under a lock, and only if nobody else has written it meanwhile: who loses it has no way in. Without locks there
# (NFS) that must do.
REWRITE = r"""
mark() { stat -c '%i %s %y %z' "$1" 2>/dev/null; }
rewrite() (
  umask 077; d="$HOME/.ssh"; n=; mkdir -p "$d" || exit 1
  exec 8<"$d"; flock -E 9 -w 30 8; [ $? != 9 ] || { echo "$d is locked by another process since 30 s" >&2; exit 1; }
  k=$(readlink -f "$d/authorized_keys") || exit 1
  rm -f "${k%/*}"/.authorized_keys.sparkwright.*
  trap 'rm -f "$n"' EXIT; trap 'exit 143' TERM INT HUP
  i=0; while [ $i -lt 50 ]; do
    i=$((i+1)); before=$(mark "$k"); n=$(mktemp "${k%/*}/.authorized_keys.sparkwright.XXXXXX") || exit 1
    if [ -e "$k" ]; then
      awk -v t="$1" '$NF != t' "$k" > "$n" && { chown --reference="$k" "$n" 2>/dev/null ||
        [ "$(stat -c %u "$n")" = "$(stat -c %u "$k")" ]; } || exit 1
    fi
    { [ -z "$2" ] || printf '%s\n' "$2" >> "$n"; } || exit 1
    ! cmp -s "$k" "$n" || exit 0
    { [ ! -e "$k" ] || chmod --reference="$k" "$n"; } && sync "$n" || exit 1
    if [ "$before" = "$(mark "$k")" ]; then mv -fT "$n" "$k" && sync "${k%/*}" && echo was; exit; fi
    rm -f "$n"
  done
  echo "$k is being written by somebody else all the time" >&2; exit 1
)
"""
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
    return script(_KEY, home, tag, changes="make the supervisor's ssh key")


def attempt(home: str, node: str, addresses: Sequence[str]) -> Command:
    """From the head: prints `ADDRESS <tab> ok`, or ssh's last line, for each."""
    return script(_TRY, home, node, *addresses[:_MOST], timeout=40)


def authorize(line: str, tag: str) -> Command:
    return script(REWRITE + 'rewrite "$2" "$1"', line, tag, timeout=60, changes=f"let {tag} in by ssh")


def authorized_line(key: str, sources: Sequence[str], tag: str) -> str:
    """For authorized_keys: commands only, and only from these addresses."""
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
