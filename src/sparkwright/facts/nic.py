"""The ConnectX-7: its PCI functions, firmware, link rate and counters, and what programs need to use it."""

import re
from collections.abc import Iterator

from sparkwright.domain.command import Command, Completed
from sparkwright.domain.fabric_facts import Nic, PciFunction, RdmaDevice
from sparkwright.domain.facts import Unknown
from sparkwright.facts.fact import Fact, Plain, not_understood, sections, whole
from sparkwright.remote.host import script

MARKER = "/etc/nvidia/cx7-hotplug-enabled"
_TOOLS = ("ib_write_bw", "show_gids", "rdma", "ethtool")
# 0x15b3 is Mellanox' vendor number, class 0x02.... a network controller. One grep reads every small file of a kind.
_NIC = r"""
marker="$R$1"; shift; tools="$*"
if cd "$R/sys/bus/pci/devices" 2>/dev/null; then
  printf '@@ pci\n'
  set -- $(grep -slx 0x15b3 */vendor)
  for v in "$@"; do d="${v%/vendor}"
    grep -qs '^0x02' "$d/class" && grep -sH . "$d/class" "$d/current_link_speed" "$d/current_link_width"
  done
fi
printf '@@ devices\n'
if cd "$R/sys/class/infiniband" 2>/dev/null; then
  grep -sH . */fw_ver */ports/1/rate */ports/1/counters/link_downed */ports/1/counters/symbol_error \
    */ports/1/counters/port_rcv_errors */ports/1/hw_counters/out_of_sequence */ports/1/hw_counters/packet_seq_err \
    */ports/1/hw_counters/local_ack_timeout_err /dev/null
fi
printf '@@ bonds\n'
cd "$R/sys/class/net" 2>/dev/null && grep -sH . */bonding/slaves /dev/null
[ -n "$R" ] && [ ! -d "$R/dev" ] || printf '@@ verbs\n'
for v in "$R"/dev/infiniband/uverbs*; do [ ! -e "$v" ] || echo "${v##*/}"; done
printf '@@ marker\n'
[ ! -e "$marker" ] || echo armed
printf '@@ tools\n'
for t in $tools; do ! command -v "$t" >/dev/null 2>&1 || echo "$t"; done
exit 0
"""


def nic() -> Command:
    """Sections `pci` (ADDRESS/FILE:value) and `verbs`, where there is such a place, `devices` (below
    /sys/class/infiniband), `bonds`, `marker`, `tools`."""
    return script(_NIC, MARKER, *_TOOLS, timeout=10.0)


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
        bonds={name: _names(cells["bonding/slaves"]) for name, cells in bonds.items() if Plain.DEVICE.fits(name)},
        tools=tuple(parts["tools"].split()),
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(filter(Plain.DEVICE.fits, text.split()))


def _rows(text: str, pattern: str | re.Pattern[str]) -> Iterator[tuple[str, str, str]]:
    for line in text.splitlines():
        if found := re.fullmatch(pattern, line.strip()):
            yield found[1], found[2], found[3].strip()


def _cells(text: str, pattern: str | re.Pattern[str] = _CELL) -> Cells:
    cells: Cells = {}
    for name, file, value in _rows(text, pattern):
        cells.setdefault(name, {})[file] = value
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
    speed, width = _number(cells.get("current_link_speed", "")), whole(cells.get("current_link_width", ""))
    return PciFunction(address, speed or 0.0, width if width and width < 64 else 0)


def _device(name: str, cells: dict[str, str]) -> RdmaDevice:
    """`rate:200 Gb/sec (2X NDR)`, `fw_ver:28.45.4028`."""
    counted = {file.rpartition("/")[2]: whole(value) for file, value in cells.items() if "counters/" in file}
    counters = {counter: value for counter, value in counted.items() if value is not None}
    return RdmaDevice(name, cells.get("fw_ver", ""), _number(cells.get("ports/1/rate", "")), counters)


NIC: Fact[Nic] = Fact(nic(), parse)
