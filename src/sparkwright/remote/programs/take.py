"""Receives the files of a model from push.py on another node. Its first line on stdin is JSON, the rest as below.

{"role": "plan", "root", "single", "files": [[path, size, mtime_ns, mode], ...], "links": [[path, to], ...], "secret",
"listen", "gmac", "chain", "yields"}: prints {"missing": [[index, [[from, to], ...]], ...], "folder", "port", "gmac"};
then for each line `INDEX CHECKSUM` it verifies this file, gives it its name and prints `ok INDEX`, or `bad INDEX` when
its content is another: it is received again then. Between these lines come small files, a line `pack LENGTH` and a pack
of several, for which it prints `ok INDEX ...` and `bad INDEX ...`. {"role": "data", "folder", "yields"}: for each head
and its bytes it writes them through to the disk, notes them in a journal and prints an empty line.

What has arrived lies in .sparkwright-partial until it is whole and verified: no half file has a final name, and what a
journal names is not sent again. A line `error CODE TEXT` ends it: 11 no space, 23 anything else.
"""

from __future__ import annotations

import contextlib
import errno
import hmac
import json
import mmap
import os
import queue
import socket
import sys
import threading
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, cast

from sparkwright.remote.programs.take_files import Plan, named, write
from sparkwright.remote.programs.wire import (
    BLOCK,
    DROP,
    FAILED,
    HEAD,
    KEEP,
    NO_SPACE,
    PACK,
    PIECE,
    SALT,
    SUM,
    code_of,
    crc_of,
    crypto,
    give_way,
    put_line,
    widen,
)

_VERIFIERS, _ALIGNED = 4, 4096


class Writer:
    """The pieces of one connection; with a key each carries a code that is verified before anything is written."""

    def __init__(self, folder: Path, source: int, key: bytes = b"", gmac: bool = False) -> None:
        self._folder, self._source, self._key, self._gmac = folder, source, key, gmac
        self._open: dict[str, int] = {}
        self._buffer = memoryview(mmap.mmap(-1, PIECE if key else BLOCK))
        self._splices = not key and hasattr(os, "splice")

    def serve(self, out: BinaryIO) -> None:
        """Raises EOFError at the end of the connection."""
        head = memoryview(bytearray(HEAD + (SALT if self._key else 0)))
        while True:
            self._fill(head)
            name, offset, length, kind = bytes(head[:HEAD]).decode().split()
            self._piece(bytes(head), (name, int(offset), int(length)), kind)
            put_line(out, "")

    def _fill(self, room: memoryview) -> None:
        while room:
            many = os.readv(self._source, [room])
            if not many:
                raise EOFError
            room = room[many:]

    def _blocks(self, room: memoryview) -> Iterator[memoryview]:
        for at in range(0, len(room), BLOCK):
            self._fill(block := room[at : at + BLOCK])
            yield block

    def _coded(self, head: bytes, length: int) -> memoryview:
        """So many bytes of the connection, as nobody has changed them on their way."""
        content = self._buffer[:length]
        code = code_of(self._key, head, self._blocks(content), self._gmac)
        self._compare(code)
        return content

    def _compare(self, made: bytes) -> None:
        code = memoryview(bytearray(len(made)))
        self._fill(code)
        if not hmac.compare_digest(bytes(code), made):
            raise ValueError("a piece was changed on its way")

    def _piece(self, head: bytes, where: tuple[str, int, int], kind: str) -> None:
        name, offset, length = where
        if not named(name) or not 0 < length <= PIECE or offset < 0 or kind not in (KEEP, SUM, DROP):
            raise ValueError(f"piece {name!r} {offset} {length} {kind!r}")
        content = self._coded(head, length) if self._key and kind != KEEP else None
        if self._key and kind == KEEP:  # its content is verified as a whole
            self._compare(code_of(self._key, head, (), self._gmac))
        fd = self._fd(name)
        if offset + length > os.fstat(fd).st_size:
            raise ValueError(f"piece {name!r} {offset} {length} is beyond its file")
        if content is not None and not (kind == DROP and self._past_the_cache(name, content, offset)):
            write(fd, content, offset)
        elif content is None:
            self._through(fd, offset, length)
        os.fdatasync(fd)
        crc = crc_of(fd, offset, length) if kind == SUM else -1
        if kind != KEEP:
            os.posix_fadvise(fd, offset, length, os.POSIX_FADV_DONTNEED)
        journal = os.open(self._folder / f"{name}.journal", os.O_WRONLY | os.O_APPEND)
        os.write(journal, f"{offset} {length} {crc}\n".encode())
        os.close(journal)

    def _past_the_cache(self, name: str, content: memoryview, offset: int) -> bool:
        """Straight to the disk, without a copy in the page cache; False where that is not possible."""
        if offset % _ALIGNED or len(content) % _ALIGNED:
            return False
        try:
            fd = os.open(self._folder / name, os.O_WRONLY | os.O_NOFOLLOW | os.O_DIRECT)
        except OSError:
            return False
        try:
            return os.pwrite(fd, content, offset) == len(content)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            return False
        finally:
            os.close(fd)

    def _through(self, fd: int, offset: int, length: int) -> None:
        """From the pipe to the file, inside the kernel where it can."""
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


