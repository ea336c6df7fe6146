"""Receives the files of a model from push.py on another node. Its first line on stdin is JSON, the rest as below.

{"role": "plan", "root", "single", "files": [[path, size, mtime_ns, mode], ...], "links": [[path, to], ...], "chain",
"yields", "from", "patience"}: prints {"missing": [[index, [[from, to], ...]], ...], "folder"}; then for each line
`INDEX CHECKSUM` it verifies this file once every piece of it is in its journal, gives it its name and prints `ok
INDEX`, or `bad INDEX` when its content is another: it is received again then. `INDEX all`: every piece of it was
acknowledged; when one is missing then, it is `bad`. Between these lines come small files, a line `pack LENGTH` and a
pack of several, for which it prints `ok INDEX ...` and `bad INDEX ...`. An empty line is a sign of life, as is `busy`
from here. {"role": "data", "folder", "yields", "from", "patience"}: prints `ready`, and for each head and its bytes it
writes them through to the disk, notes them in a journal and prints `got OFFSET`.

What has arrived lies in .sparkwright-partial until it is whole and verified: no half file has a final name, and what a
journal names is not sent again. A line `error CODE TEXT` ends it: 11 no space, 12 the sender (`from`) was silent for
`patience` seconds, 23 anything else.
"""

from __future__ import annotations

import contextlib
import errno
import json
import mmap
import os
import queue
import sys
import threading
import time
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, cast

from sparkwright.remote.programs.take_files import ReceivedPlan, is_temporary, write
from sparkwright.remote.programs.wire import (
    ALL,
    BEAT,
    BEATS,
    BLOCK,
    BUSY,
    CUT_OFF,
    FAILED,
    HEAD,
    KEEP,
    NO_SPACE,
    PACK,
    PIECE,
    SUM,
    Watch,
    file_crc,
    give_way,
    put_line,
    widen_pipe,
)

_VERIFIERS, _PATIENCE, _MAX_LINE = 4, 60.0, 64 << 20


@contextlib.contextmanager
def waiting(watch: Watch) -> Iterator[None]:
    """Counts the time in here as silence of the other side."""
    watch.owe(1)
    try:
        yield
    finally:
        watch.owe(-1)


def watching(asked: dict[str, Any], out: BinaryIO) -> Watch:
    """Ends this program once the sender is silent for as long as it would wait itself."""
    sender = asked.get("from") or "the sender"

    def give_up() -> None:
        os.set_blocking(out.fileno(), False)  # a frozen peer reads nothing
        with contextlib.suppress(OSError):
            os.write(out.fileno(), f"error {CUT_OFF} {sender} was silent for {watch.patience:.0f} s\n".encode())
        os._exit(0)

    watch = Watch(asked.get("patience", _PATIENCE), give_up)
    watch.start()
    return watch


class Writer:
    """The pieces of one connection."""

    def __init__(self, folder: Path, source: int, watch: Watch) -> None:
        self._folder, self._source, self._watch = folder, source, watch
        self._open: dict[str, int] = {}
        self._buffer = memoryview(mmap.mmap(-1, BLOCK))
        self._splices = hasattr(os, "splice")

    def serve(self, out: BinaryIO) -> None:
        """Raises EOFError at the end of the connection."""
        head = memoryview(bytearray(HEAD))
        while True:
            with waiting(self._watch):
                self._fill(head)
            name, offset, length, kind = bytes(head).decode().split()
            if kind != BEAT:
                self._piece((name, int(offset), int(length)), kind)
                put_line(out, f"got {offset}")

    def _fill(self, room: memoryview) -> None:
        while room:
            many = os.readv(self._source, [room])
            if not many:
                raise EOFError
            room = room[many:]

    def _piece(self, where: tuple[str, int, int], kind: str) -> None:
        name, offset, length = where
        if not is_temporary(name) or not 0 < length <= PIECE or offset < 0 or kind not in (KEEP, SUM):
            raise ValueError(f"piece {name!r} {offset} {length} {kind!r}")
        fd = self._fd(name)
        if offset + length > os.fstat(fd).st_size:
            raise ValueError(f"piece {name!r} {offset} {length} is beyond its file")
        with waiting(self._watch):
            self._through(fd, offset, length)
        os.fdatasync(fd)
        crc = file_crc(fd, offset, length) if kind == SUM else -1
        if kind != KEEP:
            os.posix_fadvise(fd, offset, length, os.POSIX_FADV_DONTNEED)
        journal = os.open(self._folder / f"{name}.journal", os.O_WRONLY | os.O_APPEND)
        os.write(journal, f"{offset} {length} {crc}\n".encode())
        os.close(journal)

    def _through(self, fd: int, offset: int, length: int) -> None:
        """Copies from the pipe to the file, inside the kernel if possible."""
        end = offset + length
        while offset < end:
            try:
                many = os.splice(self._source, fd, end - offset, offset_dst=offset) if self._splices else -1
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.ENOSYS):
                    raise
                self._splices, many = False, -1
            if many < 0:
                many = os.readv(self._source, [self._buffer[: end - offset]])
                write(fd, self._buffer[:many], offset)
            if not many:
                raise EOFError
            self._watch.moved()
            offset += many

    def _fd(self, name: str) -> int:
        if name not in self._open:
            for old in self._open.values():
                os.close(old)
            self._open = {}
            self._open = {name: os.open(self._folder / name, os.O_RDWR | os.O_NOFOLLOW)}
        return self._open[name]


