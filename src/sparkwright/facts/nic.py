"""The ConnectX-7: its PCI functions, firmware, link rate and counters, and what programs need to use it."""

import re

from sparkwright.domain.command import Completed
from sparkwright.domain.fabric_facts import Nic, PciFunction, RdmaDevice
from sparkwright.domain.facts import Unknown
from sparkwright.facts.fact import Fact, Plain, not_understood, sections, whole_number
from sparkwright.remote.host import script, script_texts

_sh = script_texts(__name__)

MARKER = "/etc/nvidia/cx7-hotplug-enabled"
_TOOLS = ("ib_write_bw", "show_gids", "rdma", "ethtool")
_CELL = re.compile(r"([^/:\s][^/\s]*)/([^:\s]+):(.*)")
_NUMBER = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)\b.*", re.ASCII)
_NO_PLACE = Unknown("", "the node has no such place")
Cells = dict[str, dict[str, str]]


def parse(done: Completed) -> Nic | Unknown:
    """A node without such a NIC has a Nic without functions."""
    parts = sections(done.stdout)
    if "devices" not in parts or "tools" not in parts:
        return not_understood(done, "sh")
    bonds = _cells(parts.get("bonds", ""), r"([^/\s]+)/(bonding/slaves):(.*)")
    devices = sorted(_cells(parts.get("devices", "")).items())
    return Nic(
        functions=_functions(parts["pci"]) if "pci" in parts else _NO_PLACE,
        devices=tuple(_device(name, cells) for name, cells in devices if Plain.DEVICE.fits(name)),
        armed="armed" in parts.get("marker", "").split(),
        verbs=tuple(parts["verbs"].split()) if "verbs" in parts else _NO_PLACE,
        bonds={
            name: tuple(filter(Plain.DEVICE.fits, cells["bonding/slaves"].split()))
            for name, cells in bonds.items()
            if Plain.DEVICE.fits(name)
        },
        tools=tuple(parts["tools"].split()),
    )


def _cells(text: str, pattern: str | re.Pattern[str] = _CELL) -> Cells:
    cells: Cells = {}
    for line in text.splitlines():
        if found := re.fullmatch(pattern, line.strip()):
            cells.setdefault(found[1], {})[found[2]] = found[3].strip()
    return cells


def _functions(text: str) -> tuple[PciFunction, ...]:
    """`0000:01:00.0/class:0x020000`: the address itself holds colons."""
    cells = _cells(text, r"([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])/([a-z_]+):(.*)")
    return tuple(_function(name, values) for name, values in sorted(cells.items()))


def _number(text: str) -> float | None:
    found = _NUMBER.fullmatch(text.strip())
    return float(found[1]) if found else None


def _function(address: str, cells: dict[str, str]) -> PciFunction:
    """`current_link_speed:32.0 GT/s PCIe`; `Unknown` and absent files count as unknown."""
    speed, width = _number(cells.get("current_link_speed", "")), whole_number(cells.get("current_link_width", ""))
    return PciFunction(address, speed or 0.0, width if width and width < 64 else 0)


def _device(name: str, cells: dict[str, str]) -> RdmaDevice:
    """`rate:200 Gb/sec (2X NDR)`, `fw_ver:28.45.4028`."""
    counted = {file.rpartition("/")[2]: whole_number(value) for file, value in cells.items() if "counters/" in file}
    counters = {counter: value for counter, value in counted.items() if value is not None}
    return RdmaDevice(name, cells.get("fw_ver", ""), _number(cells.get("ports/1/rate", "")), counters)


# Sections `pci` (ADDRESS/FILE:value) and `verbs`, where there is such a place, `devices` (below /sys/class/infiniband),
# `bonds`, `marker`, `tools`.
NIC: Fact[Nic] = Fact(script(_sh("nic"), MARKER, *_TOOLS, timeout=10.0), parse)
