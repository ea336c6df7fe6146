"""Samples this node's memory while an engine loads; evicts page cache, and stops the rank before the node stalls.

    SPARKWRIGHT_ASKED=JSON guard.py     {"soft": bytes, "hard": bytes, "files": [folder, ...], "stop": [argv ...],
                                         "every": seconds, "until": [argv ...], "log": path, "patience": seconds}

One JSON line a second: free, available (bytes), large (bytes free in blocks of 16 MiB or more), stall (percent of the
last 10 s in which all tasks waited for memory), swapped (pages read since the sample before), late (seconds by which
the sample came late), freed (bytes of MemFree that an eviction gave). MemFree below `soft`: the model files' pages are
evicted; what an engine has mapped stays. `soft` is at least twice the level up to which the kernel itself reclaims
memory (the high watermarks): what it takes then is also the pages of programs, and a login waits for the disk.
MemAvailable below `hard` twice, or below half of it once, or most of the
time spent waiting: a line {"stop": why}, then the command, then the end. hard 0: never stops. until: a program that
ends with the rank, and the guard with it; [] where somebody follows what is printed. log: where the last lines are kept
when the rank is stopped. Needs no root.

A parent waits for a sign of life of each sample. A guard that gives none for `patience` is killed and begun again: a
line {"hung": seconds} names it.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

_ROOT = os.environ.get("SPARKWRIGHT_SYSROOT", "")
_CGROUP = Path("/sys/fs/cgroup")
_LARGE = 16 << 20
_STALLED, _STRIKES = 60.0, 3
_LISTED_FOR = 10.0
_MOST_FILES = 100000
_KEPT = 120


class Source:
    """A file of /proc that stays open: a node without memory may not be able to open one."""

    def __init__(self, path: str) -> None:
        try:
            self._fd = os.open(_ROOT + path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._fd = -1

    def text(self) -> str:
        try:
            return os.pread(self._fd, 65536, 0).decode("ascii", "replace") if self._fd >= 0 else ""
        except OSError:
            return ""


def parse_rows(text: str) -> dict[str, int]:
    """`Name: 12 kB` and `name 12` as numbers."""
    words = (line.replace(":", "").split() for line in text.splitlines())
    return {row[0]: int(row[1]) for row in words if len(row) > 1 and row[1].isdigit()}


def number(path: Path) -> int:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return -1


def memory_limit() -> Callable[[], tuple[int, int]] | None:
    """The room below the memory limit of the system container that this node may be: (free, with its cache)."""
    for folder, most, used in (
        (_CGROUP / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
        (_CGROUP, "memory.max", "memory.current"),
    ):
        top = number(folder / most)
        if 0 < top < 1 << 60:
            return partial(room_left, folder, used, top)
    return None


def room_left(folder: Path, used: str, top: int) -> tuple[int, int]:
    try:
        parts = parse_rows((folder / "memory.stat").read_text(encoding="ascii"))
    except OSError:
        parts = {}
    prefix = "total_" if "total_active_file" in parts else ""
    cache = parts.get(prefix + "active_file", 0) + parts.get(prefix + "inactive_file", 0)
    free = max(0, top - number(folder / used))
    return free, free + cache


class Sampler:
    def __init__(self) -> None:
        names = ("meminfo", "buddyinfo", "vmstat", "pressure/memory")
        self._meminfo, self._blocks, self._vmstat, self._pressure = (Source(f"/proc/{name}") for name in names)
        self._limit, self._swapped = memory_limit(), -1

    def sample(self) -> dict[str, float]:
        memory = parse_rows(self._meminfo.text())
        free, available = memory.get("MemFree", 0) * 1024, memory.get("MemAvailable", 0) * 1024
        if self._limit:
            free, available = map(min, (free, available), self._limit())
        swapped = parse_rows(self._vmstat.text()).get("pswpin", 0)
        before, self._swapped = self._swapped, swapped
        return {
            "free": free,
            "available": available,
            "large": self._large(),
            "stall": self._stall(),
            "swapped": max(0, swapped - before) if before >= 0 else 0,
        }

    def watermarks(self) -> int:
        """Bytes up to which the kernel reclaims memory, of all zones; 0 where it is not known."""
        words = (line.split() for line in Source("/proc/zoneinfo").text().splitlines())
        pages = (int(row[1]) for row in words if len(row) == 2 and row[0] == "high" and row[1].isdigit())
        return sum(pages) * os.sysconf("SC_PAGESIZE")

    def _large(self) -> int:
        """-1: not known."""
        found, page = -1, os.sysconf("SC_PAGESIZE")
        for line in self._blocks.text().splitlines():
            counts = [int(word) for word in line.split()[4:] if word.isdigit()]
            sizes = [page << order for order in range(len(counts))]
            least = min(_LARGE, sizes[-1]) if sizes else _LARGE
            found = max(found, 0) + sum(size * many for size, many in zip(sizes, counts, strict=True) if size >= least)
        return found

    def _stall(self) -> float:
        for line in self._pressure.text().splitlines():
            if line.startswith("full avg10="):
                return float(line.split()[1].partition("=")[2])
        return -1.0


class Files:
    """The files of the model. Only a listing costs much, and they hardly change while they are loaded."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders, self._found, self._at = folders, [""], -_LISTED_FOR

    def evict(self) -> None:
        if time.monotonic() - self._at >= _LISTED_FOR:
            self._found, self._at = list(dict.fromkeys(self._walk()))[:_MOST_FILES], time.monotonic()
        for path in self._found:
            try:
                fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            except OSError:
                continue
            try:
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            except OSError:
                pass
            finally:
                os.close(fd)

    def _walk(self) -> Iterator[str]:
        for given in self._folders:
            at = Path(given).expanduser()
            if at.is_file():
                yield str(at)
            for folder, _, names in os.walk(at):
                yield from (os.path.realpath(Path(folder) / name) for name in names)


