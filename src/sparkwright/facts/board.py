"""Firmware versions, thermal zones, NVIDIA's PCI functions and device nodes, and the driver's files on the disk."""

import re

from sparkwright.domain.command import Completed
from sparkwright.domain.host_facts import Board, Library
from sparkwright.domain.unknown import Unknown
from sparkwright.facts.fact import Fact, decimal, not_understood, sections, whole
from sparkwright.remote import board

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


BOARD: Fact[Board] = Fact(board.board(), parse)
