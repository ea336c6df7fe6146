"""The driver's kernel module and the firmware that the GPU runs: unequal versions are a torn update (guide A2)."""

import re

from sparkwright.commands import gpu
from sparkwright.domain.command import Completed
from sparkwright.domain.facts import Driver, Unknown
from sparkwright.facts.fact import Fact, first_line, not_understood, sections

_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)+", re.ASCII)


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
    return Driver(version or _untold(said, "the driver"), firmware or _untold(said, "the GSP firmware"))


def _field(text: str, name: str) -> str | None:
    """The version on the `name : value` line; None for `N/A` and for no such line."""
    for line in text.splitlines():
        key, colon, value = line.partition(":")
        if colon and key.strip() == name and _VERSION.fullmatch(value.strip()):
            return value.strip()
    return None


def _module(text: str) -> str | None:
    """From /proc/driver/nvidia/version: the first dotted number of the `NVRM version` line."""
    line = next((line for line in text.splitlines() if line.startswith("NVRM version:")), "")
    found = _VERSION.search(line)
    return found[0] if found else None


def _untold(said: str, what: str) -> Unknown:
    return Unknown(said, f"nothing on the node tells the version of {what}")


DRIVER: Fact[Driver] = Fact(gpu.driver(), parse)