class Asked(NamedTuple):
    """The arguments; bytes, seconds."""

    soft: float
    hard: float
    every: float
    files: list[str]
    stop: list[str]
    until: list[str]
    log: str
    patience: float = 30.0


def reason(found: dict[str, float], past: list[dict[str, float]], asked: Asked) -> str:
    """The reason to stop the rank now; '' without one. past: the samples before, the last one first."""
    available = found["available"]
    if not asked.hard:
        return ""
    below = [one["available"] < asked.hard for one in [found, *past[:1]]]
    if available < asked.hard / 2 or (len(below) > 1 and all(below)):
        return "memory"
    stalled = [one["stall"] > _STALLED for one in [found, *past[: _STRIKES - 1]]]
    return "stall" if len(stalled) == _STRIKES and all(stalled) and available < asked.soft else ""


def put_line(line: dict[str, float] | dict[str, str]) -> None:
    """Prints a line, or leaves it out where nobody reads: the guard must not wait in a write.

    A pipe takes a line of so few bytes whole or not at all.
    """
    with contextlib.suppress(OSError):
        os.set_blocking(1, False)
        os.write(1, json.dumps(line).encode() + b"\n")


def started(until: list[str]) -> subprocess.Popen[bytes] | None:
    return launched(until) if until else None


def launched(argv: list[str]) -> subprocess.Popen[bytes]:
    """Starts a program; the text of a script stays out of its command line, which `ps` shows."""
    environ = dict(os.environ)
    if argv[:2] == ["sh", "-c"]:
        environ["SPARKWRIGHT_SCRIPT"] = argv[2]
        argv = ["sh", "-c", 'eval "unset SPARKWRIGHT_SCRIPT; ${SPARKWRIGHT_SCRIPT:?}"', *argv[3:]]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(argv, stdin=quiet, stdout=quiet, stderr=quiet, env=environ)


def save_curve(asked: Asked, curve: Iterable[dict[str, float]], why: str) -> None:
    """The samples before a stop, and why."""
    lines = [*curve, {"stop": why, "soft": asked.soft, "hard": asked.hard}]
    at = Path(asked.log).expanduser()
    with contextlib.suppress(OSError):
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_text("".join(json.dumps(one) + "\n" for one in lines), "ascii")


ALIVE, DONE = b".", b"!"


def run_watched(asked: Asked) -> int:
    """Runs the guard in a child, again if it hangs; returns its exit code."""
    while True:
        ours, theirs = os.pipe()
        child = os.fork()
        if not child:
            os.close(ours)
            end_with_parent()
            main(asked, theirs)
            os._exit(0)
        os.close(theirs)
        for one in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(one, partial(end_both, child))
        if has_ended(ours, asked.patience):
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(ours)
        put_line({"hung": asked.patience})
        if asked.log:
            note_hang(asked)


def has_ended(signs: int, patience: float) -> bool:
    """True once the child has ended; False if it hangs. A rank that is being stopped may take its time."""
    limit: float | None = patience
    while select.select([signs], [], [], limit)[0]:
        told = os.read(signs, 4096)
        if not told:
            return True
        limit = None if DONE in told else limit
    return False


def end_with_parent() -> None:
    """A guard whose parent was killed ends, too."""
    for one in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(one, signal.SIG_DFL)
    with contextlib.suppress(Exception):
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def end_both(child: int, *_: object) -> None:
    with contextlib.suppress(OSError):
        os.kill(child, signal.SIGKILL)
    os._exit(143)


def note_hang(asked: Asked) -> None:
    at = Path(asked.log).expanduser()
    with contextlib.suppress(OSError):
        at.parent.mkdir(parents=True, exist_ok=True)
        with at.open("a", encoding="ascii") as file:
            file.write(json.dumps({"hung": asked.patience, "at": time.time()}) + "\n")


def main(asked: Asked, signs: int) -> None:
    """signs: where each sample gives a sign of life."""
    sampler, files = Sampler(), Files(asked.files)
    if asked.soft:
        asked = asked._replace(soft=max(asked.soft, 2 * sampler.watermarks()))
    past: list[dict[str, float]] = []
    rank, curve = started(asked.until), deque[dict[str, float]](maxlen=_KEPT)
    due = time.monotonic()
    while rank is None or rank.poll() is None:
        found = sampler.sample()
        os.write(signs, ALIVE)
        found["late"] = round(time.monotonic() - due, 3)
        if found["free"] < asked.soft:
            files.evict()
            found["freed"] = max(0.0, sampler.sample()["free"] - found["free"])
        curve.append({**found, "at": time.time()})
        put_line(curve[-1])
        if why := reason(found, past, asked):
            os.write(signs, DONE)
            put_line({"stop": why})
            if asked.log:
                save_curve(asked, curve, why)
            launched(asked.stop).wait()
            return
        past = [found, *past[: _STRIKES - 1]]
        due = max(due + asked.every, time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))


sys.exit(run_watched(Asked(**json.loads(os.environ.pop("SPARKWRIGHT_ASKED")))))
