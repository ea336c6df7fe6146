"""Network interfaces: state, MTU, IPv4 addresses and link speed."""

import json
import re
from dataclasses import replace
from ipaddress import IPv4Address
from typing import TypeGuard

from sparkwright.domain.command import Command, Completed
from sparkwright.domain.facts import NOT_ASKED, Address, Interface, Unknown
from sparkwright.facts.fact import Fact, Plain, not_understood, sections
from sparkwright.remote.host import script, texts

_sh = texts(__name__)

_HEAD = re.compile(r"[0-9]+: ([^:@\s]+)(?:@\S+)?: <([^>]*)>.*?\bmtu ([0-9]{1,9})\b.*", re.ASCII)
_INET = re.compile(r"\s+inet ([0-9.]+)(?: peer [0-9.]+)?(?:/([0-9]{1,2}))?\s.*", re.ASCII)
_SPEED = re.compile(r".*/net/([^/]+)/speed:(-?[0-9]{1,9})", re.ASCII)


def addresses() -> Command:
    """Sections `ip` (JSON, or text of an old iproute2) and `speed` (path:Mb/s, -1 for none)."""
    return script(_sh("addresses"), timeout=10.0)


def parse(done: Completed) -> tuple[Interface, ...] | Unknown:
    """All interfaces in the kernel's order. up: switched on and with a link; speed only where the device has one."""
    parts = sections(done.stdout)
    text = parts.get("ip", "")
    found = _from_json(text) or _from_text(text)
    if not found:
        return not_understood(done, "ip")
    speeds = {m[1]: int(m[2]) for line in parts.get("speed", "").splitlines() if (m := _SPEED.fullmatch(line))}
    return tuple(replace(link, speed_mbps=_speed(speeds.get(link.name))) for link in found)


def _speed(mbps: int | None) -> int | Unknown:
    return mbps if mbps is not None and mbps > 0 else Unknown(str(mbps or ""), "the device reports no speed")


def _from_json(text: str) -> list[Interface]:
    try:
        links = json.loads(text)
    except (ValueError, RecursionError):
        return []
    rows = [row for row in links if isinstance(row, dict)] if isinstance(links, list) else []
    return [link for row in rows if (link := _json_link(row))]


def _json_link(row: dict[str, object]) -> Interface | None:
    name, mtu, flags = row.get("ifname"), row.get("mtu"), row.get("flags")
    if not isinstance(name, str) or not isinstance(mtu, int) or not isinstance(flags, list):
        return None
    if not Plain.DEVICE.fits(name):
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
    """UP alone is the administrator's setting; LOWER_UP is the cable."""
    return "UP" in flags and "LOWER_UP" in flags


ADDRESSES: Fact[tuple[Interface, ...]] = Fact(addresses(), parse)
