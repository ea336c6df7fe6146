"""Versions with known faults: how logs and nodes print a version, and the ranges in which causes are known."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from sparkwright.domain.values import dataclass
from sparkwright.engines.version import bounds, within

_FILE = Path(__file__).with_name("versions.toml")


@dataclass(frozen=True, slots=True)
class Ranges:
    """printed: component -> pattern; only, mostly: cause -> component -> range. Outside of `only` speaks against it."""

    printed: Mapping[str, str]
    only: Mapping[str, Mapping[str, str]]
    mostly: Mapping[str, Mapping[str, str]]

    def of(self, cause: str) -> Mapping[str, str]:
        return self.only.get(cause) or self.mostly.get(cause, {})

    def has(self, cause: str, component: str, version: str) -> bool:
        """True if the version is in the range known for the cause."""
        return within(component, version, self.of(cause)[component])

    def version(self, component: str, line: str) -> str:
        """The one that the line prints, '' for none."""
        found = re.search(self.printed[component], line, re.IGNORECASE)
        return next((text for text in found.groups() if text), "").rstrip(".") if found else ""


@cache
def ranges(file: Path = _FILE) -> Ranges:
    """Raises ValueError for an unknown or missing table, component, or range."""
    tree = tomllib.loads(file.read_text(encoding="utf-8"))
    if set(tree) != {"printed", "only", "mostly"}:
        raise ValueError(f"{file.name}: expected printed, only and mostly, found {', '.join(tree)}")
    for cause, wanted in (*tree["only"].items(), *tree["mostly"].items()):
        for component, range_ in wanted.items():
            if component not in tree["printed"] or not bounds(range_):
                raise ValueError(f"{file.name}: {cause}: {component} = {range_!r} is no range of a printed component")
    return Ranges(tree["printed"], tree["only"], tree["mostly"])
