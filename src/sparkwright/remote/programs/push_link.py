"""Connections of a copy: the receiving program on the other side, and the ways for pieces to it."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import threading
from collections.abc import Callable
from typing import Any

from sparkwright.remote.programs.push_files import Failed
from sparkwright.remote.programs.wire import BLOCK, CHANGED, CUT_OFF, FAILED, KEEP, SALT, blocks_of, code_of, widen

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


def answered(line: bytes) -> str:
    """Raises Failed with what the other side reports instead of an answer."""
    text = line.decode("utf-8", "replace").strip()
    if text.startswith("error "):
        _, code, why = text.split(" ", 2)
        raise Failed(int(code), why)
    return text


class Pipe:
    """take.py on the other side, its stdin and stdout; it does nothing before `hello`."""

    def __init__(self, asked: dict[str, Any]) -> None:
        inner = f'PATH="$PATH:/usr/local/bin"; exec python3 -I -S -c "{_BOOT}"'
        words = [*asked["ssh"], *_FAST, "--", asked["at"], f"sh -c {shlex.quote(inner)}"] if asked["ssh"] else []
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(words or ["sh", "-c", inner], stdin=pipe, stdout=pipe, stderr=pipe)
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._stderr = self._process.stderr
        self.stdin, self.stdout = self._process.stdin, self._process.stdout
        self._lock = threading.Lock()
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

    def line(self) -> str:
        """Raises Failed with what the other side reports, or with why it is gone."""
        line = self.stdout.readline()
        if not line:
            raise self.lost()
        return answered(line)

    def lost(self) -> Failed:
        said, code = self._stderr.read(), self._process.wait()
        words = said.decode("utf-8", "replace").strip().splitlines()
        return Failed(code if code in (127, 255) else CUT_OFF, words[-1] if words else f"the peer ended with {code}")

    def close(self, orderly: bool = False) -> None:
        """orderly: the other side has something left to do."""
        if orderly:
            self.stdin.close()
        else:
            self._process.kill()
        self._process.wait()


class Wire:
    """One data connection, by ssh (pipe) or by TCP. pace: waits after so many bytes, where a limit asks for it."""

    def __init__(self, asked: dict[str, Any], port: int, pace: Callable[[int], None], pipe: Pipe | None) -> None:
        self._pace, self._pipe = pace, pipe
        self._key, self._gmac = bytes.fromhex(asked["secret"]) if port else b"", asked["gmac"]
        if pipe:
            self._out = pipe.stdin.fileno()
        else:
            self._socket = socket.create_connection((asked["listen"], port), 10)
            self._socket.settimeout(None)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # a code waits for no answer
            self._out, self._in = self._socket.fileno(), self._socket.makefile("rb")

    def send(self, head: bytes, fd: int, offset: int, length: int) -> None:
        """One piece, without its answer. Raises Failed for a file that has become shorter.

        What changes between its code and its way is refused by the other side. Where the publisher's checksum verifies
        the content, which ssh has carried, a code in front of it reports where it belongs.
        """
        code, kept = b"", head.split()[3] == KEEP.encode()
        if self._key:
            head += os.urandom(SALT)
            code = code_of(self._key, head, () if kept else blocks_of(fd, offset, length), self._gmac)
        self._all(head + code if kept else head)
        done = 0
        while done < length:
            many = os.sendfile(self._out, fd, offset + done, min(BLOCK, length - done))
            if not many:
                raise Failed(CHANGED, "a file has become shorter")
            done += many
            self._pace(many)
        self._all(b"" if kept else code)

    def _all(self, data: bytes | memoryview) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._out, view) :]

    def reason(self, error: Exception) -> Failed:
        """Why sending has failed: where the connection broke, as the other side has reported it."""
        if isinstance(error, OSError) and not isinstance(error, ConnectionError):
            return Failed(FAILED, str(error))
        try:
            while True:
                self.answer()
        except Failed as failed:
            return failed
        except OSError:
            return Failed(CUT_OFF, str(error))

    def answer(self) -> None:
        """Raises Failed with what the other side reports instead, or when it is gone."""
        if self._pipe:
            self._pipe.line()
        elif line := self._in.readline(1000):
            answered(line)
        else:
            raise Failed(CUT_OFF, "the peer closed the connection")

    def close(self) -> None:
        if self._pipe:
            self._pipe.close()
        else:
            self._in.close()
            self._socket.close()
