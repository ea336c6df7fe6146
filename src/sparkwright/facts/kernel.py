"""Kernel release, command line and system; what matters in the kernel's log."""

import re

from sparkwright.domain.command import Completed
from sparkwright.domain.facts import Kernel, Unknown
from sparkwright.domain.host_facts import KernelLog, KernelNote
from sparkwright.facts.fact import Fact, assignments, decimal, not_understood, sections, whole_number
from sparkwright.remote.host import script, script_texts

# What any rule looks for in the log must match one of these, or it never leaves the node (tests/unit/checks).
WORTH = (
    "NVRM|Xid|NV_ERR|nvidia",
    "mlx5_core|cx7-pcie|able plug|able remov|AER:|PCIe Bus Error|DOE|mt79",
    "ut of memory|oom-kill|Oops|BUG:|soft lockup|Kernel panic|Unable to handle|hermal",
    "Hardware Error|Memory failure|EDAC|nvme|I/O error|EXT4-fs error",
)
OOM = re.compile(r"Out of memory: Killed process|oom-kill:|Memory cgroup out of memory", re.IGNORECASE)
_sh = script_texts(__name__, WORTH="|".join(WORTH).replace("/", r"\/"))
# `[    3.312611] text` of dmesg, `[    3.312611] host kernel: text` of the journal.
_LINE = re.compile(r"\[\s*([0-9]+\.[0-9]+)\]\s+(?:\S+ kernel: )?(.*)", re.ASCII)


def parse(done: Completed) -> Kernel | Unknown:
    """os: PRETTY_NAME of os-release (`Ubuntu 24.04.3 LTS`), '' on a system that has no such file."""
    parts = sections(done.stdout)
    release = parts.get("release", "")
    if not release:
        return not_understood(done, "uname -r")
    system = dict(assignments(parts.get("os", "")))
    return Kernel(release, parts.get("cmdline", ""), system.get("PRETTY_NAME", system.get("NAME", "")))


def parse_log(done: Completed) -> KernelLog | Unknown:
    """Unknown when no line was read: a kernel is never silent, so that user may not read its log."""
    parts = sections(done.stdout)
    read = whole_number(parts.get("read", ""))
    if not read or read < 0:
        return not_understood(done, "reading the kernel log")
    notes = (_note(line) for line in parts.get("notes", "").splitlines())
    return KernelLog(read, tuple(note for note in notes if note))


def _note(line: str) -> KernelNote | None:
    count, _, rest = line.partition("\t")
    first, tab, latest = rest.partition("\t")
    number = whole_number(count)
    if number is None or not tab:
        return None
    began, text = _stamped(first)
    ended, last = _stamped(latest)
    return KernelNote(text, number, began, ended, last)


def _stamped(line: str) -> tuple[float | None, str]:
    found = _LINE.fullmatch(line.strip())
    return (decimal(found[1]), found[2].strip()) if found else (None, line.strip())


# Sections `read` (how many lines) and `notes` (count, first line, last line, parted by tabs). Of this boot, from the
# journal, else from the kernel's ring (sudo only where it asks for no password).
KERNEL_LOG: Fact[KernelLog] = Fact(script(_sh("log"), timeout=10.0), parse_log)
# Sections `release`, `cmdline`, `os`.
KERNEL: Fact[Kernel] = Fact(script(_sh("show", "release")), parse)