def decipher_later(yields: bool) -> None:
    """The sshd of this connection, which carries nothing else, gives way as this program does."""
    parent = os.getppid()
    with contextlib.suppress(OSError):
        if yields and Path(f"/proc/{parent}/comm").read_text("ascii").startswith("sshd"):
            os.sched_setscheduler(parent, os.SCHED_IDLE, os.sched_param(0))


class TakeAnswers:
    """Lines to the other side, of several threads. No one is left to read them once it is gone."""

    def __init__(self, out: BinaryIO, patience: float) -> None:
        self._out, self._lock = out, threading.Lock()
        self._last, self._pause = time.monotonic(), patience / BEATS
        self.due = queue.SimpleQueue[list[str] | None]()

    def put(self, line: str) -> None:
        with self._lock, contextlib.suppress(OSError):
            self._last = time.monotonic()
            put_line(self._out, line)

    def busy(self) -> None:
        """Tells the other side, now and then, that work goes on here."""
        if time.monotonic() - self._last >= self._pause:
            self.put(BUSY)

    def verify(self, plan: ReceivedPlan) -> None:
        """Files that are due, until None."""
        with contextlib.suppress(EOFError):
            while (words := self.due.get()) is not None:
                try:
                    index, expected = words
                    self.put(f"{'ok' if plan.finish(int(index), expected) else 'bad'} {index}")
                except EOFError:
                    raise
                except Exception as error:  # without an answer the other side would wait for ever
                    self.put(reason(error))

    def unpack(self, plan: ReceivedPlan, content: memoryview) -> None:
        for word, indexes in plan.unpack(content).items():
            if indexes:
                self.put(" ".join((word, *map(str, indexes))))


def verified(plan: ReceivedPlan, answers: TakeAnswers, source: BufferedReader, watch: Watch) -> None:
    """Several at once: one core hashes more slowly than a fast link delivers."""
    verifiers = [threading.Thread(target=answers.verify, args=(plan,), daemon=True) for _ in range(_VERIFIERS)]
    try:
        for one in verifiers:
            one.start()
        while line := next_line(source, watch):
            match line.decode().split():
                case ["pack", length]:
                    answers.unpack(plan, received(source, int(length), watch))
                case [index, word] if word == ALL:
                    plan.all_sent(int(index))
                case []:
                    continue
                case words:
                    answers.due.put(words)
    finally:
        plan.over.set()
        for _ in verifiers:
            answers.due.put(None)
    for one in verifiers:
        one.join()
    plan.end()


def next_line(source: BufferedReader, watch: Watch) -> bytes:
    with waiting(watch):
        return source.readline(_MAX_LINE)


def received(source: BufferedReader, length: int, watch: Watch) -> memoryview:
    if not 0 < length <= PIECE + PACK:
        raise ValueError(f"a pack of {length} bytes")
    content = bytearray()
    with waiting(watch):
        while len(content) < length:
            block = source.read(min(BLOCK, length - len(content)))
            if not block:
                raise EOFError
            content += block
            watch.moved()
    return memoryview(content)


def reason(error: Exception) -> str:
    if not isinstance(error, OSError):
        return f"error {FAILED} {error}"
    code = NO_SPACE if error.errno in (errno.ENOSPC, errno.EDQUOT) else FAILED
    return f"error {code} {error.strerror or error}: {error.filename2 or error.filename or ''}".rstrip(": ")


def main(source: BufferedReader, out: BinaryIO) -> int:
    asked = json.loads(source.readline())
    give_way(asked.get("yields", False))
    try:
        widen_pipe(0)
        decipher_later(asked.get("yields", False))
        watch = watching(asked, out)
        if asked["role"] == "data":
            put_line(out, "ready")
            Writer(Path(asked["folder"]), 0, watch).serve(out)
        answers = TakeAnswers(out, watch.patience)
        plan = ReceivedPlan(asked, answers.busy)
        found: dict[str, object] = {"missing": plan.begin(), "folder": str(plan.folder)}
        answers.put(json.dumps(found))
        verified(plan, answers, source, watch)
    except EOFError:
        return 0
    except (OSError, ValueError, LookupError, TypeError) as error:
        put_line(out, reason(error))
    return 0


sys.exit(main(cast(BufferedReader, sys.stdin.buffer), sys.stdout.buffer))
