"""The node's one memory pool. nvidia-smi cannot tell it on a GB10 (`[N/A]`), /proc/meminfo can."""

import re

from sparkwright.domain.command import Command, Completed
from sparkwright.domain.facts import Memory, Unknown
from sparkwright.facts.fact import Fact, not_understood, whole
from sparkwright.remote.host import script

_LINE = re.compile(r"([A-Za-z_()0-9]+):\s+([0-9]+)( kB)?\s*", re.ASCII)
# Kernels print all of these since 3.14; where one lacks, the text was cut off and nothing in it can be relied on.
_ALWAYS = ("MemTotal", "MemFree", "MemAvailable", "Buffers", "Cached", "AnonPages")
# Field guide A1 (#68529745704): what remains after these is held by nobody that the kernel can name.
_KERNEL = ("Slab", "KernelStack", "PageTables", "SecPageTables", "Percpu", "Hugetlb")
_EXPLAINED = ("MemFree", "Buffers", "Cached", "SwapCached", "AnonPages", *_KERNEL)


def meminfo() -> Command:
    return script('exec cat "$R/proc/meminfo"')


def parse(done: Completed) -> Memory | Unknown:
    """Bytes. A counter that this kernel does not print counts as 0, except those without which nothing adds up."""
    count = _counters(done.stdout)
    missing = [name for name in _ALWAYS if name not in count]
    if missing and not count:
        return not_understood(done, "reading /proc/meminfo")
    if missing:
        return Unknown(done.stdout.strip()[:200], f"/proc/meminfo lacks {', '.join(missing)}")
    page = count.get("Hugepagesize", 0)
    return Memory(
        total=count["MemTotal"],
        free=count["MemFree"],
        available=count["MemAvailable"],
        cached=count["Cached"],
        swap_total=count.get("SwapTotal", 0),
        swap_free=count.get("SwapFree", 0),
        unaccounted=_unaccounted(count),
        huge_pages=count.get("HugePages_Total", 0) * page,
        huge_free=count.get("HugePages_Free", 0) * page,
        cma_total=count.get("CmaTotal", 0),
        cma_free=count.get("CmaFree", 0),
        corrupted=count.get("HardwareCorrupted", 0),
    )


def _counters(text: str) -> dict[str, int]:
    """name -> bytes (`kB` means KiB here), or the plain count where no unit stands."""
    found = (_LINE.fullmatch(line) for line in text.splitlines())
    rows = ((m[1], whole(m[2]), m[3]) for m in found if m)
    return {name: value * (1024 if unit else 1) for name, value, unit in rows if value is not None}


def _unaccounted(count: dict[str, int]) -> int:
    parts = dict(count)
    # Some printouts leave the sum out and give only its two parts.
    parts.setdefault("Slab", count.get("KReclaimable", count.get("SReclaimable", 0)) + count.get("SUnreclaim", 0))
    return max(0, count["MemTotal"] - sum(parts.get(name, 0) for name in _EXPLAINED))


MEMORY: Fact[Memory] = Fact(meminfo(), parse)
