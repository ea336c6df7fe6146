"""The driver's kernel module and the firmware that the GPU runs: unequal versions are a torn update (guide A2)."""

import re
from collections.abc import Iterator

from sparkwright.domain.command import Completed
from sparkwright.domain.facts import Driver, Unknown
from sparkwright.facts.fact import Fact, first_line, not_understood, sections
from sparkwright.remote import gpu

_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)+", re.ASCII)
_PERSISTENCE = {"Enabled": True, "Disabled": False}
# `Idle`, `SW Power Cap` and the like belong to every GPU at rest; these mean that something is wrong.
_SLOWDOWN = re.compile(r"(HW (?:Thermal |Power Brake )?Slowdown|SW Thermal Slowdown)\s*", re.ASCII)


def parse(done: Completed) -> Driver | Unknown:
    """Unknown only when nothing tells a version: with a dead GPU the loaded module is still known from /proc."""
    parts = sections(done.stdout)
    listed = parts.get("nvidia-smi", "")
    versions = (_field(listed, "Driver Version"), _module(parts.get("module", "")))
    version = next((v for v in versions if v), None)
    firmware = _field(listed, "GSP Firmware Version")
    if version is None and firmware is None:
        return not_understood(done, "nvidia-smi")
    said = first_line(Completed(done.exit_code, listed, done.stderr))
    return Driver(
        version or _untold(said, "the driver"),
        firmware or _untold(said, "the GSP firmware"),
        _persistence(listed),
        tuple(name for name, value in _rows(listed) if value == "Active" and _SLOWDOWN.fullmatch(name)),
    )


def _field(text: str, name: str) -> str | None:
    """The version on the `name : value` line; None for `N/A` and for no such line."""
    return next((value for key, value in _rows(text) if key == name and _VERSION.fullmatch(value)), None)


def _rows(text: str) -> Iterator[tuple[str, str]]:
    """The long listing's `name : value` lines."""
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            yield name.strip(), value.strip()


def _persistence(text: str) -> bool | Unknown:
    found = next((_PERSISTENCE[value] for name, value in _rows(text) if _is_persistence(name, value)), None)
    return Unknown("", "nvidia-smi does not tell the persistence mode") if found is None else found


def _is_persistence(name: str, value: str) -> bool:
    return name == "Persistence Mode" and value in _PERSISTENCE


def _module(text: str) -> str | None:
    """From /proc/driver/nvidia/version: the first dotted number of the `NVRM version` line."""
    line = next((line for line in text.splitlines() if line.startswith("NVRM version:")), "")
    found = _VERSION.search(line)
    return found[0] if found else None


def _untold(said: str, what: str) -> Unknown:
    return Unknown(said, f"nothing on the node tells the version of {what}")


DRIVER: Fact[Driver] = Fact(gpu.driver(), parse)
