"""The work of a copy, in ranges and packs of small files, its state of arrival, and the connections that carry it."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import select
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from sparkwright.remote.programs.push_files import Failed, arriving, is_whole, listing, published, ranges_of
from sparkwright.remote.programs.wire import (
    BEAT,
    BLOCK,
    BUSY,
    CHANGED,
    CUT_OFF,
    FAILED,
    KEEP,
    PACK,
    PACKED,
    PIECE,
    SMALL,
    SUM,
    Watch,
    head_of,
    missing,
    name_of,
    put_line,
    widen_pipe,
)

TAKE = ""  # the text of take.py
_FAST = (
    "-o",
    "Ciphers=^aes128-gcm@openssh.com,aes256-gcm@openssh.com",
    "-o",
    "Compression=no",
    "-o",
    "ControlPath=none",
)
_BOOT = "import sys;f=sys.stdin.buffer;exec(f.read(int(f.readline())))"
_MAX_LINE, _MAX_COMPLAINT = 256 << 20, 64 << 10
_RANGE, _SHARES = 64 << 20, 2
_SLACK = 0.02  # seconds of the limited rate that may be caught up on
_STALLED = 5.0  # seconds without a sign of the peer that a line of progress names
MOST, LITTLE = 16, 64 << 20  # connections; bytes that are sent before a second one is made


def answered(line: bytes) -> str:
    """Raises Failed with what the other side reports instead of an answer."""
    text = line.decode("utf-8", "replace").strip()
    if text.startswith("error "):
        _, code, why = text.split(" ", 2)
        raise Failed(int(code), why)
    return text


def silence(peer: str, watch: Watch) -> str:
    return f"{peer or 'the peer'} has acknowledged nothing for {watch.patience:.0f} s"


class Pipe:
    """take.py on the other side, its stdin and stdout; it does nothing before `hello`."""

    made: ClassVar[list[Pipe]] = []

    def __init__(self, asked: dict[str, Any], watch: Watch) -> None:
        inner = f'PATH="$PATH:/usr/local/bin"; exec python3 -I -S -c "{_BOOT}"'
        words = [*asked["ssh"], *_FAST, "--", asked["at"], f"sh -c {shlex.quote(inner)}"] if asked["ssh"] else []
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(words or ["sh", "-c", inner], stdin=pipe, stdout=pipe, stderr=pipe)
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._stderr = self._process.stderr
        self.stdin, self._stdout = self._process.stdin, self._process.stdout.fileno()
        self._came, self._searched, self._peer = bytearray(), 0, asked["peer"]
        self._lock, self._watch, self._owed = threading.Lock(), watch, 0
        self.made.append(self)
        widen_pipe(self.stdin.fileno())
        text = TAKE.encode()
        self._tell(b"%d\n%s" % (len(text), text))  # is compiled there before there is something to do

    def hello(self, hello: dict[str, object]) -> None:
        self._tell(json.dumps(hello).encode() + b"\n")

    def _tell(self, data: bytes) -> None:
        try:
            self.write(data)
        except OSError:
            raise self.lost() from None

    def write(self, data: bytes, pace: Callable[[int], None] = lambda _: None) -> None:
        with self._lock:
            for at in range(0, len(data), BLOCK):
                pace(self.stdin.write(memoryview(data)[at : at + BLOCK]))
            self.stdin.flush()

    def owe(self, change: int) -> None:
        """Counts the answers that the peer owes on this connection."""
        self._owed += change
        self._watch.owe(change)

    def ready(self) -> bool:
        """True if `line` would find something to read."""
        return b"\n" in self._came or bool(select.select([self._stdout], [], [], 0)[0])

    def line(self) -> str:
        """Raises Failed with what the other side reports, or with why it is gone."""
        while True:
            text = answered(self._next())
            self._watch.moved()
            if text != BUSY:
                return text

    def _next(self) -> bytes:
        while (end := self._came.find(b"\n", self._searched)) < 0:
            self._searched = len(self._came)
            chunk = os.read(self._stdout, 1 << 16)
            if not chunk or len(self._came) > _MAX_LINE:
                raise self.lost()
            self._came += chunk
        line = bytes(self._came[:end])
        del self._came[: end + 1]
        self._searched = 0
        return line

    def lost(self) -> Failed:
        """The reason why the peer is gone; the rest of the connection is ended."""
        if self._watch.over:
            return Failed(CUT_OFF, silence(self._peer, self._watch))
        try:
            code = self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        os.set_blocking(self._stderr.fileno(), False)  # another process may hold it open
        said = self._stderr.read(_MAX_COMPLAINT) or b""
        words = said.decode("utf-8", "replace").strip().splitlines()
        return Failed(code if code in (127, 255) else CUT_OFF, words[-1] if words else f"the peer ended with {code}")

    def close(self, orderly: bool = False) -> None:
        """orderly: the other side has something left to do."""
        self.owe(-self._owed)
        if orderly:
            self.owe(1)
            self.stdin.close()
        else:
            self.kill()
        self._process.wait()
        self.owe(-self._owed)

    def kill(self) -> None:
        """Ends the connection, however little the peer does."""
        with contextlib.suppress(OSError):
            self._process.kill()


class Wire:
    """One data connection. pace: waits after so many bytes, where a limit asks for it."""

    def __init__(self, pipe: Pipe, pace: Callable[[int], None]) -> None:
        self._pipe, self._pace, self._out = pipe, pace, pipe.stdin.fileno()
        self.ready = pipe.ready

    def send(self, head: bytes, fd: int, offset: int, length: int) -> None:
        """One piece, without its answer. Raises Failed for a file that has become shorter."""
        self._pipe.owe(1)
        self._all(head)
        done = 0
        while done < length:
            many = os.sendfile(self._out, fd, offset + done, min(BLOCK, length - done))
            if not many:
                raise Failed(CHANGED, "a file has become shorter")
            done += many
            self._pace(many)

    def beat(self) -> None:
        """Tells the other side that this one is there, while there is nothing to send."""
        self._all(head_of("-", 0, 0, BEAT))

    def _all(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._out, view) :]

    def reason(self, error: Exception) -> Failed:
        """The reason why sending failed: the place where the connection broke, as the other side reported it."""
        if isinstance(error, OSError) and not isinstance(error, ConnectionError):
            return Failed(FAILED, str(error))
        try:
            while True:
                self._pipe.line()
        except Failed as failed:
            return failed
        except OSError:
            return Failed(CUT_OFF, str(error))

    def answer(self, offset: int) -> None:
        """Reads the answer to the piece at `offset`. Raises Failed when it is another, or when the peer is gone."""
        text = self._pipe.line()
        if text != f"got {offset}":
            raise Failed(CUT_OFF, f"the peer answered {text[:100]!r} to the piece at {offset}")
        self._pipe.owe(-1)

    def close(self) -> None:
        self._pipe.close()


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
        for pipe in list(Pipe.made):
            pipe.kill()
        put_line(sys.stdout.buffer, silence(self.asked["peer"], self.watch))
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
        for begin, to in deal_ranges(ranges, self._rest, self._many):
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


def deal_ranges(ranges: list[tuple[int, int]], rest: int, many: int) -> Iterator[tuple[int, int]]:
    """Ranges in parts for so many connections. rest: bytes of the copy from here on.

    Smaller ones towards the end: large ones would leave some connections without work.
    """
    for begin, to in ranges:
        while begin < to:
            end = min(begin + max(PIECE, min(_RANGE, rest // (_SHARES * many) // PIECE * PIECE)), to)
            yield begin, end
            rest -= end - begin
            begin = end
