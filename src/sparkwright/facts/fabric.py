"""RDMA devices: state, netdev and GID table of each port.

`state` is the field of that name: a DOWN port can have physical_state LINK_UP, so no other word is believed.
"""

import re
from collections.abc import Iterable
from ipaddress import AddressValueError, IPv6Address

from sparkwright.domain.command import Completed
from sparkwright.domain.facts import Gid, RdmaPort, Unknown
from sparkwright.domain.values import dataclass, replace
from sparkwright.facts.fact import Fact, Plain, not_understood, parsed_json, sections, whole_number
from sparkwright.remote.host import script, script_texts

_sh = script_texts(__name__)

Port = tuple[str, int]
Tables = dict[Port, tuple[Gid, ...]]

_FILE = re.compile(r"([^/\s]+)/ports/([0-9]{1,5})/(gids|gid_attrs/types|gid_attrs/ndevs)/([0-9]{1,5}):(.*)", re.ASCII)
_VERSIONS = {"RoCE v2": "v2", "IB/RoCE v1": "v1", "RoCE v1": "v1"}
_IPV4 = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}", re.ASCII)
# `link rocep1s0f0/1 state ...`; iproute2 before 5.2 wrote `1/1: mlx5_0/1: ...`.
_LINK = re.compile(r"(?:link |[0-9]+/[0-9]+: )(\S+?)/([0-9]{1,5}):?\s+(.*)", re.ASCII)
_FIELD = re.compile(r"(?:^|\s)(state|physical_state|netdev) (\S+)")
_IBDEV = re.compile(r"(\S+) port ([0-9]{1,5}) ==> (\S+) \((\w+)\)", re.ASCII)
_SYSFS = re.compile(r"([^/\s]+)/ports/([0-9]{1,5})/(state|phys_state):[0-9]+: *(\w+)", re.ASCII)
_NET = re.compile(r"([^/\s]+)/device/net/([^/\s]+)")
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def from_sysfs(text: str) -> Tables:
    """Parses lines `device/ports/1/gids/3:0000:...`. All-zero rows are free slots, not GIDs."""
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
    """Parses Mellanox' `show_gids` by the shape of each word: the IPv4 column is empty for link-local rows."""
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
    port, index = whole_number(words[1]), whole_number(words[2])
    version = next((word for word in words[4:6] if word in ("v1", "v2")), "")
    if port is None or index is None or not version:
        return None
    netdev = Plain.DEVICE.only(words[-1]) if words[-1] != version else ""
    shown = words[4] if _IPV4.fullmatch(words[4]) else ""
    return (words[0], port), Gid(index, words[3], version, ipv4_of(words[3]) or shown, netdev)


def _is_zero(gid: str) -> bool:
    return not gid.strip("0:")


@dataclass(frozen=True, slots=True)
class _Listed:
    """One source: its ports, and how many of its lines could not be read."""

    ports: tuple[RdmaPort, ...] = ()
    odd: int = 0


def parse(done: Completed) -> tuple[RdmaPort, ...] | Unknown:
    """Parses the ports; () on a node without RDMA devices. `rdma` is trusted first, then sysfs, then ibdev2netdev."""
    parts = sections(done.stdout)
    if "rdma" not in parts:
        return not_understood(done, "sh")
    listed = _links(parts["rdma"])
    if parts.get("exit") == "0" and not listed.odd:
        return _with_gids(listed.ports, parts)
    others = _sysfs(parts), _ibdev2netdev(parts.get("ibdev2netdev", ""))
    ports = next((source.ports for source in others if source.ports), ())
    if listed.odd and not ports:
        return Unknown(parts["rdma"].strip()[:200], "rdma gave no answer that can be read")
    return _with_gids(ports, parts)


def _with_gids(ports: Iterable[RdmaPort], parts: dict[str, str]) -> tuple[RdmaPort, ...]:
    tables = from_sysfs(parts.get("sysfs", "")) or from_show_gids(parts.get("show_gids", ""))
    return tuple(replace(port, gids=tables.get((port.device, port.port), ())) for port in ports)


def _links(text: str) -> _Listed:
    """The answer of `rdma -j link` (JSON), or of `rdma link` (text), which also comes from tools that ignore -j."""
    links = parsed_json(text)
    if links is None:
        found = [_text_link(line.strip()) for line in text.splitlines() if line.strip()]
    else:
        found = [_json_link(row) for row in (links if isinstance(links, list) else [links])]
    return _Listed(tuple(port for port in found if port), found.count(None))


def _json_link(row: object) -> RdmaPort | None:
    if not isinstance(row, dict):
        return None
    device, _, suffix = str(row.get("ifname", "")).partition("/")
    port, state = whole_number(str(row.get("port", suffix or "1"))), row.get("state")
    if not Plain.DEVICE.fits(device) or port is None or not isinstance(state, str):
        return None
    return RdmaPort(device, port, state, str(row.get("physical_state", "")), Plain.DEVICE.only(str(row.get("netdev"))))


def _text_link(line: str) -> RdmaPort | None:
    match = _LINK.fullmatch(line)
    fields = dict(_FIELD.findall(match[3])) if match else {}
    if match is None or "state" not in fields or not Plain.DEVICE.fits(match[1]):
        return None
    state, physical = fields["state"], fields.get("physical_state", "")
    return RdmaPort(match[1], int(match[2]), state, physical, Plain.DEVICE.only(fields.get("netdev", "")))


def _sysfs(parts: dict[str, str]) -> _Listed:
    """States from `4: ACTIVE` and `5: LinkUp`, in rdma's terms; the netdev from the device's folder."""
    text = parts.get("sysfs", "")
    states = {(m[1], int(m[2]), m[3]): m[4] for line in text.splitlines() if (m := _SYSFS.match(line))}
    interfaces = {m[1]: m[2] for line in parts.get("netdevs", "").splitlines() if (m := _NET.match(line))}
    by_gid = netdevs(text)
    ports = []
    for device, port, kind in states:
        if kind == "state" and Plain.DEVICE.fits(device):
            physical = _CAPITAL.sub("_", states.get((device, port, "phys_state"), "")).upper()
            netdev = by_gid.get((device, port)) or interfaces.get(device, "")
            ports.append(RdmaPort(device, port, states[device, port, kind], physical, Plain.DEVICE.only(netdev)))
    return _Listed(tuple(ports))


def _ibdev2netdev(text: str) -> _Listed:
    """The last resort: `(Up)` is the netdev's state, which follows the port's."""
    states = {"Up": "ACTIVE", "Down": "DOWN"}
    found = [_IBDEV.fullmatch(line.strip()) for line in text.splitlines()]
    named = [m for m in found if m and Plain.DEVICE.fits(m[1])]
    ports = [RdmaPort(m[1], int(m[2]), states.get(m[4], m[4].upper()), "", Plain.DEVICE.only(m[3])) for m in named]
    return _Listed(tuple(ports))


# Sections `exit` and `rdma` (JSON, or text of an old iproute2), `sysfs` and `netdevs` (path:line, paths below
# /sys/class/infiniband), and as stand-ins `ibdev2netdev` (no rdma) and `show_gids` (no GIDs in sysfs).
RDMA: Fact[tuple[RdmaPort, ...]] = Fact(script(_sh("rdma"), timeout=10.0), parse)
