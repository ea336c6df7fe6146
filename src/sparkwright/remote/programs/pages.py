"""Pages of model files in the page cache of this node: how many there are, and fewer of them. Needs no root.

    pages.py measure|evict GOAL LAST PATH...

`evict` writes back and drops the files' pages until MemFree is GOAL bytes (0: of all), those below LAST at the end; a
page that a process has mapped stays. Prints one JSON line: files, cached and left (bytes in the page cache before and
after), free (MemFree), unread (files that this user may not open).
"""

from __future__ import annotations

import ctypes
import json
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

_ROOT = os.environ.get("SPARKWRIGHT_SYSROOT", "")
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_LIBC.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
_LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_MOST = 1000000


def cached(fd: int, size: int) -> int:
    """Bytes of an open file in the page cache. By mincore: cachestat reports 0 for each file of an overlay."""
    page = os.sysconf("SC_PAGESIZE")
    at = _LIBC.mmap(None, size, 1, 1, fd, 0) if size else None
    if at in (None, ctypes.c_void_p(-1).value):
        return 0
    states = ctypes.create_string_buffer(-(-size // page))
    _LIBC.mincore(at, size, states)
    _LIBC.munmap(at, size)
    return min(states.raw.count(b"\1") * page, size)


def free_memory() -> int:
    """MemFree in bytes, 0 where it cannot be read."""
    with Path(_ROOT + "/proc/meminfo").open(encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("MemFree:"):
                return int(line.split()[1]) * 1024
    return 0


def walk_files(path: str) -> Iterator[str]:
    """Real paths of what is below a path, or of the path itself; links are followed."""
    at = Path(path).expanduser()
    seen: set[str] = set()
    for folder, below, names in os.walk(at, followlinks=True) if at.is_dir() else [(str(at.parent), [], [at.name])]:
        real = os.path.realpath(folder)
        if real in seen or len(seen) > _MOST:
            below.clear()
            continue
        seen.add(real)
        yield from (os.path.realpath(Path(folder) / name) for name in names)


def drop_pages(fd: int) -> None:
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


def count_file(path: str, evicts: bool, found: dict[str, int]) -> None:
    """Counts, and evicts, one file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        found["unread"] += 1
        return
    try:
        state = os.fstat(fd)
        if not stat.S_ISREG(state.st_mode):
            return
        before = left = cached(fd, state.st_size)
        if evicts:
            drop_pages(fd)
            left = cached(fd, state.st_size)
        if evicts and left:
            os.fdatasync(fd)  # dirty pages stay until they are written
            drop_pages(fd)
            left = cached(fd, state.st_size)
        found["files"] += 1
        found["cached"] += before
        found["left"] += left
    except OSError:
        found["unread"] += 1
    finally:
        os.close(fd)


def ordered(last: str, paths: Sequence[str]) -> list[str]:
    """Files below the paths, each once, those below `last` at the end."""
    own = dict.fromkeys(walk_files(last) if last else ())
    found = dict.fromkeys(file for path in paths for file in walk_files(path))
    return [*(file for file in found if file not in own), *own]


def main(words: Sequence[str]) -> None:
    evicts, goal = words[0] == "evict", int(words[1])
    found = {"files": 0, "cached": 0, "left": 0, "unread": 0}
    for file in ordered(words[2], words[3:]):
        if evicts and goal and free_memory() >= goal:
            break
        count_file(file, evicts, found)
    sys.stdout.write(json.dumps({**found, "free": free_memory()}) + "\n")


main(sys.argv[1:])