def listening(asked: dict[str, Any], folder: Path, gmac: bool) -> int:
    """The port where pieces come over plain TCP, each with a code made with the secret."""
    many, key = asked["streams"], bytes.fromhex(asked["secret"])
    server = socket.create_server((asked["listen"], 0), backlog=many)

    def served() -> None:
        while True:
            one, _ = server.accept()
            with one, one.makefile("wb") as out, contextlib.suppress(OSError, ValueError, EOFError):
                try:
                    Writer(folder, one.fileno(), key, gmac).serve(out)
                except OSError as error:
                    put_line(out, reason(error))

    for _ in range(many):
        threading.Thread(target=served, daemon=True).start()
    return int(server.getsockname()[1])


class Answers:
    """Lines to the other side, of several threads. No one is left to read them once it is gone."""

    def __init__(self, plan: Plan, out: BinaryIO) -> None:
        self._plan, self._out, self._lock = plan, out, threading.Lock()
        self.due = queue.SimpleQueue[list[str] | None]()

    def put(self, line: str) -> None:
        with self._lock, contextlib.suppress(OSError):
            put_line(self._out, line)

    def verify(self) -> None:
        """Files that are due, until None."""
        with contextlib.suppress(EOFError):
            while (words := self.due.get()) is not None:
                try:
                    index, expected = words
                    self.put(f"{'ok' if self._plan.finish(int(index), expected) else 'bad'} {index}")
                except EOFError:
                    raise
                except Exception as error:  # without an answer the other side would wait for ever
                    self.put(reason(error))

    def unpack(self, content: memoryview) -> None:
        for word, indexes in self._plan.unpack(content).items():
            if indexes:
                self.put(" ".join((word, *map(str, indexes))))


def verified(plan: Plan, source: BufferedReader, out: BinaryIO) -> None:
    """Several at once: one core hashes more slowly than a fast link delivers."""
    answers = Answers(plan, out)
    verifiers = [threading.Thread(target=answers.verify, daemon=True) for _ in range(_VERIFIERS)]
    try:
        for one in verifiers:
            one.start()
        for line in iter(source.readline, b""):
            match line.decode().split():
                case ["pack", length]:
                    answers.unpack(received(source, int(length)))
                case words:
                    answers.due.put(words)
    finally:
        plan.over.set()
        for _ in verifiers:
            answers.due.put(None)
    for one in verifiers:
        one.join()
    plan.end()


def received(source: BufferedReader, length: int) -> memoryview:
    if not 0 < length <= PIECE + PACK:
        raise ValueError(f"a pack of {length} bytes")
    content = source.read(length)
    if len(content) < length:
        raise EOFError
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
        widen(0)
        decipher_later(asked.get("yields", False))
        if asked["role"] == "data":
            put_line(out, "ready")
            Writer(Path(asked["folder"]), 0).serve(out)
        plan = Plan(asked)
        found: dict[str, object] = {"missing": plan.begin(), "folder": str(plan.folder)}
        found["gmac"] = gmac = asked.get("gmac", False) and bool(crypto())
        found["port"] = listening(asked, plan.folder, gmac) if asked.get("listen") else 0
        put_line(out, json.dumps(found))
        verified(plan, source, out)
    except EOFError:
        return 0
    except (OSError, ValueError, LookupError, TypeError) as error:
        put_line(out, reason(error))
    return 0


sys.exit(main(cast(BufferedReader, sys.stdin.buffer), sys.stdout.buffer))
