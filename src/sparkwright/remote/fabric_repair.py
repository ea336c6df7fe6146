"""Small changes that `check --fix` makes to the link and to a model cache, each with a look at it and its way back."""

import shlex
from dataclasses import replace

from sparkwright.domain.command import Command
from sparkwright.domain.finding import Fix
from sparkwright.remote.host import script

_MTU = r"""LC_ALL=C ip -o link show dev "$1" | sed -n 's/.* mtu \([0-9]*\).*/\1/p'"""


def mtu_fix(node: str, interface: str, mtu: int, before: int) -> Fix:
    says = f"{interface}: MTU {before} -> {mtu}, until the next boot (netplan keeps it)"
    do, undo = set_mtu(interface, mtu), set_mtu(interface, before)
    return Fix(node, says, (do,), (undo,), script(_MTU, interface), str(mtu))


def mode_fix(node: str, path: str, mode: str, before: str) -> Fix:
    look = script('exec stat -c %a -- "$R$1"', path)
    return Fix(node, f"{path}: mode {before} -> {mode}", (set_mode(path, mode),), (set_mode(path, before),), look, mode)


def ref_fix(node: str, store: str, entry: str, text: str) -> Fix:
    """The text without the blanks around it. The look counts bytes first: what differs may be a newline."""
    bare = text.strip()
    do, undo = (write_ref(store, entry, one) for one in (bare, text))
    look = script('f="$(x "$1")/$2/refs/main"; wc -c <"$f"; cat "$f"', store, entry)
    says = f"{store}/{entry}/refs/main: {text!r} -> {bare!r}"
    return Fix(node, says, (do,), (undo,), look, f"{len(bare)}\n{bare}", root=False)


def set_mtu(interface: str, mtu: int) -> Command:
    """Until the next boot: what is written in netplan or NetworkManager stays as it is."""
    text = 'exec ip link set dev "$1" mtu "$2"'
    words = f"ip link set dev {interface} mtu {mtu}"
    return replace(script(text, interface, str(mtu), changes=words), typed=f"sudo {words}")


def set_mode(path: str, mode: str) -> Command:
    made = script('exec chmod -- "$1" "$R$2"', mode, path, changes=f"chmod {mode} {path}")
    return replace(made, typed=f"sudo chmod {mode} {shlex.quote(path)}")


def write_ref(store: str, entry: str, text: str) -> Command:
    """refs/main of a hub entry holds exactly this text; `~` in store is the user's home."""
    place = 'printf %s "$3" >"$(x "$1")/$2/refs/main"'
    made = script(place, store, entry, text, changes=f"write {store}/{entry}/refs/main")
    return replace(made, typed=f"printf {shlex.quote(text)} >{store}/{entry}/refs/main".replace("\n", r"\n"))
