"""Weights and images: what a node has, and bringing it what it lacks."""

from collections.abc import Sequence
from dataclasses import dataclass

from sparkwright.commands.host import script
from sparkwright.domain.command import Command

_LIST = r"""
one() { printf 'path\t%s\nroot\t%s\nrevision\t%s\n' "$1" "$2" "$3"
  [ -e "$1" ] || return 0
  find -L "$1" -type f -printf 'file\t%s\t%P\n' 2>/dev/null
  find "$1" -xtype l -printf 'broken\t%P\n'
  find "$2" -name '*.incomplete' -printf 'incomplete\t%P\n' 2>/dev/null
  for i in "$1"/*.safetensors.index.json; do
    [ -f "$i" ] && grep -o '"[^"]*\.safetensors"' "$i" | sort -u | sed 's/^/shard\t/'
  done
  [ -f "$1/config.json" ] && { printf 'config\t'; tr -d '\n\t' < "$1/config.json"; echo; }; :; }
"""
_HUB = (
    _LIST
    + r"""
root="$(x "$1")/models--$(printf %s "$2" | sed 's,/,--,g')"; rev="$3"
if [ -z "$rev" ] || [ "$rev" = main ]; then
  if [ -f "$root/refs/main" ]; then
    rev=$(cat "$root/refs/main"); [ "$(printf %s "$rev" | wc -c)" = "$(wc -c < "$root/refs/main")" ] || echo badref
  elif [ -d "$root/snapshots" ]; then echo noref; rev=$(ls -t "$root/snapshots" | head -1); else rev=; fi
elif [ -f "$root/refs/$rev" ]; then rev=$(cat "$root/refs/$rev"); fi
if [ -n "$rev" ]; then one "$root/snapshots/$rev" "$root" "$rev"; else one "" "$root" ""; fi
"""
)


def list_hub(hub: str, model: str, revision: str) -> Command:
    """A model in a Hugging Face hub cache; the listing is read by facts.checkpoint."""
    return script(_HUB, hub, model, revision, timeout=60)


def list_path(path: str) -> Command:
    """A model folder or a GGUF file."""
    return script(_LIST + 'p=$(x "$1"); one "$p" "$p" ""', path, timeout=60)


def peer() -> Command:
    """What another node must know to log in here: `USER PORT HOME`, then the public host keys."""
    text = r"""set -- ${SSH_CONNECTION:-- - - 22}; printf '%s %s %s\n' "$(id -un)" "$4" "$HOME"
    cat /etc/ssh/ssh_host_*_key.pub 2>/dev/null"""
    return script(text)


@dataclass(frozen=True, slots=True)
class Peer:
    """How a node reaches another over the fabric. known_hosts: lines for its address. local: both are this machine."""

    user: str
    address: str
    port: int
    known_hosts: str
    local: bool = False


# The target's host keys were read over the connection that the user's own known_hosts vouches for.
_RSH = r"""
k=$(mktemp) || exit 1; trap 'rm -f "$k"' EXIT; trap 'exit 143' TERM INT HUP
printf '%s' "$1" > "$k"
rsh="ssh -o BatchMode=yes -o ConnectTimeout=10 -o StrictHostKeyChecking=yes -o UserKnownHostsFile=$k"
rsh="$rsh -o LogLevel=ERROR -p $2"
at="$3"; shift 3
"""
_CLEAN = r"""
# GNU dd drops a file's pages without root: 150 GB of page cache would otherwise stand in the way of the load.
find -L "$s" -type f -exec dd if={} iflag=nocache count=0 status=none \; 2>/dev/null
"""
_CLEAN_THERE = (
    r"""sh -c 'sync; find -L "$1" -type f -exec dd if={} iflag=nocache count=0 status=none \; 2>/dev/null' sh "'$d'" """
)


def copy_tree(source: str, target: str, peer: Peer, timeout: float = 6 * 3600) -> Command:
    """rsync of a folder (or one file) from the node that runs this to the peer: resumable, with `progress2` output.

    source and target are absolute. Exit code: rsync's (255: no ssh to the peer, 11/23: no space or partial).
    """
    rsync = "rsync -a --partial-dir=.sparkwright-partial --info=progress2 --no-inc-recursive"
    head = 's="$1"; d="$2"; [ -d "$s" ] && t=/ || t=\n'
    if peer.local:
        text = f'{head}mkdir -p "${{d%/*}}" && {rsync} "$s$t" "$d$t"; rc=$?\n{_CLEAN}\nexit $rc'
        return script(text, source, target, timeout=timeout, changes=f"copy {source} to {target}")
    text = f"""{_RSH}{head}$rsh "$at" mkdir -p "'${{d%/*}}'" && {rsync} -e "$rsh" "$s$t" "$at:$d$t"; rc=$?
{_CLEAN}
[ $rc -ne 0 ] || $rsh "$at" {_CLEAN_THERE}
exit $rc"""
    return _to_peer(text, peer, (source, target), timeout, f"copy {source} to {peer.address}")


def copy_image(reference: str, peer: Peer, timeout: float = 2 * 3600) -> Command:
    """`docker save` here, `docker load` there; dd tells bytes so far on stderr."""
    text = _RSH + (
        'o=$(mktemp); { docker save "$1" || echo save >"$o"; } | dd bs=1M status=progress | $rsh "$at" docker load\n'
        "rc=$?\n"
        'if [ -s "$o" ]; then rc=1; fi; rm -f "$o"; exit $rc'
    )
    return _to_peer(text, peer, (reference,), timeout, f"copy image {reference} to {peer.address}")


def _to_peer(text: str, peer: Peer, args: Sequence[str], timeout: float, changes: str) -> Command:
    words = (peer.known_hosts, str(peer.port), f"{peer.user}@{peer.address}", *args)
    command = script(text, *words, timeout=timeout, changes=changes)
    return Command(command.argv, timeout=timeout, changes=changes, forward_agent=True)


def known_hosts(address: str, port: int, public_keys: Sequence[str]) -> str:
    """known_hosts lines for an address from `ssh_host_*_key.pub` lines."""
    name = address if port == 22 else f"[{address}]:{port}"
    return "".join(f"{name} {' '.join(key.split()[:2])}\n" for key in public_keys if len(key.split()) >= 2)


_DOWNLOAD = r"""
h=$(x "$1"); t=$(x "$4"); mkdir -p "$h"
if [ -s "$t" ]; then HF_TOKEN=$(cat "$t"); export HF_TOKEN; rm -f "$t"; fi
hf=$(command -v hf || ls "$HOME/.local/bin/hf" 2>/dev/null || command -v huggingface-cli) || exit 127
HF_HUB_OFFLINE=0 exec "$hf" download "$2" --cache-dir "$h" ${3:+--revision "$3"} 2>&1
"""


def download(hub: str, model: str, revision: str, token_file: str) -> Command:
    """The hub's own client on the node (`hf`); resumable. token_file: 0600, read and removed. Exit 127: no client."""
    changes = f"hf download {model} {revision}".strip()
    return script(_DOWNLOAD, hub, model, revision, token_file, timeout=12 * 3600, changes=changes)
