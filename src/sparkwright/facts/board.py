"""Firmware versions, thermal zones, NVIDIA's PCI functions and device nodes, and the driver's files on the disk."""

import re

from sparkwright.domain.command import Command, Completed
from sparkwright.domain.host_facts import Board, Library
from sparkwright.domain.unknown import Unknown
from sparkwright.facts.fact import Fact, decimal, not_understood, sections, whole
from sparkwright.remote.host import SHOW, script

# modeset can be read by root alone; it is asked only where a setting for it was found, and never with a password.
_BOARD = r"""
for f in bios_version bios_date ec_firmware_release; do show "$f" "$R/sys/class/dmi/id/$f"; done
printf '\n@@ zones\n'
for z in "$R"/sys/class/thermal/thermal_zone*; do
  read -r n 2>/dev/null <"$z/type" && read -r t 2>/dev/null <"$z/temp" && printf '%s %s\n' "$n" "$t"
done
if [ -d "$R/sys/bus/pci/devices" ]; then
  echo '@@ nvidia'
  for d in "$R"/sys/bus/pci/devices/*; do
    read -r v 2>/dev/null <"$d/vendor" && read -r e 2>/dev/null <"$d/device" || continue
    [ "$v" != 0x10de ] || printf '%s %s:%s\n' "${d##*/}" "${v#0x}" "${e#0x}"
  done
fi
if [ -d "$R/dev" ]; then
  echo '@@ devices'
  for n in "$R"/dev/nvidia*; do [ ! -e "$n" ] || echo "${n##*/}"; done
fi
echo '@@ libcuda'
for l in "$R/usr/lib/aarch64-linux-gnu/libcuda.so.1" "$R/usr/lib/x86_64-linux-gnu/libcuda.so.1"; do
  [ ! -e "$l" ] || { LC_ALL=C stat -Lc %s "$l"; readlink -f "$l"; break; }
done
echo '@@ module'
[ -n "$R" ] || modinfo -F version nvidia 2>/dev/null
echo '@@ drm'
m="$R/sys/module/nvidia_drm/parameters/modeset"
if grep -sHE '^[[:space:]]*options[[:space:]]+nvidia[-_]drm' "$R"/etc/modprobe.d/*.conf; then
  echo '@@ modeset'
  cat "$m" 2>/dev/null || { [ ! -e "$m" ] || sudo -n cat "$m" 2>/dev/null; }
fi
exit 0
"""


def board() -> Command:
    """Sections bios_version, bios_date, ec_firmware_release, zones (name, m°C), nvidia (PCI), devices, libcuda (bytes,
    path), module, drm (path:line), modeset (Y or N)."""
    return script(SHOW + _BOARD, timeout=10.0)


_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)+", re.ASCII)
_ZONE = re.compile(r"(\S+) (-?[0-9]{1,7})", re.ASCII)
_PCI = re.compile(r"([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) ([0-9a-f]{4}:[0-9a-f]{4})", re.ASCII)


def parse(done: Completed) -> Board | Unknown:
    parts = sections(done.stdout)
    if "libcuda" not in parts:
        return not_understood(done, "sh")
    return Board(
        bios=parts.get("bios_version", ""),
        bios_date=parts.get("bios_date", ""),
        ec=parts.get("ec_firmware_release", ""),
        zones=_zones(parts.get("zones", "")),
        nvidia=_functions(parts.get("nvidia")),
        devices=tuple(parts["devices"].split()) if "devices" in parts else Unknown("", "no /dev"),
        libcuda=_library(parts["libcuda"].splitlines()),
        module=_version(parts.get("module", "")),
        drm=tuple(parts.get("drm", "").splitlines()),
        modeset=_modeset(parts.get("modeset", "")),
    )


def _zones(text: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for row in filter(None, map(_ZONE.fullmatch, text.splitlines())):
        degrees = (decimal(row[2]) or 0.0) / 1000
        found[row[1]] = max(degrees, found.get(row[1], degrees))
    return found


def _functions(text: str | None) -> dict[str, str] | Unknown:
    if text is None:
        return Unknown("", "no /sys/bus/pci")
    return {row[1]: row[2] for row in filter(None, map(_PCI.fullmatch, text.splitlines()))}


def _library(lines: list[str]) -> Library | Unknown:
    size = whole(lines[0]) if len(lines) > 1 else None
    if size is None:
        return Unknown("", "no libcuda.so.1 where DGX OS has it")
    version = _VERSION.search(lines[1].rpartition("/")[2].partition(".so.")[2])
    return Library(lines[1], size, version[0] if version else "")


def _version(text: str) -> str | Unknown:
    return text if _VERSION.fullmatch(text) else Unknown(text[:80], "modinfo does not tell the nvidia module's version")


def _modeset(text: str) -> bool | Unknown:
    return Unknown(text[:80], "only root may read it") if text not in ("Y", "N") else text == "Y"


BOARD: Fact[Board] = Fact(board(), parse)
