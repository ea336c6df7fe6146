"""Routes, NetworkManager's active profiles, netplan files and the firewall."""

import json
import re

from sparkwright.domain.command import Completed
from sparkwright.domain.fabric_facts import Firewall, Network, Profile, Route
from sparkwright.domain.facts import Unknown
from sparkwright.facts.fact import Fact, not_understood, sections
from sparkwright.remote import network

_TEXT_ROUTE = re.compile(r"(default|[0-9][0-9./]*)(?: via ([0-9.]+))?(?: \S+)*? dev (\S+).*", re.ASCII)
_MODE = re.compile(r"([0-7]{3,4}) (/[^\x00-\x1f\x7f]+)", re.ASCII)
# `Anywhere on enp1s0f0np0   ALLOW IN   Anywhere` and `Anywhere   ALLOW IN   10.40.0.0/24`: rules for all ports.
_ALLOW = re.compile(r"Anywhere(?: on (\S+))?\s+ALLOW(?: IN)?\s+(Anywhere|[0-9./]+)\s*(?:#.*)?", re.ASCII)
_OPEN = "Default: allow (incoming)"
_TRUSTED = "trusted"


def parse(done: Completed) -> Network | Unknown:
    parts = sections(done.stdout)
    if "routes" not in parts:
        return not_understood(done, "ip")
    profiles = (line.split("\t") for line in parts.get("profiles", "").splitlines())
    modes = (_MODE.fullmatch(line.strip()) for line in parts.get("netplan", "").splitlines())
    return Network(
        routes=_routes(parts["routes"]),
        profiles=tuple(Profile(words[1], words[0], words[2]) for words in profiles if len(words) > 2 and words[2]),
        netplan={found[2]: found[1] for found in modes if found},
        firewall=_ufw(parts) or _firewalld(parts.get("firewalld", "")) or _nftables(parts),
    )


def _routes(text: str) -> tuple[Route, ...]:
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError):
        found = (_TEXT_ROUTE.fullmatch(line.strip()) for line in text.splitlines())
        return tuple(Route(m[1], m[2] or "", m[3]) for m in found if m)
    listed = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return tuple(_route(row) for row in listed if isinstance(row.get("dst"), str) and isinstance(row.get("dev"), str))


def _route(row: dict[str, object]) -> Route:
    return Route(str(row["dst"]), str(row.get("gateway", "")), str(row["dev"]))


def _ufw(parts: dict[str, str]) -> Firewall | None:
    """On by its configuration; `inactive` in its own words wins. Without words (no right to ask) rules are unknown."""
    rules = parts.get("ufw-rules", "")
    if "enabled" not in parts.get("ufw", "").split() or "Status: inactive" in rules or _OPEN in rules:
        return None
    if "Status: active" not in rules:
        return Firewall("ufw", Unknown("", "its rules can be read by root only"))
    found = (_ALLOW.fullmatch(line.strip()) for line in rules.splitlines())
    return Firewall("ufw", tuple(_allowed(m[1], m[2]) for m in found if m))


def _allowed(interface: str | None, source: str) -> str:
    """A netdev, or the network from which all may come; a rule for both counts as one for the network."""
    return source if source != "Anywhere" else interface or "0.0.0.0/0"


def _nftables(parts: dict[str, str]) -> Firewall | None:
    """Rules of the owner's own, loaded at boot; Docker's are there without this service."""
    on = parts.get("nftables", "").strip() == "active"
    return Firewall("nftables", Unknown("", "its rules can be read by root only")) if on else None


def _firewalld(text: str) -> Firewall | None:
    """Zones with their interfaces below them: `trusted` lets everything in."""
    zone, trusted, zones = "", list[str](), 0
    for line in text.splitlines():
        word = line.strip()
        if word.startswith("interfaces:"):
            trusted += word.removeprefix("interfaces:").split() if zone == _TRUSTED else []
        elif word and ":" not in word:
            zone, zones = word.split()[0], zones + 1
    return Firewall("firewalld", tuple(trusted)) if zones else None


NETWORK: Fact[Network] = Fact(network.network(), parse)
