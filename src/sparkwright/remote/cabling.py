"""Addresses, routes and MTU of a node's fabric ports, with a rollback on the node that only the new path can stop."""

import shlex
from collections.abc import Sequence
from dataclasses import replace

from sparkwright.domain.command import Command
from sparkwright.domain.fabric_facts import Route
from sparkwright.domain.finding import Fix
from sparkwright.remote.host import script, texts

MTU = 9000
# Seconds for the other nodes to come in over the new path before a node takes its settings back.
HEALS_AFTER = 60
_ROLLBACK = "sh /var/lib/sparkwright/fabric/rollback.sh now"
_HEADERS = 28  # IPv4 and ICMP
_sh = texts(__name__)

Setting = tuple[str, str, tuple[Route, ...]]  # interface, ADDRESS/PREFIX, routes


def wires(interfaces: Sequence[str]) -> Command:
    """Lines `IF mac MAC`, `IF seen MAC`, `IF manager NAME` of these, `IF guarded` of any that must stay as they are."""
    return script(_sh("wires"), *interfaces, timeout=20.0)


def hello(interfaces: Sequence[str]) -> Command:
    """As root, on all nodes at the same time: more lines `IF seen MAC`."""
    return script(_sh("hello"), *interfaces, timeout=15.0)


def fabric_fix(node: str, manager: str, settings: Sequence[Setting], heals_after: float = HEALS_AFTER) -> Fix:
    """manager: nmcli, netplan or networkd. `do` leaves the rollback armed: `confirm` or `undo` must follow.

    heals_after: seconds.
    """
    words = [word for one in settings for word in _words(one)]
    sets = "\n".join(" ".join((name, f"MTU {MTU}", address, *_pairs(routes))) for name, address, routes in settings)
    look = script(_sh("look"), *words)
    says = f"{', '.join(f'{name} {address}' for name, address, _ in settings)}, MTU {MTU}, by {manager}"
    applied = script(_sh("apply"), manager, f"{heals_after:.0f}", _sh("rollback"), *words, timeout=100.0, changes=says)
    settled = script(_sh("settled"), sets, look.argv[2], *words, changes=f"settings of {node}'s ports in force")
    do = replace(applied, typed=typed(manager, settings)), replace(settled, typed="# and wait until they are in force")
    back = Command(("sh", "-c", f"[ ! -e /var/lib/sparkwright/fabric/manager ] || {_ROLLBACK}"), timeout=60.0)
    undo = replace(back, changes=f"fabric ports of {node} as before", typed=f"sudo {_ROLLBACK}")
    return Fix(node, says, do, (undo,), look, sets)


def prove(folder: str, peer: str, ways: Sequence[tuple[str, str]]) -> Command:
    """Prints the token that stops the peer's rollback. ways: interface here, address of the peer."""
    words = [word for way in ways for word in way]
    return script(_sh("prove"), folder, peer, str(MTU - _HEADERS), *words, timeout=45.0)


def confirm(token: str) -> Command:
    return script(_sh("confirm"), token, timeout=30.0, changes="keep the fabric settings over boots")


def _words(setting: Setting) -> tuple[str, str, str, str]:
    name, address, routes = setting
    return name, address, str(MTU), " ".join(_pairs(routes))


def _pairs(routes: Sequence[Route]) -> list[str]:
    return [f"{route.destination},{route.gateway}" for route in routes]


def typed(manager: str, settings: Sequence[Setting]) -> str:
    """What a person would type for the same, without the rollback."""
    if manager == "nmcli":
        return "\n".join(line for one in settings for line in _nmcli(*one))
    lines = [line for one in settings for line in (_yaml if manager == "netplan" else _unit)(*one)]
    if manager == "netplan":
        head = ("sudo tee /etc/netplan/90-sparkwright.yaml <<END", "network:", "  version: 2", "  ethernets:")
        lines = [*head, *lines, "END", "sudo chmod 600 /etc/netplan/90-sparkwright.yaml; sudo netplan generate"]
    return "\n".join([*lines, "sudo networkctl reload"])


def _nmcli(name: str, address: str, routes: Sequence[Route]) -> tuple[str, str]:
    words = ["sudo", "nmcli", "connection", "add", "type", "ethernet", "con-name", f"sparkwright-{name}"]
    words += [
        "ifname",
        name,
        "mtu",
        str(MTU),
        "ipv4.method",
        "manual",
        "ipv4.addresses",
        address,
        "ipv4.never-default",
        "yes",
    ]
    ways = ", ".join(f"{route.destination} {route.gateway}" for route in routes)
    words += ["ipv4.routes", ways] if ways else []
    return shlex.join(words), f"sudo nmcli connection up sparkwright-{name}"


def _yaml(name: str, address: str, routes: Sequence[Route]) -> list[str]:
    lines = [f"    {name}:", "      dhcp4: false", f"      mtu: {MTU}", f"      addresses: [{address}]"]
    lines += ["      routes:"] if routes else []
    return [*lines, *(f"        - {{to: {route.destination}, via: {route.gateway}}}" for route in routes)]


def _unit(name: str, address: str, routes: Sequence[Route]) -> list[str]:
    lines = [f"sudo tee /etc/systemd/network/05-sparkwright-{name}.network <<END", "[Match]", f"Name={name}", "[Link]"]
    lines += [f"MTUBytes={MTU}", "[Network]", f"Address={address}"]
    ways = [f"[Route]\nDestination={route.destination}\nGateway={route.gateway}" for route in routes]
    return [*lines, *ways, "END"]
