"""The agreements of both sides of a copy."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import posixpath
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

# COPYING lies in a folder for as long as it is being copied: between two files nothing else would tell half a model
# from all of it. Its name makes it an unfinished download for whoever inspects it.
PARTIAL, COPYING = ".sparkwright-partial", "sparkwright-copy.incomplete"
PIECE, BLOCK = 8 << 20, 1 << 20
SMALL, PACK, PACKED = 1 << 20, PIECE, 250  # files up to SMALL travel together: so many bytes, so many files at most
HEAD = 80  # bytes before each piece: NAME OFFSET LENGTH KIND
# What becomes of a piece once it is on the disk: its pages are kept for the verification of the file, or are summed and
# dropped. BEAT: no piece, only a sign of life.
KEEP, SUM, BEAT = "keep", "sum", "beat"
SUMMED = "crc32:"  # before a checksum by `checksum_of`
BUSY, ALL = "busy", "all"  # the receiver is verifying; the sender has every piece of a file acknowledged
BEATS = 4  # signs of life in the time after which a silent peer is given up
NO_SPACE, CUT_OFF, FAILED, CHANGED = 11, 12, 23, 24


def name_of(path: str) -> str:
    """The name of a file's arriving part, until it is whole."""
    return hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def head_of(name: str, offset: int, length: int, kind: str) -> bytes:
    return f"{name} {offset} {length} {kind}".encode().ljust(HEAD - 1) + b"\n"


def stays_below(path: str, to: str) -> bool:
    """True if a link at this path below a root leads to a place below it, by its text."""
    end = posixpath.normpath(posixpath.join(posixpath.dirname(path), to))
    return not to.startswith("/") and end != ".." and not end.startswith("../")


def checksum_of(pieces: Iterable[int]) -> str:
    """The checksum of a file that nobody has published one of, from the CRC-32 of each piece.

    Two to three times as fast as SHA-256; finds every damage of up to 32 bits in a row.
    """
    return SUMMED + hashlib.sha256(b"".join(one.to_bytes(4, "big") for one in pieces)).hexdigest()


def blocks_of(fd: int, offset: int, length: int) -> Iterator[memoryview]:
    """A part of a file, in blocks that stay in the CPU's cache; each is gone with the next."""
    block = memoryview(bytearray(min(BLOCK, length)))
    for at in range(offset, offset + length, BLOCK):
        yield block[: os.preadv(fd, [block[: offset + length - at]], at)]


def file_crc(fd: int, offset: int, length: int) -> int:
    found = 0
    for block in blocks_of(fd, offset, length):
        found = zlib.crc32(block, found)
    return found


def noted_pieces(journal: Path, size: int, mtime: int) -> list[tuple[int, int, int]]:
    """Pieces that a journal names: offset, length, CRC-32 or -1; none where it is of another content."""
    with contextlib.suppress(OSError, ValueError):
        first, *lines = journal.read_text("ascii").split("\n")
        if first == f"of {size} {mtime}":
            words = (line.split() for line in lines[:-1])  # the last may be half written
            return [(int(a), int(b), int(c)) for a, b, c in (w for w in words if len(w) == 3)]
    return []


def missing(have: Iterable[tuple[int, int]], size: int) -> list[tuple[int, int]]:
    """The gaps between ranges (from, to) of a file, in order."""
    found, at = [], 0
    for begin, to in sorted(have):
        if begin > at:
            found.append((at, begin))
        at = max(at, to)
    return [*found, (at, size)] if at < size else found


def give_way(yields: bool) -> None:
    """Yields to other programs; next to a serving engine, this one gets only spare CPU and disk (SCHED_IDLE is for
    both).

    Priorities count inside a session only where the kernel groups processes by session: the group gives way, too.
    """
    os.nice(5)
    if not yields:
        return
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text("19", "ascii")


def widen_pipe(fd: int) -> None:
    """A pipe of 1 MiB in place of 64 KiB: a sixteenth of the switches between its two ends."""
    with contextlib.suppress(OSError):
        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, 1 << 20)


def put_line(out: BinaryIO, line: str) -> None:
    """Writes a line, also of a path whose bytes are no UTF-8."""
    out.write(line.encode("utf-8", "backslashreplace") + b"\n")
    out.flush()


class Watch:
    """Calls `give_up` once when this program has waited `patience` seconds for the other side, and nothing has come.

    Time is counted in ticks of this program's own: while it was stopped itself, the other side was not silent.
    """

    def __init__(self, patience: float, give_up: Callable[[], None]) -> None:
        self.patience, self.silent = patience, 0.0
        self._give_up, self._lock = give_up, threading.Lock()
        self._owed = self._moves = 0

    def start(self) -> None:
        threading.Thread(target=self._run, daemon=True).start()

    @property
    def over(self) -> bool:
        """True if it has given up: that the connections end is its own doing."""
        return self.silent >= self.patience

    def owe(self, change: int) -> None:
        """Counts the answers that the other side owes."""
        with self._lock:
            self._owed += change
            self._moves += 1

    def moved(self) -> None:
        """Notes a sign of life of the other side."""
        self._moves += 1

    def _run(self) -> None:
        seen, tick = -1, min(1.0, self.patience / 20)
        while self.silent < self.patience:
            time.sleep(tick)
            if self._owed <= 0 or self._moves != seen:
                self.silent, seen = 0.0, self._moves
            else:
                self.silent += tick
        self._give_up()
