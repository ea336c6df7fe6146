"""Interfaces with addresses, listeners, routes, NetworkManager's active profiles, netplan files and the firewall."""

import re
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address
from typing import TypeGuard

from sparkwright.domain.command import Completed
from sparkwright.domain.fabric_facts import Firewall, Network, Profile, Route, WakeCard
from sparkwright.domain.facts import NOT_ASKED, Address, Interface, Listener, Unknown
from sparkwright.facts.fact import Fact, Plain, not_understood, parsed_json, sections, whole_number
from sparkwright.remote.host import script, script_texts

_sh = script_texts(__name__)
_TEXT_ROUTE = re.compile(r"(default|[0-9][0-9./]*)(?: via ([0-9.]+))?(?: \S+)*? dev (\S+).*", re.ASCII)
_CARD = re.compile(r"([A-Za-z0-9._-]{1,15}) ((?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2})(?: (enabled|disabled))?", re.ASCII)
_MODE = re.compile(r"([0-7]{3,4}) (/[^\x00-\x1f\x7f]+)", re.ASCII)
# `Anywhere on enp1s0f0np0   ALLOW IN   Anywhere` and `Anywhere   ALLOW IN   10.40.0.0/24`: rules for all ports.
_ALLOW = re.compile(r"Anywhere(?: on (\S+))?\s+ALLOW(?: IN)?\s+(Anywhere|[0-9./]+)\s*(?:#.*)?", re.ASCII)
_ROOT_ONLY = Unknown("", "its rules can be read by root only")
_OPEN = "Default: allow (incoming)"
_TRUSTED = "trusted"
_LISTEN = "0A"
_PROCESS = re.compile(r'users:\(\("([^"]*)"')
_WORDS = (8, 32)
_HEAD = re.compile(r"[0-9]+: ([^:@\s]+)(?:@\S+)?: <([^>]*)>.*?\bmtu ([0-9]{1,9})\b.*", re.ASCII)
_INET = re.compile(r"\s+inet ([0-9.]+)(?: peer [0-9.]+)?(?:/([0-9]{1,2}))?\s.*", re.ASCII)
_SPEED = re.compile(r".*/net/([^/]+)/speed:(-?[0-9]{1,9})", re.ASCII)


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
        cards=_cards(parts["cards"]) if "cards" in parts else None,
    )


def _cards(text: str) -> tuple[WakeCard, ...]:
    """`enp1s0 48:b0:2d:00:00:01 enabled`; the last word is missing where the card cannot wake the node."""
    found = (_CARD.fullmatch(line.strip()) for line in text.splitlines())
    return tuple(WakeCard(m[1], m[2].lower(), m[3] == "enabled" if m[3] else None) for m in found if m)


def _routes(text: str) -> tuple[Route, ...]:
    rows = parsed_json(text)
    if rows is None:
        found = (_TEXT_ROUTE.fullmatch(line.strip()) for line in text.splitlines())
        return tuple(Route(m[1], m[2] or "", m[3]) for m in found if m)
    listed = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    named = [row for row in listed if isinstance(row.get("dst"), str) and isinstance(row.get("dev"), str)]
    return tuple(Route(row["dst"], str(row.get("gateway", "")), row["dev"]) for row in named)


def _ufw(parts: dict[str, str]) -> Firewall | None:
    """The ufw firewall by its configuration; `inactive` in its output wins. Without output (no right to ask) rules are
    unknown."""
    rules = parts.get("ufw-rules", "")
    if "enabled" not in parts.get("ufw", "").split() or "Status: inactive" in rules or _OPEN in rules:
        return None
    if "Status: active" not in rules:
        return Firewall("ufw", _ROOT_ONLY)
    found = (_ALLOW.fullmatch(line.strip()) for line in rules.splitlines())
    # A netdev, or the network from which all may come; a rule for both counts as one for the network.
    return Firewall("ufw", tuple(m[1] or "0.0.0.0/0" if m[2] == "Anywhere" else m[2] for m in found if m))


def _nftables(parts: dict[str, str]) -> Firewall | None:
    """Rules of the owner's own, loaded at boot; Docker's are there without this service."""
    on = parts.get("nftables", "").strip() == "active"
    return Firewall("nftables", _ROOT_ONLY) if on else None


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


def parse_listeners(done: Completed) -> tuple[Listener, ...] | Unknown:
    """Each socket once. The address that takes connections to all is `0.0.0.0` or `::` (ss: `*` for both families)."""
    parts = sections(done.stdout)
    if not parts:
        return not_understood(done, "ss")
    table = [line.split() for name in ("tcp", "tcp6") for line in parts.get(name, "").splitlines()]
    rows = [_ss(line) for line in parts.get("ss", "").splitlines()]
    rows += [_proc(words) for words in table if len(words) > 3 and words[3] == _LISTEN]
    read = tuple(dict.fromkeys(row for row in rows if isinstance(row, Listener)))
    odd = next((row for row in rows if isinstance(row, Unknown)), None)
    # One line less could be the very port that is taken: all or nothing.
    return odd if odd is not None else read


