"""The node's one memory pool. nvidia-smi does not report it on a GB10 (`[N/A]`), /proc/meminfo can."""

import re

from sparkwright.domain.command import Completed
from sparkwright.domain.facts import Memory, Unknown
from sparkwright.domain.host_facts import Activity, PageCache, Process
from sparkwright.facts.fact import Fact, decimal, found_or, not_understood, parsed_json, sections, whole_number
from sparkwright.remote.host import script, script_texts

_sh = script_texts(__name__)

_LINE = re.compile(r"([A-Za-z_()0-9]+):\s+([0-9]+)( kB)?\s*", re.ASCII)
# Kernels print all of these since 3.14; where one lacks, the text was cut off and nothing in it can be relied on.
_ALWAYS = ("MemTotal", "MemFree", "MemAvailable", "Buffers", "Cached", "AnonPages")
# What remains after these is held by nobody that the kernel can name.
_KERNEL = ("Slab", "KernelStack", "PageTables", "SecPageTables", "Percpu", "Hugetlb")
_EXPLAINED = ("MemFree", "Buffers", "Cached", "SwapCached", "AnonPages", *_KERNEL)
_ZONE = re.compile(r"Node +[0-9]+, zone +\w+((?: +[0-9]{1,12}){1,40}) *", re.ASCII)
_PAGES = (4096, 16384, 65536)
_COUNTED = ("files", "cached", "left", "free", "unread")
SECONDS = 0.4
_PROCESS = re.compile(r"\s*([0-9]{1,12})\s+([0-9]{1,15})\s+(\S+)\s+(\S+)\s+(\S.*)", re.ASCII)
_STALL = re.compile(r"(some|full) avg10=(\S+)", re.ASCII)


def parse(done: Completed) -> Memory | Unknown:
    """Bytes. A counter that this kernel does not print counts as 0, except those without which nothing adds up."""
    # name -> bytes (`kB` means KiB here), or the plain count where there is no unit
    found = (_LINE.fullmatch(line) for line in done.stdout.splitlines())
    rows = ((m[1], whole_number(m[2]), m[3]) for m in found if m)
    count = {name: value * (1024 if unit else 1) for name, value, unit in rows if value is not None}
    missing = [name for name in _ALWAYS if name not in count]
    if missing and not count:
        return not_understood(done, "reading /proc/meminfo")
    if missing:
        return Unknown(done.stdout.strip()[:200], f"/proc/meminfo lacks {', '.join(missing)}")
    page = count.get("Hugepagesize", 0)
    parts = dict(count)
    # Some printouts leave the sum out and give only its two parts.
    blocks = _blocks(done.stdout)
    parts.setdefault("Slab", count.get("KReclaimable", count.get("SReclaimable", 0)) + count.get("SUnreclaim", 0))
    return Memory(
        total=count["MemTotal"],
        free=count["MemFree"],
        available=count["MemAvailable"],
        cached=count["Cached"],
        swap_total=count.get("SwapTotal", 0),
        swap_free=count.get("SwapFree", 0),
        unaccounted=max(0, count["MemTotal"] - sum(parts.get(name, 0) for name in _EXPLAINED)),
        huge_pages=count.get("HugePages_Total", 0) * page,
        huge_free=count.get("HugePages_Free", 0) * page,
        cma_total=count.get("CmaTotal", 0),
        cma_free=count.get("CmaFree", 0),
        corrupted=count.get("HardwareCorrupted", 0),
        blocks=blocks,
        page=_page(blocks, count),
        shmem=count.get("Shmem", 0),
    )


def _blocks(text: str) -> tuple[int, ...]:
    """Free blocks by order, of all zones together."""
    zones = [[int(word) for word in row[1].split()] for row in map(_ZONE.fullmatch, text.splitlines()) if row]
    orders = max(map(len, zones), default=0)
    return tuple(sum(zone[order] for zone in zones if order < len(zone)) for order in range(orders))


def _page(blocks: tuple[int, ...], count: dict[str, int]) -> int:
    """Bytes of a page: what getconf says. Without it: buddyinfo counts pages, meminfo KiB, and they are about equal."""
    if count.get("PageSize") in _PAGES:
        return count["PageSize"]
    pages = sum(number << order for order, number in enumerate(blocks))
    return min(_PAGES, key=lambda size: abs(size * pages - count["MemFree"]))


def parse_cache(done: Completed) -> PageCache | Unknown:
    """Parses remote.programs.evict and measure."""
    found = parsed_json(done.stdout)
    if not done.ok or not isinstance(found, dict):
        return not_understood(done, "python3")
    counts = [one for name in _COUNTED if isinstance(one := found.get(name), int) and one >= 0]
    return PageCache(*counts) if len(counts) == len(_COUNTED) else not_understood(done, "python3")


def parse_activity(done: Completed) -> Activity | Unknown:
    parts = sections(done.stdout)
    if "before" not in parts or "after" not in parts:
        return not_understood(done, "sh")
    before, after = _counts(parts["before"]), _counts(parts["after"])
    stall = {row[1]: row[2] for row in map(_STALL.match, parts.get("pressure", "").splitlines()) if row}
    # Without the kernel's own, which have no memory; Unknown without a row: a node always runs something.
    rows = [r for r in map(_PROCESS.fullmatch, parts.get("processes", "").splitlines()) if r and int(r[2])]
    read = tuple(Process(int(r[1]), r[5].strip(), int(r[2]) * 1024, r[3], "" if r[4] == "-" else r[4]) for r in rows)
    return Activity(
        _grown(before, after, "pswpin"),
        _grown(before, after, "pswpout"),
        _percent(stall, "some"),
        _percent(stall, "full"),
        after.get("oom_kill", _untold("oom_kill")),
        read or Unknown("", "ps gave no table"),
        SECONDS,
    )


def _counts(text: str) -> dict[str, int]:
    rows = (line.split() for line in text.splitlines())
    pairs = ((row[0], whole_number(row[1])) for row in rows if len(row) == 2)
    return {name: value for name, value in pairs if value is not None}


def _grown(before: dict[str, int], after: dict[str, int], name: str) -> int | Unknown:
    return after[name] - before[name] if name in before and name in after else _untold(name)


def _percent(stall: dict[str, str], name: str) -> float | Unknown:
    return found_or(decimal(stall.get(name, "")), stall.get(name, ""), "no /proc/pressure/memory")


def _untold(name: str) -> Unknown:
    return Unknown("", f"/proc/vmstat does not have {name}")


# Sections `before` and `after` (of /proc/vmstat), `pressure`, `processes` (pid, rss KiB, user, unit, name).
ACTIVITY: Fact[Activity] = Fact(script(_sh("show", "activity"), f"{SECONDS:g}", timeout=10.0), parse_activity)
_READ = 'cat "$R/proc/meminfo" "$R/proc/buddyinfo"; [ -n "$R" ] || printf "PageSize: %s\\n" "$(getconf PAGESIZE)"'
MEMORY: Fact[Memory] = Fact(script(_READ), parse)
