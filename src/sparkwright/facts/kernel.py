"""Kernel release, its command line, and the system it came with."""

from sparkwright.domain.command import Completed
from sparkwright.domain.facts import Kernel, Unknown
from sparkwright.facts.fact import Fact, assignments, not_understood, sections
from sparkwright.remote import kernel


def parse(done: Completed) -> Kernel | Unknown:
    """os: PRETTY_NAME of os-release (`Ubuntu 24.04.3 LTS`), '' on a system that has no such file."""
    parts = sections(done.stdout)
    release = parts.get("release", "")
    if not release:
        return not_understood(done, "uname -r")
    system = dict(assignments(parts.get("os", "")))
    return Kernel(release, parts.get("cmdline", ""), system.get("PRETTY_NAME", system.get("NAME", "")))


KERNEL: Fact[Kernel] = Fact(kernel.release(), parse)
