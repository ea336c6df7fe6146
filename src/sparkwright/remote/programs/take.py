"""Receives the files of a model from push.py on another node. Its first line on stdin is JSON, the rest as below.

{"role": "plan", "root", "single", "files": [[path, size, mtime_ns, mode], ...], "links": [[path, to], ...], "secret",
"listen"}: prints {"missing": [[index, [[from, to], ...]], ...], "folder", "port"}; then for each line `INDEX SHA256` it
verifies that file, gives it its name and prints `ok INDEX`, or `bad INDEX` when its content is another: it is received
again then. {"role": "data", "folder"}: for each `NAME OFFSET LENGTH` and so many bytes it writes them through to the
disk, notes them in a journal and prints the line again.

What has arrived lies in .sparkwright-partial until it is whole and verified: no half file has a final name, and what a
journal names is not sent again. A line `error CODE TEXT` ends it: 11 no space, 23 anything else.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import hmac
import json
import os
import shutil
import socket
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, cast

from sparkwright.remote.programs.wire import (
    COPYING,
    FAILED,
    NO_SPACE,
    PARTIAL,
    PIECE,
    UNNAMED,
    code_of,
    name_of,
    stays,
    widen,
)

_SPARE = 64 << 20
_VERIFIERS = 4
_NAME = frozenset("0123456789abcdef")


def put_line(out: BinaryIO, line: str) -> None:
    out.write(line.encode() + b"\n")
    out.flush()


class Writer:
    """The pieces of one connection; with a key each carries a code that is verified before anything is written."""

    def __init__(self, folder: Path, key: bytes = b"") -> None:
        self._folder, self._key = folder, key
        self._open: dict[str, int] = {}
        self._buffer = memoryview(bytearray(PIECE))

    def serve(self, source: BufferedReader, out: BinaryIO) -> None:
        while line := source.readline(200):
            name, offset, length = line.decode().split()
            self._piece(source, name, int(offset), int(length))
            put_line(out, line.decode().strip())

    def _piece(self, source: BufferedReader, name: str, offset: int, length: int) -> None:
        if not name or not _NAME.issuperset(name) or not 0 < length <= PIECE or offset < 0:
            raise ValueError(f"piece {name!r} {offset} {length}")
        piece, done = self._buffer[:length], 0
        while done < length:
            many = source.readinto(piece[done:])
            if not many:
                raise EOFError
            done += many
        head = f"{name} {offset} {length}".encode()
        if self._key and not hmac.compare_digest(source.read(32), code_of(self._key, head, piece)):
            raise ValueError("a piece was changed on its way")
        fd = self._fd(name)
        if offset + length > os.fstat(fd).st_size:
            raise ValueError(f"piece {name!r} {offset} {length} is beyond its file")
        done = 0
        while done < length:
            done += os.pwrite(fd, piece[done:], offset + done)
        os.fdatasync(fd)
        journal = os.open(self._folder / f"{name}.journal", os.O_WRONLY | os.O_APPEND)
        os.write(journal, f"{offset} {length}\n".encode())
        os.close(journal)

    def _fd(self, name: str) -> int:
        if name not in self._open:
            for old in self._open.values():
                os.close(old)
            self._open = {name: os.open(self._folder / name, os.O_WRONLY | os.O_NOFOLLOW)}
        return self._open[name]


def content(at: Path, size: int, reads: bool) -> str:
    """SHA-256 of a file, '' when it is not read; its pages leave the page cache."""
    fd, digest = os.open(at, os.O_RDONLY), hashlib.sha256()
    for begin in range(0, size if reads else 0, PIECE):
        digest.update(os.pread(fd, PIECE, begin))
        os.posix_fadvise(fd, begin, PIECE, os.POSIX_FADV_DONTNEED)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
    return digest.hexdigest() if reads else ""


class Plan:
    """What is to be there at the end, and what of it is."""

    def __init__(self, asked: dict[str, Any]) -> None:
        self._asked, self._root = asked, Path(asked["root"])
        self.folder = self._root / PARTIAL
        self._files: list[tuple[str, int, int, int]] = [tuple(one) for one in asked["files"]]

    def begin(self) -> list[tuple[int, list[tuple[int, int]]]]:
        """Makes folders and room; the missing ranges of each file. Raises OSError."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self._asked["single"]:
            (self._root / COPYING).touch()
        for path, to in self._asked["links"]:
            self._link(path, to)
        due = [(n, one) for n, one in enumerate(self._files) if not self._there(one)]
        missing = [(n, self._missing(one)) for n, one in due]
        needed = sum(to - begin for _, ranges in missing for begin, to in ranges)
        if needed + _SPARE > shutil.disk_usage(self.folder).free + sum(self._held(one) for _, one in due):
            raise OSError(errno.ENOSPC, f"{needed} bytes do not fit on the disk of {self._root}")
        for _, one in due:
            self._room(one)
        return missing

    def _at(self, path: str) -> Path:
        """Below the root, whatever the path contains."""
        if path.startswith("/") or ".." in path.split("/"):
            raise OSError(errno.EINVAL, f"{path!r} leads out of {self._root}")
        at = self._root / path
        at.parent.mkdir(parents=True, exist_ok=True)
        return at

    def _link(self, path: str, to: str) -> None:
        if not stays(path, to):
            raise OSError(errno.EINVAL, f"the link {path!r} leads out of {self._root}")
        at = self._at(path)
        if os.path.lexists(at) and not (at.is_symlink() and str(at.readlink()) == to):
            at.unlink()
        if not os.path.lexists(at):
            at.symlink_to(to)

    def _there(self, one: tuple[str, int, int, int]) -> bool:
        path, size, mtime, _ = one
        at = self._at(path)
        if at.is_symlink():
            return False
        return at.is_file() and (at.stat().st_size, at.stat().st_mtime_ns) == (size, mtime)

    def _held(self, one: tuple[str, int, int, int]) -> int:
        """Bytes that an earlier call has made room for and that no journal names."""
        at = self.folder / name_of(one[0])
        taken = at.stat().st_blocks * 512 if at.exists() else 0
        return max(0, taken - (one[1] - sum(to - begin for begin, to in self._missing(one))))

    def _missing(self, one: tuple[str, int, int, int]) -> list[tuple[int, int]]:
        path, size, mtime, _ = one
        have, at = [], 0
        with contextlib.suppress(OSError):
            first, *lines = (self.folder / f"{name_of(path)}.journal").read_text("ascii").split("\n")
            if first == f"of {size} {mtime}":
                words = [line.split() for line in lines[:-1]]
                have = sorted((int(a), int(a) + int(b)) for a, b in (w for w in words if len(w) == 2))
        found = []
        for begin, to in have:
            if begin > at:
                found.append((at, begin))
            at = max(at, to)
        return [*found, (at, size)] if at < size else found

    def _room(self, one: tuple[str, int, int, int]) -> None:
        path, size, mtime, _ = one
        at, journal = self.folder / name_of(path), self.folder / f"{name_of(path)}.journal"
        fd = os.open(at, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        with contextlib.suppress(OSError):
            if size:
                os.posix_fallocate(fd, 0, size)
        os.ftruncate(fd, size)
        os.close(fd)
        head = f"of {size} {mtime}\n"
        if not journal.exists() or not journal.read_text("ascii").startswith(head):
            journal.write_text(head, "ascii")

    def finish(self, index: int, expected: str) -> bool:
        """Verifies a file and gives it its name; False when it is another than expected: nothing is left of it then."""
        path, size, mtime, mode = self._files[index]
        at, journal = self.folder / name_of(path), self.folder / f"{name_of(path)}.journal"
        if content(at, size, expected != UNNAMED) not in (expected, ""):
            journal.write_text(f"of {size} {mtime}\n", "ascii")
            return False
        at.chmod(mode)
        os.utime(at, ns=(mtime, mtime))
        at.replace(self._at(path))
        journal.unlink()
        return True

    def end(self) -> None:
        with contextlib.suppress(OSError):
            self.folder.rmdir()


def listening(asked: dict[str, Any], folder: Path) -> int:
    """The port where pieces come over plain TCP, each with a code made with the secret."""
    server = socket.create_server((asked["listen"], 0))

    def served() -> None:
        while True:
            one, _ = server.accept()
            with (
                one,
                one.makefile("rb", PIECE) as source,
                one.makefile("wb") as out,
                contextlib.suppress(OSError, ValueError, EOFError),
            ):
                Writer(folder, bytes.fromhex(asked["secret"])).serve(cast(BufferedReader, source), out)

    for _ in range(asked["streams"]):
        threading.Thread(target=served, daemon=True).start()
    return int(server.getsockname()[1])


def verified(plan: Plan, lines: Iterator[bytes], out: BinaryIO) -> None:
    """Several at once: one core hashes more slowly than a fast link delivers."""
    lock = threading.Lock()

    def one(index: int, expected: str) -> None:
        try:
            answer = f"{'ok' if plan.finish(index, expected) else 'bad'} {index}"
        except OSError as error:
            answer = reason(error)
        with lock:
            put_line(out, answer)

    with ThreadPoolExecutor(_VERIFIERS) as pool:
        for line in lines:
            index, expected = line.decode().split()
            pool.submit(one, int(index), expected)
    plan.end()


def reason(error: OSError) -> str:
    code = NO_SPACE if error.errno in (errno.ENOSPC, errno.EDQUOT) else FAILED
    return f"error {code} {error.strerror or error}: {error.filename or ''}".rstrip(": ")


def main(source: BufferedReader, out: BinaryIO) -> int:
    asked = json.loads(source.readline())
    try:
        if asked["role"] == "data":
            put_line(out, "ready")
            widen(0)
            Writer(Path(asked["folder"])).serve(source, out)
            return 0
        plan = Plan(asked)
        found: dict[str, object] = {"missing": plan.begin(), "folder": str(plan.folder)}
        found["port"] = listening(asked, plan.folder) if asked.get("listen") else 0
        put_line(out, json.dumps(found))
        verified(plan, iter(source.readline, b""), out)
    except OSError as error:
        put_line(out, reason(error))
    except EOFError:
        return 0
    except ValueError as error:
        put_line(out, f"error {FAILED} {error}")
    return 0


sys.exit(main(cast(BufferedReader, sys.stdin.buffer), sys.stdout.buffer))
