"""The neighbours of each fabric port, its manager, and the interfaces that must not be touched."""

import re

from sparkwright.domain.command import Completed
from sparkwright.domain.facts import Unknown
from sparkwright.domain.values import dataclass
from sparkwright.facts.fact import Plain, not_understood

MANAGERS = ("nmcli", "netplan", "networkd")
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_CAGE = re.compile(r"en(P[0-9]+)?p[0-9]+s[0-9]+f[0-9]+(np[0-9]+)?", re.ASCII)
_IPV4 = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){3}", re.ASCII)
_LINES = 4096


@dataclass(frozen=True, slots=True)
class Cabling:
    """The cabling by interface. seen: MACs of neighbours. managers: one of MANAGERS; without an entry nothing manages
    it."""

    macs: dict[str, str]
    seen: dict[str, frozenset[str]]
    managers: dict[str, str]
    guarded: frozenset[str]


def is_cage(interface: str) -> bool:
    """True for the name of a ConnectX function of a GB10: `enp1s0f0np0`, `enP2p1s0f1np1`."""
    return _CAGE.fullmatch(interface) is not None


def parse(done: Completed) -> Cabling | Unknown:
    """Parses remote.cabling: `wires`, and the additions of `hello`."""
    if not done.ok:
        return not_understood(done, "sh")
    rows = [line.split() for line in done.stdout.splitlines()[:_LINES]]
    told = [(row[0], row[1], row[2] if len(row) > 2 else "") for row in rows if len(row) > 1]
    told = [row for row in told if Plain.DEVICE.fits(row[0])]
    found = {kind: [(name, value) for name, what, value in told if what == kind] for kind in ("mac", "seen", "manager")}
    macs = {name: value for name, value in found["mac"] if _MAC.fullmatch(value)}
    seen = {name: frozenset(v for n, v in found["seen"] if n == name and _MAC.fullmatch(v)) for name in macs}
    managers = {name: value for name, value in found["manager"] if value in MANAGERS}
    return Cabling(macs, seen, managers, frozenset(name for name, what, _ in told if what == "guarded"))


def parse_claimed(done: Completed) -> tuple[tuple[str, str, str], ...]:
    """(interface, address, MAC) of other machines; () where the node could not ask."""
    return _answers(done, "claimed")


def parse_reached(done: Completed) -> tuple[tuple[str, str, str], ...]:
    """(interface, address, MAC) of addresses that answered; () where the node could not ask."""
    return _answers(done, "reached")


def _answers(done: Completed, kind: str) -> tuple[tuple[str, str, str], ...]:
    rows = [line.split() for line in done.stdout.splitlines()[:_LINES]]
    found = [(row[0], row[2], row[3]) for row in rows if len(row) == 4 and row[1] == kind]
    return tuple(
        row for row in found if Plain.DEVICE.fits(row[0]) and _IPV4.fullmatch(row[1]) and _MAC.fullmatch(row[2])
    )
