"""What both sides of a copy agree on."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import hmac
import os
import posixpath
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

# COPYING lies in a folder for as long as it is being copied: between two files nothing else would tell half a model
# from all of it. Its name makes it an unfinished download for whoever inspects it.
PARTIAL, COPYING = ".sparkwright-partial", "sparkwright-copy.incomplete"
PIECE, BLOCK = 8 << 20, 1 << 20
SMALL, PACK, PACKED = 1 << 20, PIECE, 1000  # files up to SMALL travel together: so many bytes, so many files at most
HEAD = 80  # bytes before each piece: NAME OFFSET LENGTH KIND
# What becomes of a piece once it is on the disk: its pages are kept for the verification of the file, are summed and
# dropped, or are dropped; a pack is several whole files.
KEEP, SUM, DROP, FILES = "keep", "sum", "drop", "files"
UNNAMED, SUMMED = "-", "crc32:"  # no checksum: each piece came with a code; a checksum by `sum_of`
NO_SPACE, CUT_OFF, FAILED, CHANGED = 11, 12, 23, 24


def name_of(path: str) -> str:
    """Of what has arrived of a file, until it is whole."""
    return hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def head_of(name: str, offset: int, length: int, kind: str) -> bytes:
    return f"{name} {offset} {length} {kind}".encode().ljust(HEAD - 1) + b"\n"


def stays(path: str, to: str) -> bool:
    """Whether a link at this path below a root leads to a place below it, by its text."""
    end = posixpath.normpath(posixpath.join(posixpath.dirname(path), to))
    return not to.startswith("/") and end != ".." and not end.startswith("../")


def code_of(key: bytes, head: bytes, blocks: Iterable[bytes | memoryview]) -> bytes:
    """32 bytes that nobody without the key can make. By SHA-256, which CPUs of today compute in hardware.

    blocks: best of a size that stays in the CPU's cache.
    """
    made = hmac.new(key, head, "sha256")
    for block in blocks:
        made.update(block)
    return made.digest()


def sum_of(pieces: Iterable[int]) -> str:
    """The checksum of a file that nobody has published one of, from the CRC-32 of each piece.

    Two to three times as fast as SHA-256; finds every damage of up to 32 bits in a row.
    """
    return SUMMED + hashlib.sha256(b"".join(one.to_bytes(4, "big") for one in pieces)).hexdigest()


def blocks_of(fd: int, offset: int, length: int) -> Iterator[memoryview]:
    """A part of a file, in blocks that stay in the CPU's cache; each is gone with the next."""
    block = memoryview(bytearray(min(BLOCK, length)))
    for at in range(offset, offset + length, BLOCK):
        yield block[: os.preadv(fd, [block[: offset + length - at]], at)]


def crc_of(fd: int, offset: int, length: int) -> int:
    found = 0
    for block in blocks_of(fd, offset, length):
        found = zlib.crc32(block, found)
    return found


def noted(journal: Path, size: int, mtime: int) -> list[tuple[int, int, int]]:
    """Pieces that a journal names: offset, length, CRC-32 or -1; none where it is of another content."""
    with contextlib.suppress(OSError, ValueError):
        first, *lines = journal.read_text("ascii").split("\n")
        if first == f"of {size} {mtime}":
            words = (line.split() for line in lines[:-1])  # the last may be half written
            return [(int(a), int(b), int(c)) for a, b, c in (w for w in words if len(w) == 3)]
    return []


def missing(have: Iterable[tuple[int, int]], size: int) -> list[tuple[int, int]]:
    """What is between ranges (from, to) of a file, in order."""
    found, at = [], 0
    for begin, to in sorted(have):
        if begin > at:
            found.append((at, begin))
        at = max(at, to)
    return [*found, (at, size)] if at < size else found


def give_way(yields: bool) -> None:
    """Behind other programs; where an engine serves, only with what CPUs and disk have left (SCHED_IDLE is for both).

    Priorities count inside a session only where the kernel groups processes by session: the group gives way, too.
    """
    os.nice(5)
    if not yields:
        return
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text("19", "ascii")


def widen(fd: int) -> None:
    """A pipe of 1 MiB in place of 64 KiB: a sixteenth of the switches between its two ends."""
    with contextlib.suppress(OSError):
        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, 1 << 20)
