"""Addresses, routes and MTU of a node's fabric ports, with a rollback on the node that only the new path can stop."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sparkwright.domain.command import Command
from sparkwright.domain.fabric_facts import Route
from sparkwright.domain.finding import Fix
from sparkwright.remote.host import script, script_texts

MTU = 9000
# Seconds for the other nodes to come in over the new path before a node takes its settings back.
HEALS_AFTER = 60
_ROLLBACK = "sh /var/lib/sparkwright/fabric/rollback.sh now"
_HEADERS = 28  # IPv4 and ICMP
_sh = script_texts(__name__)

Setting = tuple[str, str, tuple[Route, ...]]  # interface, ADDRESS/PREFIX, routes


def read_wires(interfaces: Sequence[str]) -> Command:
    """Lines `IF mac MAC`, `IF seen MAC`, `IF manager NAME` of these, `IF guarded` of any that must stay as they are."""
    return script(_sh("wires"), *interfaces, timeout=20.0)


def reached(ways: Sequence[tuple[str, str]]) -> Command:
    """Lines `IF reached ADDRESS MAC` for the addresses that answer. ways: interface here, address there."""
    return script(_sh("reached"), *(word for way in ways for word in way), timeout=15.0)


def send_hello(interfaces: Sequence[str]) -> Command:
    """The command for all nodes at the same time, as root: more lines `IF seen MAC`."""
    return script(_sh("raised") + _sh("hello"), *interfaces, timeout=25.0)


def claimed(ways: Sequence[tuple[str, str]]) -> Command:
    """The command, as root, that prints lines `IF claimed ADDRESS MAC` of machines with one of these addresses on that
    wire."""
    return script(_sh("raised") + _sh("claimed"), *(word for way in ways for word in way), timeout=15.0)


def fabric_fix(node: str, manager: str, settings: Sequence[Setting], heals_after: float = HEALS_AFTER) -> Fix:
    """manager: nmcli, netplan or networkd. `do` leaves the rollback armed: `confirm` or `undo` must follow.

    heals_after: seconds.
    """
    rows = [(name, address, str(MTU), " ".join(_pairs(routes))) for name, address, routes in settings]
    words, ports = [word for row in rows for word in row], [name for name, _, _ in settings]
    sets = "\n".join(" ".join((name, f"MTU {MTU}", address, *_pairs(routes))) for name, address, routes in settings)
    look = script(_sh("look"), *words)
    says = f"{', '.join(f'{name} {address}' for name, address, _ in settings)}, MTU {MTU}, by {manager}"
    given = (manager, f"{heals_after:.0f}", _sh("rollback"), commands(manager, settings, trial=True))
    applied = script(_sh("apply"), *given, *ports, timeout=100.0, changes=says)
    settled = script(_sh("settled"), sets, look.argv[2], *words, changes=f"settings of {node}'s ports in force")
    do = (
        replace(applied, typed=commands(manager, settings)),
        replace(settled, typed="# and wait until they are in force"),
    )
    back = Command(("sh", "-c", f"[ ! -e /var/lib/sparkwright/fabric/manager ] || {_ROLLBACK}"), timeout=60.0)
    undo = replace(back, changes=f"fabric ports of {node} as before", typed=f"sudo {_ROLLBACK}")
    return Fix(node, says, do, (undo,), look, sets)


def prove(folder: str, peer: str, ways: Sequence[tuple[str, str]]) -> Command:
    """Prints the token that stops the peer's rollback. ways: interface here, address of the peer."""
    words = [word for way in ways for word in way]
    return script(_sh("prove"), folder, peer, str(MTU - _HEADERS), *words, timeout=45.0)


def confirm(token: str) -> Command:
    return script(_sh("confirm"), token, timeout=30.0, changes="keep the fabric settings over boots")


def _pairs(routes: Sequence[Route]) -> list[str]:
    return [f"{route.destination},{route.gateway}" for route in routes]


def commands(manager: str, settings: Sequence[Setting], trial: bool = False) -> str:
    """Shell lines that set it up, as a person would paste them. trial: by root, and gone with the next boot."""
    root, sudo = ("/run", "") if trial else ("/etc", "sudo ")
    if manager == "nmcli":
        return "\n".join(sudo + line for one in settings for line in _nmcli(*one, save="no" if trial else "yes"))
    if manager == "netplan":
        path = f"{root}/netplan/90-sparkwright.yaml"
        content = ["network:", "  version: 2", "  ethernets:", *(line for one in settings for line in _yaml(*one))]
        lines = [*_tee(path, content, sudo), f"{sudo}chmod 600 {path}", f"{sudo}netplan generate"]
    else:
        files = [(f"{root}/systemd/network/05-sparkwright-{one[0]}.network", _unit(*one)) for one in settings]
        lines = [line for path, content in files for line in _tee(path, content, sudo)]
    ports = " ".join(name for name, _, _ in settings)
    return "\n".join([*lines, f"{sudo}networkctl reload", f"{sudo}networkctl reconfigure {ports}"])


def _tee(path: str, content: Sequence[str], sudo: str) -> Iterator[str]:
    """No heredoc: its end must not be indented, and what is shown is."""
    yield f"{sudo}mkdir -p {path.rpartition('/')[0]}"
    yield "printf '%s\\n' \\"
    yield from (f"  {shlex.quote(line)} \\" for line in content)
    yield f"  | {sudo}tee {path} >/dev/null"


def _nmcli(name: str, address: str, routes: Sequence[Route], save: str) -> tuple[str, str]:
    words = f"connection.autoconnect-priority 100 802-3-ethernet.mtu {MTU} ipv4.method manual ipv4.addresses {address} "
    words += "ipv4.never-default yes ipv6.method link-local ipv6.addr-gen-mode eui64"
    ways = ", ".join(f"{route.destination} {route.gateway}" for route in routes)
    words += f" ipv4.routes {shlex.quote(ways)}" if ways else ""
    add = f"nmcli connection add save {save} type ethernet con-name sparkwright-{name} ifname {name}"
    return f"{add} \\\n  {words}", f"nmcli --wait 15 connection up sparkwright-{name}"


def _yaml(name: str, address: str, routes: Sequence[Route]) -> list[str]:
    lines = [f"    {name}:", "      dhcp4: false", "      dhcp6: false", f"      mtu: {MTU}"]
    lines += [f"      addresses: [{address}]", "      link-local: [ipv6]", "      optional: true"]
    lines += ["      routes:"] if routes else []
    return [*lines, *(f"        - {{to: {route.destination}, via: {route.gateway}}}" for route in routes)]


def _unit(name: str, address: str, routes: Sequence[Route]) -> list[str]:
    lines = ["[Match]", f"Name={name}", "[Link]", f"MTUBytes={MTU}", "RequiredForOnline=no", "[Network]"]
    lines += [f"Address={address}", "LinkLocalAddressing=ipv6", "IPv6AcceptRA=no"]
    ways = (("[Route]", f"Destination={route.destination}", f"Gateway={route.gateway}") for route in routes)
    return [*lines, *(line for way in ways for line in way)]
