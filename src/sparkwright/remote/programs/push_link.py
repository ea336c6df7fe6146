"""Connections of a copy: the receiving program on the other side, and the ways for pieces to it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shlex
import subprocess
import threading
from collections.abc import Callable
from typing import Any, ClassVar

from sparkwright.remote.programs.push_files import Failed
from sparkwright.remote.programs.wire import BEAT, BLOCK, BUSY, CHANGED, CUT_OFF, FAILED, Watch, head_of, widen

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


def answered(line: bytes) -> str:
    """Raises Failed with what the other side reports instead of an answer."""
    text = line.decode("utf-8", "replace").strip()
    if text.startswith("error "):
        _, code, why = text.split(" ", 2)
        raise Failed(int(code), why)
    return text


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
        self._came, self._searched = bytearray(), 0
        self._lock, self._watch, self._owed = threading.Lock(), watch, 0
        self.made.append(self)
        widen(self.stdin.fileno())
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
