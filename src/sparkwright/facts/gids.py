"""GID tables of RDMA ports. Where the RoCE v2 entry with an IPv4 stands differs by node, twin and link bounce."""

import re
from ipaddress import AddressValueError, IPv6Address

from sparkwright.domain.facts import Gid
from sparkwright.facts.fact import Plain, whole

Port = tuple[str, int]
Tables = dict[Port, tuple[Gid, ...]]

_FILE = re.compile(r"([^/\s]+)/ports/([0-9]{1,5})/(gids|gid_attrs/types|gid_attrs/ndevs)/([0-9]{1,5}):(.*)", re.ASCII)
_VERSIONS = {"RoCE v2": "v2", "IB/RoCE v1": "v1", "RoCE v1": "v1"}
_IPV4 = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}", re.ASCII)


def from_sysfs(text: str) -> Tables:
    """From `device/ports/1/gids/3:0000:...` lines. All-zero rows are free slots, not GIDs."""
    cells = _cells(text)
    tables: dict[Port, list[Gid]] = {}
    for (device, port, index), row in sorted(cells.items()):
        gid = row.get("gids", "")
        if Plain.GID.fits(gid) and not _is_zero(gid):
            version = _VERSIONS.get(row.get("gid_attrs/types", ""), "")
            entry = Gid(index, gid, version, ipv4_of(gid), Plain.DEVICE.only(row.get("gid_attrs/ndevs", "")))
            tables.setdefault((device, port), []).append(entry)
    return {port: tuple(rows) for port, rows in tables.items()}


def netdevs(text: str) -> dict[Port, str]:
    """The netdev of each port as its own GID table names it."""
    cells = sorted(_cells(text).items(), reverse=True)
    return {key[:2]: row["gid_attrs/ndevs"] for key, row in cells if row.get("gid_attrs/ndevs")}


def from_show_gids(text: str) -> Tables:
    """From Mellanox' `show_gids`, by the shape of each word: the IPv4 column is empty for link-local rows."""
    tables: dict[Port, list[Gid]] = {}
    for line in text.splitlines():
        row = _shown(line.split())
        if row and not _is_zero(row[1].gid):
            tables.setdefault(row[0], []).append(row[1])
    return {port: tuple(rows) for port, rows in tables.items()}


def ipv4_of(gid: str) -> str:
    """`0000:0000:0000:0000:0000:ffff:c0a8:640a` -> `192.168.100.10`; '' for other GIDs."""
    try:
        mapped = IPv6Address(gid).ipv4_mapped
    except AddressValueError:
        return ""
    return str(mapped) if mapped else ""


def _cells(text: str) -> dict[tuple[str, int, int], dict[str, str]]:
    cells: dict[tuple[str, int, int], dict[str, str]] = {}
    for line in text.splitlines():
        if found := _FILE.fullmatch(line.strip()):
            cells.setdefault((found[1], int(found[2]), int(found[4])), {})[found[3]] = found[5].strip()
    return cells


def _shown(words: list[str]) -> tuple[Port, Gid] | None:
    """DEV PORT INDEX GID [IPv4] VER [DEV]"""
    if len(words) < 5 or not (":" in words[3] and Plain.GID.fits(words[3])):
        return None
    port, index = whole(words[1]), whole(words[2])
    version = next((word for word in words[4:6] if word in ("v1", "v2")), "")
    if port is None or index is None or not version:
        return None
    netdev = Plain.DEVICE.only(words[-1]) if words[-1] != version else ""
    shown = words[4] if _IPV4.fullmatch(words[4]) else ""
    return (words[0], port), Gid(index, words[3], version, ipv4_of(words[3]) or shown, netdev)


def _is_zero(gid: str) -> bool:
    return not gid.strip("0:")
