"""Installed packages of driver, kernel and firmware, and which of them are held."""

import re

from sparkwright.domain.command import Completed
from sparkwright.domain.host_facts import Package
from sparkwright.domain.unknown import Unknown
from sparkwright.facts.fact import Fact, not_understood, sections
from sparkwright.remote import packages

# dpkg's three letters: what is wanted (i, h for hold), what is (i: installed), and an error or a blank.
_ROW = re.compile(r"([a-z])i.\t([a-z0-9][a-z0-9+.-]*)\t(\S+)", re.ASCII)


def parse(done: Completed) -> tuple[Package, ...] | Unknown:
    """() where none of them is installed; Unknown on a system without dpkg."""
    parts = sections(done.stdout)
    if "packages" not in parts:
        return not_understood(done, "dpkg-query")
    rows = (found for found in map(_ROW.fullmatch, parts["packages"].splitlines()) if found)
    return tuple(Package(row[2], row[3], row[1] == "h") for row in rows)


PACKAGES: Fact[tuple[Package, ...]] = Fact(packages.packages(), parse)
