"""Firmware versions, thermal zones, NVIDIA's PCI functions and device nodes, and the driver's files on the disk."""

import re

from sparkwright.domain.command import Completed
from sparkwright.domain.facts import Identity, Unknown
from sparkwright.domain.host_facts import Board, Library
from sparkwright.facts.fact import Fact, Plain, assignments, decimal, found_or, not_understood, sections, whole_number
from sparkwright.remote.host import script, script_texts

_sh = script_texts(__name__)

_NEEDED = ("hostname", "arch", "user", "home")
_SHAPES = {"hostname": Plain.HOST, "arch": Plain.NAME, "user": Plain.USER, "home": Plain.FOLDER}
_START_FIELD = 22
_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)+", re.ASCII)
_ZONE = re.compile(r"(\S+) (-?[0-9]{1,7})", re.ASCII)
_PCI = re.compile(r"([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) ([0-9a-f]{4}:[0-9a-f]{4})", re.ASCII)


def parse_identity(done: Completed) -> Identity | Unknown:
    """machine_id and boot_id are '' on a node that has none (an image before its first boot)."""
    parts = sections(done.stdout)
    if not all(parts.get(name) for name in _NEEDED):
        missing = [name for name in _NEEDED if not parts.get(name)]
        return Unknown(not_understood(done, "sh").raw, f"the node does not report its {', '.join(missing)}")
    odd = [name for name, kind in _SHAPES.items() if not kind.fits(parts[name])]
    if odd:
        return Unknown(f"{odd[0]}: {parts[odd[0]]!r}"[:200], f"its {odd[0]} cannot be used as it is")
    release = dict(assignments(parts.get("dgx", "")))  # of repeated names the last counts: it is the running OTA
    # Vendor and product as the firmware names them: `NVIDIA NVIDIA_DGX_Spark`, `ASUSTeK COMPUTER INC. GX10`.
    names = " ".join(filter(None, (parts.get("vendor", ""), parts.get("product", ""))))
    # Field 22 of /proc/1/stat, in clock ticks since boot; the program's name in brackets may hold anything.
    stat = parts.get("pid1", "")
    fields = stat.rpartition(")")[2].split()
    value = whole_number(fields[_START_FIELD - 3]) if len(fields) > _START_FIELD - 3 else None
    return Identity(
        hostname=parts["hostname"],
        machine_id=parts.get("machine-id", ""),
        arch=parts["arch"],
        boot_id=parts.get("boot-id", ""),
        user=parts["user"],
        home=parts["home"],
        product=names or Unknown("", "no /sys/class/dmi/id/product_name"),
        dgx_platform=_released(release, "DGX_PLATFORM"),
        ota_version=_released(release, "DGX_OTA_VERSION"),
        pid1_start=found_or(value, stat[:80], "/proc/1/stat cannot be read"),
    )


def _released(release: dict[str, str], name: str) -> str | Unknown:
    return release.get(name) or Unknown("", f"no {name} in /etc/dgx-release")


def parse(done: Completed) -> Board | Unknown:
    parts = sections(done.stdout)
    if "libcuda" not in parts:
        return not_understood(done, "sh")
    modeset, found = parts.get("modeset", ""), dict[str, float]()
    for row in filter(None, map(_ZONE.fullmatch, parts.get("zones", "").splitlines())):
        degrees = (decimal(row[2]) or 0.0) / 1000
        found[row[1]] = max(degrees, found.get(row[1], degrees))
    return Board(
        bios=parts.get("bios_version", ""),
        bios_date=parts.get("bios_date", ""),
        ec=parts.get("ec_firmware_release", ""),
        zones=found,
        nvidia=_functions(parts.get("nvidia")),
        devices=tuple(parts["devices"].split()) if "devices" in parts else Unknown("", "no /dev"),
        libcuda=_library(parts["libcuda"].splitlines()),
        module=_version(parts.get("module", "")),
        drm=tuple(parts.get("drm", "").splitlines()),
        modeset=found_or({"Y": True, "N": False}.get(modeset), modeset[:80], "only root may read it"),
    )


def _functions(text: str | None) -> dict[str, str] | Unknown:
    if text is None:
        return Unknown("", "no /sys/bus/pci")
    return {row[1]: row[2] for row in filter(None, map(_PCI.fullmatch, text.splitlines()))}


def _library(lines: list[str]) -> Library | Unknown:
    size = whole_number(lines[0]) if len(lines) > 1 else None
    if size is None:
        return Unknown("", "no libcuda.so.1 where DGX OS has it")
    version = _VERSION.search(lines[1].rpartition("/")[2].partition(".so.")[2])
    return Library(lines[1], size, version[0] if version else "")


def _version(text: str) -> str | Unknown:
    return text if _VERSION.fullmatch(text) else Unknown(text[:80], "modinfo has no version of the nvidia module")


# Sections bios_version, bios_date, ec_firmware_release, zones (name, m°C), nvidia (PCI), devices, libcuda (bytes,
# path), module, drm (path:line), modeset (Y or N).
BOARD: Fact[Board] = Fact(script(_sh("show", "board"), timeout=10.0), parse)
# Sections hostname, machine-id, boot-id, pid1, vendor, product, arch, user, home, dgx.
IDENTITY: Fact[Identity] = Fact(script(_sh("show", "identity")), parse_identity)