def _ss(line: str) -> Listener | Unknown:
    """`LISTEN 0 4096 127.0.0.53%lo:53 0.0.0.0:* users:(("systemd-resolve",pid=812,fd=15))`"""
    words = line.split()
    address, _, port = words[3].rpartition(":") if len(words) > 3 else ("", "", "")
    number = whole_number(port)
    if number is None or words[0] != "LISTEN":
        return Unknown(line[:200], "this line of ss is no listening socket")
    bare = address.partition("%")[0].strip("[]")
    process = _PROCESS.search(line)
    return Listener("::" if bare == "*" else bare, number, process[1] if process else "")


def _proc(words: list[str]) -> Listener | Unknown:
    """`0: 0100007F:1F90 00000000:0000 0A ...`: 32-bit words in the byte order of the machine (little endian here)."""
    address, _, port = words[1].partition(":")
    if len(address) not in _WORDS or not re.fullmatch(r"[0-9A-Fa-f]+", address + port) or len(port) != 4:
        return Unknown(" ".join(words)[:200], "this line of /proc/net/tcp is no socket")
    raw = bytes.fromhex(address)
    packed = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
    return Listener(str(IPv4Address(packed) if len(packed) == 4 else IPv6Address(packed)), int(port, 16))


def parse_addresses(done: Completed) -> tuple[Interface, ...] | Unknown:
    """All interfaces in the kernel's order. up: switched on and with a link; speed only where the device has one."""
    parts = sections(done.stdout)
    text = parts.get("ip", "")
    found = _from_json(text) or _from_text(text)
    if not found:
        return not_understood(done, "ip")
    speeds = {m[1]: int(m[2]) for line in parts.get("speed", "").splitlines() if (m := _SPEED.fullmatch(line))}
    return tuple(replace(link, speed_mbps=_speed(speeds.get(link.name, 0))) for link in found)


def _speed(mbps: int) -> int | Unknown:
    return mbps if mbps > 0 else Unknown(str(mbps or ""), "the device reports no speed")


def _from_json(text: str) -> list[Interface]:
    links = parsed_json(text)
    rows = [row for row in links if isinstance(row, dict)] if isinstance(links, list) else []
    return [link for row in rows if (link := _json_link(row))]


def _json_link(row: dict[str, object]) -> Interface | None:
    name, mtu, flags = row.get("ifname"), row.get("mtu"), row.get("flags")
    if not (isinstance(name, str) and Plain.DEVICE.fits(name) and isinstance(mtu, int) and isinstance(flags, list)):
        return None
    listed = row.get("addr_info")
    addresses = [_json_address(entry) for entry in (listed if isinstance(listed, list) else [])]
    return Interface(name, _is_up(flags), mtu, tuple(address for address in addresses if address))


def _json_address(entry: object) -> Address | None:
    if not isinstance(entry, dict) or entry.get("family") != "inet":
        return None
    ipv4, prefix = entry.get("local"), entry.get("prefixlen")
    return Address(ipv4, prefix) if _is_ipv4(ipv4) and isinstance(prefix, int) else None


def _is_ipv4(text: object) -> TypeGuard[str]:
    try:
        return isinstance(text, str) and str(IPv4Address(text)) == text
    except ValueError:
        return False


def _from_text(text: str) -> list[Interface]:
    """`ip addr` as an iproute2 without JSON prints it."""
    found: list[Interface] = []
    for line in text.splitlines():
        head, inet = _HEAD.fullmatch(line), _INET.fullmatch(line + " ")
        if head and not Plain.DEVICE.fits(head[1]):
            continue
        if head:
            found.append(Interface(head[1], _is_up(head[2].split(",")), int(head[3]), (), NOT_ASKED))
        elif inet and found and _is_ipv4(inet[1]):
            address = Address(inet[1], int(inet[2] or 32))
            found[-1] = replace(found[-1], addresses=(*found[-1].addresses, address))
    return found


def _is_up(flags: list[object] | list[str]) -> bool:
    """True if it is switched on (UP, the administrator's setting) and has a link (LOWER_UP, the cable)."""
    return "UP" in flags and "LOWER_UP" in flags


# Sections `ip` (JSON, or text of an old iproute2) and `speed` (path:Mb/s, -1 for none).
ADDRESSES: Fact[tuple[Interface, ...]] = Fact(script(_sh("addresses"), timeout=10.0), parse_addresses)
# Sections `routes` (JSON, or text), `profiles` (DEVICE, ID, METHOD with tabs), `netplan` (MODE FILE), `ufw` (enabled),
# `ufw-rules` (only where it is on and may be seen), `firewalld` (its active zones), `nftables` (state of the service).
NETWORK: Fact[Network] = Fact(script(_sh("network"), timeout=10.0), parse)
# Section `ss`, or where ss is missing `tcp` and `tcp6` as in /proc/net.
LISTENERS: Fact[tuple[Listener, ...]] = Fact(script(_sh("show", "listeners")), parse_listeners)
