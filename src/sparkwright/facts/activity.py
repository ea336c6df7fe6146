"""Swapping, waiting for memory, and the biggest processes, as they are now."""

import re

from sparkwright.domain.command import Command, Completed
from sparkwright.domain.host_facts import Activity, Process
from sparkwright.domain.unknown import Unknown
from sparkwright.facts.fact import Fact, decimal, not_understood, sections, whole
from sparkwright.remote.host import SHOW, script

SECONDS = 0.4
# No arguments of any process: they may hold keys.
_ACTIVITY = r"""
count() { printf '\n@@ %s\n' "$1"; grep -sE '^(pswpin|pswpout|oom_kill) ' "$R/proc/vmstat"; }
count before
[ -n "$R" ] || { sleep "$1" & }
show pressure "$R/proc/pressure/memory"
if [ -z "$R" ]; then
  p=$(LC_ALL=C ps -eo pid=,rss=,user=,unit=,comm= --sort=-rss 2>/dev/null)
  printf '\n@@ processes\n%s\n' "$p" | head -n 24
elif [ -r "$R/proc/ps" ]; then show processes "$R/proc/ps"; fi
wait
count after
exit 0
"""


def activity() -> Command:
    """Sections `before` and `after` (of /proc/vmstat), `pressure`, `processes` (pid, rss KiB, user, unit, name)."""
    return script(SHOW + _ACTIVITY, f"{SECONDS:g}", timeout=10.0)


_PROCESS = re.compile(r"\s*([0-9]{1,12})\s+([0-9]{1,15})\s+(\S+)\s+(\S+)\s+(\S.*)", re.ASCII)
_STALL = re.compile(r"(some|full) avg10=(\S+)", re.ASCII)


def parse(done: Completed) -> Activity | Unknown:
    parts = sections(done.stdout)
    if "before" not in parts or "after" not in parts:
        return not_understood(done, "sh")
    before, after = _counters(parts["before"]), _counters(parts["after"])
    stall = {row[1]: row[2] for row in map(_STALL.match, parts.get("pressure", "").splitlines()) if row}
    return Activity(
        _grown(before, after, "pswpin"),
        _grown(before, after, "pswpout"),
        _percent(stall, "some"),
        _percent(stall, "full"),
        after.get("oom_kill", _untold("oom_kill")),
        _processes(parts.get("processes", "")),
        SECONDS,
    )


def _counters(text: str) -> dict[str, int]:
    rows = (line.split() for line in text.splitlines())
    pairs = ((row[0], whole(row[1])) for row in rows if len(row) == 2)
    return {name: value for name, value in pairs if value is not None}


def _grown(before: dict[str, int], after: dict[str, int], name: str) -> int | Unknown:
    return after[name] - before[name] if name in before and name in after else _untold(name)


def _percent(stall: dict[str, str], name: str) -> float | Unknown:
    value = decimal(stall.get(name, ""))
    return Unknown(stall.get(name, ""), "no /proc/pressure/memory") if value is None else value


def _untold(name: str) -> Unknown:
    return Unknown("", f"/proc/vmstat does not tell {name}")


def _processes(text: str) -> tuple[Process, ...] | Unknown:
    """Without the kernel's own, which have no memory; Unknown without a row: a node always runs something."""
    rows = [found for found in map(_PROCESS.fullmatch, text.splitlines()) if found and int(found[2])]
    read = tuple(Process(int(r[1]), r[5].strip(), int(r[2]) * 1024, r[3], "" if r[4] == "-" else r[4]) for r in rows)
    return read or Unknown("", "ps gave no table")


ACTIVITY: Fact[Activity] = Fact(activity(), parse)
