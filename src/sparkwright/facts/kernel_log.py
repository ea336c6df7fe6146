"""What the kernel wrote since boot, as far as it may matter; lines that differ in numbers only are one note."""

import re

from sparkwright.domain.command import Completed
from sparkwright.domain.host_facts import KernelLog, KernelNote
from sparkwright.domain.unknown import Unknown
from sparkwright.facts.fact import Fact, decimal, not_understood, sections, whole
from sparkwright.remote import kernel

# `[    3.312611] text` of dmesg, `[    3.312611] host kernel: text` of the journal.
_LINE = re.compile(r"\[\s*([0-9]+\.[0-9]+)\]\s+(?:\S+ kernel: )?(.*)", re.ASCII)


def parse(done: Completed) -> KernelLog | Unknown:
    """Unknown when no line was read: a kernel is never silent, so that user may not read its log."""
    parts = sections(done.stdout)
    read = whole(parts.get("read", ""))
    if not read or read < 0:
        return not_understood(done, "reading the kernel log")
    notes = (_note(line) for line in parts.get("notes", "").splitlines())
    return KernelLog(read, tuple(note for note in notes if note))


def _note(line: str) -> KernelNote | None:
    count, _, rest = line.partition("\t")
    first, tab, latest = rest.partition("\t")
    number = whole(count)
    if number is None or not tab:
        return None
    began, text = _stamped(first)
    ended, last = _stamped(latest)
    return KernelNote(text, number, began, ended, last)


def _stamped(line: str) -> tuple[float | None, str]:
    found = _LINE.fullmatch(line.strip())
    return (decimal(found[1]), found[2].strip()) if found else (None, line.strip())


KERNEL_LOG: Fact[KernelLog] = Fact(kernel.log(), parse)
