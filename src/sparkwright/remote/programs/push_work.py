"""The work of a copy, in ranges and packs of small files, and its state of arrival."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from sparkwright.remote.programs.push_files import Failed, arriving, is_whole, listing, published, ranges_of
from sparkwright.remote.programs.push_link import Pipe
from sparkwright.remote.programs.wire import (
    BLOCK,
    CUT_OFF,
    KEEP,
    PACK,
    PACKED,
    PIECE,
    SMALL,
    SUM,
    Watch,
    missing,
    name_of,
    put_line,
)

_RANGE, _SHARES = 64 << 20, 2
_SLACK = 0.02  # seconds of the limited rate that may be caught up on
_STALLED = 5.0  # seconds without a sign of the peer that a line of progress names
MOST, LITTLE = 16, 64 << 20  # connections; bytes that are sent before a second one is made


class CopyRange(NamedTuple):
    """A file, by its number, and a range of it."""

    file: int
    begin: int
    to: int


class CopyPace:
    """limit: bytes a second, 0: none."""

    def __init__(self, limit: int) -> None:
        self._limit, self._free = limit, 0.0

    def ahead(self, length: int, now: float) -> float:
        """Seconds to wait after so many bytes; what a stall has left of the rate is not caught up on in a burst."""
        if not self._limit:
            return 0.0
        self._free = max(self._free, now - _SLACK) + length / self._limit
        return self._free - now


class Copy:
    """The state that all connections share. left: bytes of large files that have not arrived. packs: small files, which
    go by the connection that controls the copy. news: what the loop waits for: the number of a large file that has
    arrived, a line of the peer, or what has failed. sums: CRC-32 by file and offset."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self.asked, source, target = asked, Path(asked["source"]), Path(asked["target"])
        many = asked["streams"] or MOST
        slow = many * BLOCK / asked["limit"] if asked["limit"] else 0.0  # each connection waits for all others
        self.watch = Watch(asked["patience"] + slow, self._give_up)
        self.watch.start()
        self.control = Pipe(asked, self.watch)  # logs in while the files are listed
        found = arriving(source, asked["chain"]) if asked["follows"] else listing(source)
        self.files = found.files
        paths = [target.name if found.single and len(self.files) == 1 else file.path for file in self.files]
        self.names = [name_of(path) for path in paths]
        self.total, self.sent = sum(file.size for file in self.files), 0
        root = target.parent if found.single else target
        plan = {"role": "plan", "root": str(root), "single": found.single, "links": found.links}
        plan["files"] = [[path, *file[1:4]] for path, file in zip(paths, self.files, strict=True)]
        plan["chain"] = asked["chain"] if asked["leads"] else ""
        # Logs in while the other side makes its plan
        self._spare = None if all(one.size <= SMALL for one in self.files) else Pipe(asked, self.watch)
        answer = self._answer(plan)
        self.folder = answer["folder"]
        self.due: dict[int, list[tuple[int, int]]] = {n: [(a, b) for a, b in ranges] for n, ranges in answer["missing"]}
        lacking = {n: sum(to - begin for begin, to in ranges) for n, ranges in self.due.items()}
        self.left = {n: many for n, many in lacking.items() if self.files[n].size > SMALL}
        self.kinds = {n: KEEP if published(self.files[n]) else SUM for n in lacking}
        self.sums: dict[int, dict[int, int]] = {n: {} for n in self.due}
        self.streams = self.connected = 0
        self.before, self._rest = self.total - sum(lacking.values()), sum(self.left.values())
        self._began, self._lock, self._pace = time.monotonic(), threading.Lock(), CopyPace(asked["limit"])
        self.work: queue.Queue[CopyRange] = queue.Queue()
        self.packs: queue.Queue[list[int]] = queue.Queue()
        self.news: queue.Queue[int | str | Failed] = queue.Queue()
        self._many = many

    def _hello(self, what: dict[str, object]) -> dict[str, object]:
        """The first line for the other side; `from`: as it names this one."""
        return what | {"yields": self.asked["yields"], "from": self.asked["from"], "patience": self.watch.patience}

    def _answer(self, plan: dict[str, object]) -> dict[str, Any]:
        """The other side's answer to the plan. Raises Failed."""
        self.control.owe(1)
        self.control.hello(self._hello(plan))
        line = self.control.line()
        self.control.owe(-1)
        try:
            found: dict[str, Any] = json.loads(line)
        except ValueError:
            raise Failed(CUT_OFF, f"the peer answered {line[:100]!r} to the list of files") from None
        return found

    def pipe(self) -> Pipe:
        """One more connection, ready for pieces. Raises Failed."""
        with self._lock:
            spare, self._spare = self._spare, None
        made = spare or Pipe(self.asked, self.watch)
        made.owe(1)
        made.hello(self._hello({"role": "data", "folder": self.folder}))
        if (line := made.line()) != "ready":
            raise Failed(CUT_OFF, f"the peer answered {line[:100]!r} instead of `ready`")
        made.owe(-1)
        return made

    def _give_up(self) -> None:
        """Ends this program: the peer is frozen, or nothing gets through to it any more."""
        node = self.asked["peer"] or "the peer"
        for pipe in list(Pipe.made):
            pipe.kill()
        put_line(sys.stdout.buffer, f"{node} has acknowledged nothing for {self.watch.patience:.0f} s")
        os._exit(CUT_OFF)

    def deal(self) -> int:
        """Makes work of all that is due and here; the bytes that have not arrived here yet."""
        small: list[int] = []
        with self._lock:
            for index, due in list(self.due.items()):
                file = self.files[index]
                if file.size <= SMALL:
                    if not file.part or is_whole(file):
                        small.append(index)
                        del self.due[index]
                    continue
                gaps = missing(ranges_of(file) if file.part else [(0, file.size)], file.size)
                self._ranges(index, overlap(due, missing(gaps, file.size)))
                if not due:  # all of it has arrived in an earlier call
                    self.news.put(index)
                del self.due[index]
                if rest := overlap(due, gaps):
                    self.due[index] = rest
            self._packs(small)
            return sum(to - begin for due in self.due.values() for begin, to in due)

    def _ranges(self, index: int, ranges: list[tuple[int, int]]) -> None:
        for begin, to in dealt(ranges, self._rest, self._many):
            self.work.put(CopyRange(index, begin, to))
            self._rest -= to - begin

    def _packs(self, small: list[int]) -> None:
        pack: list[int] = []
        size, most = 0, min(PACK, self.asked["limit"] or PACK)  # nothing else goes by this connection meanwhile
        for index in small:
            if pack and (size + self.files[index].size > most or len(pack) == PACKED):
                self.packs.put(pack)
                pack, size = [], 0
            pack.append(index)
            size += self.files[index].size
        if pack:
            self.packs.put(pack)

    def again(self, index: int) -> None:
        """The whole file once more."""
        with self._lock:
            self.due[index] = [(0, self.files[index].size)]
            if index in self.left:
                self.left[index] = self.files[index].size
        self.deal()
        self.announce(index)

    def announce(self, index: int) -> bool:
        """Announces the checksum if it is known before sending: the file is then verified while it comes. True if
        so."""
        checksum = published(self.files[index]) if index in self.left else ""
        if checksum:
            self.tell(f"{index} {checksum}")
        return bool(checksum)

    def ask_to_verify(self, index: int, checksum: str) -> None:
        """Has a file verified of which the peer has acknowledged all. checksum: ALL where it is known there."""
        self.control.owe(1)
        self.tell(f"{index} {checksum}")

    def tell(self, line: str) -> None:
        """A line for the peer. Where it is gone `listen` reports why."""
        with contextlib.suppress(ConnectionError):
            self.control.write(f"{line}\n".encode())

    def paced(self, length: int) -> None:
        """Waits where the limit asks for it."""
        with self._lock:
            now = time.monotonic()
            if not self.sent:
                self._began = now  # making connections is no part of the rate
            self.sent += length
            self.watch.moved()
            ahead = self._pace.ahead(length, now)
        if ahead > 0:
            time.sleep(ahead)

    def arrived(self, index: int, length: int) -> None:
        with self._lock:
            self.left[index] -= length
            done = not self.left[index]
        if done:
            self.news.put(index)

    def counted(self, change: int) -> int:
        """Counts connections, made or not, and returns their number."""
        with self._lock:
            self.streams += change
            return self.streams

    def leave(self) -> None:
        """Removes the leftovers of a chain, and a connection that nobody needed."""
        if self._spare:
            self._spare.close()
        for file in self.files[:1] if self.asked["follows"] and all(map(is_whole, self.files)) else ():
            with contextlib.suppress(OSError):
                Path(file.part).parent.rmdir()

    def report(self, more: str = "") -> None:
        rate = self.sent / max(time.monotonic() - self._began, 0.001)
        done = min(self.before + self.sent, self.total)
        rest = int((self.total - done) / rate) if rate else 0
        clock = f"{rest // 3600}:{rest // 60 % 60:02}:{rest % 60:02}"
        more = more or (f" no data for {self.watch.silent:.0f} s" if self.watch.silent >= _STALLED else "")
        sys.stdout.write(f"{done:,} {100 * done // max(self.total, 1)}% {rate / 1e6:.2f}MB/s {clock}{more}\n")
        sys.stdout.flush()


def overlap(some: list[tuple[int, int]], others: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The overlap of two lists of ranges."""
    return [(max(a, c), min(b, d)) for a, b in some for c, d in others if max(a, c) < min(b, d)]


def dealt(ranges: list[tuple[int, int]], rest: int, many: int) -> Iterator[tuple[int, int]]:
    """Ranges in parts for so many connections. rest: bytes of the copy from here on.

    Smaller ones towards the end: large ones would leave some connections without work.
    """
    for begin, to in ranges:
        while begin < to:
            end = min(begin + max(PIECE, min(_RANGE, rest // (_SHARES * many) // PIECE * PIECE)), to)
            yield begin, end
            rest -= end - begin
            begin = end
