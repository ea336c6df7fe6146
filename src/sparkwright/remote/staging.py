"""Weights and images: what a node has, and how the rest is copied to it."""

import json
from collections.abc import Sequence

from sparkwright.domain.cluster import Transfer
from sparkwright.domain.command import Command
from sparkwright.domain.values import dataclass, replace
from sparkwright.remote.host import assigned, script, script_texts
from sparkwright.remote.programs import sender
from sparkwright.remote.programs.wire import COPYING, PARTIAL

# Before the tensors of a GGUF file is mostly its tokenizer: 6 to 10 MB, and a third of it when packed.
_GGUF_HEAD = 12 * 1024 * 1024
# Real headers of safetensors files are below 2 MB; this bounds what one of a model's author costs to read.
LONGEST_HEADER = 25_000_000
_sh = script_texts(__name__, PARTIAL=PARTIAL, COPYING=COPYING, GGUF=str(_GGUF_HEAD), LONGEST=str(LONGEST_HEADER))
LISTING = _sh("parts", "heads", "list")


def list_hub(hub: str, model: str, revision: str) -> Command:
    """A model in a Hugging Face hub cache; the listing is read by facts.checkpoint."""
    return script(LISTING + _sh("hub"), hub, model, revision, timeout=60)


def list_path(path: str) -> Command:
    """A model folder or a GGUF file."""
    return script(LISTING + 'p=$(x "$1"); one "$p" "$p" ""', path, timeout=60)


def peer_login() -> Command:
    """The facts another node needs to log in here: `USER PORT HOME`, then the public host keys."""
    text = r"""set -- ${SSH_CONNECTION:-- - - 22}; printf '%s %s %s\n' "$(id -un)" "$4" "$HOME"
    cat /etc/ssh/ssh_host_*_key.pub 2>/dev/null"""
    return script(text)


@dataclass(frozen=True, slots=True)
class Peer:
    """The way of a node to another over the fabric. known_hosts: lines for its address. local: both are this machine.

    name, source: of the two nodes, for messages. patience: seconds after which one that is silent is given up.
    """

    user: str
    address: str
    port: int
    known_hosts: str
    local: bool = False
    name: str = ""
    source: str = ""
    patience: float = 60.0


_LOCALLY = 'rsh=; at=\nthere() { sh -c "$1"; }\n'
_THERE = 'there() { $rsh -- "$at" "sh -c \'$1\'"; }\n'


def copy_tree(source: str, target: str, peer: Peer, limit: int = 0) -> Command:
    """rsync of a folder (or one file) from the node that runs this to the peer: resumable, with `progress2` output.

    source and target are absolute. limit: bytes a second, 0: none. Exit code: ssh's 255 when there is no way to the
    peer, 127 without rsync there or here, else rsync's (11: no space there, 12: cut off). A folder counts as unfinished
    until it was `settle`d.
    """
    copy, words, timeout = _sh("parts", "copy"), (source, target, str(limit // 1024)), 6 * 3600.0
    if peer.local:
        return script(_LOCALLY + copy, *words, timeout=timeout, changes=f"copy {source} to {target}")
    return _to_peer(_sh("rsh") + _THERE + copy, peer, words, timeout, f"copy {source} to {peer.address}")


_PUSH = 'PATH="$PATH:/usr/local/bin"; python3 -I -S - "$1" "$at" $rsh 2>&1'


@dataclass(frozen=True, slots=True)
class Chain:
    """A copy through several nodes, each of which sends on what it receives.

    follows: another node sends to this one. leads: the peer sends to another one.
    """

    name: str = ""
    follows: bool = False
    leads: bool = False


_ALONE = Chain()


def push_tree(source: str, target: str, peer: Peer, how: Transfer, chain: Chain = _ALONE) -> Command:
    """Copies like `copy_tree`, over several connections, verified by checksums. Exit code: see push.py; 127: no
    python3."""
    asked = {"source": source, "target": target, "streams": how.streams, "limit": how.limit, "chain": chain.name}
    asked |= {"follows": chain.follows, "leads": chain.leads, "yields": how.yields}
    asked |= {"peer": peer.name, "from": peer.source, "patience": peer.patience}
    words = json.dumps(asked)
    timeout = 6 * 3600.0
    if peer.local:
        made = script(_LOCALLY + _PUSH, words, timeout=timeout, changes=f"copy {source} to {target}")
    else:
        made = _to_peer(_sh("rsh") + _PUSH, peer, (words,), timeout, f"copy {source} to {peer.address}")
    return replace(made, stdin=sender().encode())


def settle(path: str) -> Command:
    """Cleans up after a complete copy or download at its target: nothing is unfinished, and the page cache is clean.

    Leftovers of earlier downloads of this model (`*.incomplete`) go: all that they were to become is there.
    """
    return script(_sh("parts", "settle"), path, "all", timeout=900, changes=f"{path} is complete: remove *.incomplete")


def drop_cache(path: str) -> Command:
    """Takes a model's files out of the page cache of this node."""
    return script(_sh("parts", "settle"), path, "", timeout=900)


def copy_image(reference: str, peer: Peer, timeout: float = 2 * 3600) -> Command:
    """`docker save` here, `docker load` there; dd prints bytes so far on stderr."""
    words = (reference, copied_tag(reference))
    return _to_peer(_sh("rsh", "copy_image"), peer, words, timeout, f"copy image {reference} to {peer.address}")


def inspect_image(reference: str) -> Command:
    """Prints `ID SIZE NAME@DIGEST ...` of an image on this node, pulled or copied; exit 1 when it is not there."""
    return script(_sh("image"), reference, copied_tag(reference))


def copied_tag(reference: str) -> str:
    """The name of a copied image whose reference is a digest; '' for one with a tag, which copies keep."""
    name, at, digest = reference.partition("@sha256:")
    if not at:
        return ""
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}{last.partition(':')[0]}:sparkwright-{digest[:16]}"


def _to_peer(text: str, peer: Peer, args: Sequence[str], timeout: float, changes: str) -> Command:
    words = (str(peer.port), f"{peer.user}@{peer.address}", *args)
    command = script(assigned(known_hosts=peer.known_hosts) + text, *words, timeout=timeout, changes=changes)
    return Command(command.argv, timeout=timeout, changes=changes, forward_agent=True)


def known_hosts(address: str, port: int, public_keys: Sequence[str]) -> str:
    """known_hosts lines for an address from `ssh_host_*_key.pub` lines."""
    name = address if port == 22 else f"[{address}]:{port}"
    return "".join(f"{name} {' '.join(key.split()[:2])}\n" for key in public_keys if len(key.split()) >= 2)


def download(hub: str, model: str, revision: str, token: str) -> Command:
    """The hub's own client on the node (`hf`), resumable, with lines `N bytes`. Exit 127: no client.

    token: '' for none; it goes by stdin, so that it is in no argv, file or log.
    """
    changes = f"hf download {model} {revision}".strip()
    stdin = f"{token}\n".encode()
    return script(_sh("download"), hub, model, revision, timeout=12 * 3600, changes=changes, stdin=stdin)
