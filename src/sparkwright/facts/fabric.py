"""RDMA devices: state, netdev and GID table of each port.

`state` is the field of that name: a DOWN port can say physical_state LINK_UP, so no other word is believed.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from sparkwright.domain.command import Completed
from sparkwright.domain.facts import RdmaPort, Unknown
from sparkwright.facts import gids
from sparkwright.facts.fact import Fact, Plain, not_understood, sections, whole
from sparkwright.remote import fabric

# `link rocep1s0f0/1 state ...`; iproute2 before 5.2 wrote `1/1: mlx5_0/1: ...`.
_LINK = re.compile(r"(?:link |[0-9]+/[0-9]+: )(\S+?)/([0-9]{1,5}):?\s+(.*)", re.ASCII)
_FIELD = re.compile(r"(?:^|\s)(state|physical_state|netdev) (\S+)")
_IBDEV = re.compile(r"(\S+) port ([0-9]{1,5}) ==> (\S+) \((\w+)\)", re.ASCII)
_SYSFS = re.compile(r"([^/\s]+)/ports/([0-9]{1,5})/(state|phys_state):[0-9]+: *(\w+)", re.ASCII)
_NET = re.compile(r"([^/\s]+)/device/net/([^/\s]+)")
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class _Listed:
    """What one source says: its ports, and how many of its lines could not be read."""

    ports: tuple[RdmaPort, ...] = ()
    odd: int = 0


def parse(done: Completed) -> tuple[RdmaPort, ...] | Unknown:
    """() on a node without RDMA devices. `rdma` is believed first, then sysfs, then ibdev2netdev."""
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
    tables = gids.from_sysfs(parts.get("sysfs", "")) or gids.from_show_gids(parts.get("show_gids", ""))
    return tuple(replace(port, gids=tables.get((port.device, port.port), ())) for port in ports)


def _links(text: str) -> _Listed:
    """The answer of `rdma -j link` (JSON), or of `rdma link` (text), which also comes from tools that ignore -j."""
    try:
        links = json.loads(text)
    except (ValueError, RecursionError):
        return _text_links(text)
    rows = links if isinstance(links, list) else [links]
    found = [_json_link(row) for row in rows]
    return _Listed(tuple(port for port in found if port), found.count(None))


def _json_link(row: object) -> RdmaPort | None:
    if not isinstance(row, dict):
        return None
    device, _, suffix = str(row.get("ifname", "")).partition("/")
    port, state = whole(str(row.get("port", suffix or "1"))), row.get("state")
    if not Plain.DEVICE.fits(device) or port is None or not isinstance(state, str):
        return None
    return RdmaPort(device, port, state, str(row.get("physical_state", "")), Plain.DEVICE.only(str(row.get("netdev"))))


def _text_links(text: str) -> _Listed:
    lines = [line for line in text.splitlines() if line.strip()]
    found = [_text_link(line.strip()) for line in lines]
    return _Listed(tuple(port for port in found if port), found.count(None))


def _text_link(line: str) -> RdmaPort | None:
    match = _LINK.fullmatch(line)
    fields = dict(_FIELD.findall(match[3])) if match else {}
    if match is None or "state" not in fields or not Plain.DEVICE.fits(match[1]):
        return None
    state, physical = fields["state"], fields.get("physical_state", "")
    return RdmaPort(match[1], int(match[2]), state, physical, Plain.DEVICE.only(fields.get("netdev", "")))


def _sysfs(parts: dict[str, str]) -> _Listed:
    """States from `4: ACTIVE` and `5: LinkUp`, said in rdma's words; the netdev from the device's folder."""
    text = parts.get("sysfs", "")
    states = {(m[1], int(m[2]), m[3]): m[4] for line in text.splitlines() if (m := _SYSFS.match(line))}
    netdevs = {m[1]: m[2] for line in parts.get("netdevs", "").splitlines() if (m := _NET.match(line))}
    by_gid = gids.netdevs(text)
    ports = []
    for device, port, kind in states:
        if kind == "state" and Plain.DEVICE.fits(device):
            physical = _CAPITAL.sub("_", states.get((device, port, "phys_state"), "")).upper()
            netdev = by_gid.get((device, port)) or netdevs.get(device, "")
            ports.append(RdmaPort(device, port, states[device, port, kind], physical, Plain.DEVICE.only(netdev)))
    return _Listed(tuple(ports))


def _ibdev2netdev(text: str) -> _Listed:
    """The last resort: `(Up)` is the netdev's state, which follows the port's."""
    states = {"Up": "ACTIVE", "Down": "DOWN"}
    found = [_IBDEV.fullmatch(line.strip()) for line in text.splitlines()]
    named = [m for m in found if m and Plain.DEVICE.fits(m[1])]
    ports = [RdmaPort(m[1], int(m[2]), states.get(m[4], m[4].upper()), "", Plain.DEVICE.only(m[3])) for m in named]
    return _Listed(tuple(ports))


RDMA: Fact[tuple[RdmaPort, ...]] = Fact(fabric.rdma(), parse)
