"""The files of a model on the node that receives them, until each is whole, verified and has its name."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import stat
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sparkwright.remote.programs.wire import (
    BLOCK,
    COPYING,
    PARTIAL,
    PIECE,
    SMALL,
    SUMMED,
    checksum_of,
    file_crc,
    missing,
    name_of,
    noted_pieces,
    stays_below,
)

_SPARE = 64 << 20
_SMALL = "small-"  # a small file on its way, by this process: another may still be writing the same one
_NAME = frozenset("0123456789abcdef")
Entry = tuple[str, int, int, int]


def sha256_of(at: Path, size: int, wait: Callable[[int], None]) -> str:
    """The checksum of a file that may still be arriving: `wait` returns once so many bytes are there. Its pages leave
    the cache.

    Raises NeverCame.
    """
    fd, digest, block = os.open(at, os.O_RDONLY), hashlib.sha256(), memoryview(bytearray(min(BLOCK, size)))
    try:
        for begin in range(0, size, PIECE):
            end = min(begin + PIECE, size)
            wait(end)
            for offset in range(begin, end, BLOCK):
                digest.update(block[: os.preadv(fd, [block[: end - offset]], offset)])
            os.posix_fadvise(fd, begin, PIECE, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)
    return digest.hexdigest()


def is_temporary(name: str) -> bool:
    return len(name) == 32 and _NAME.issuperset(name)


def write(fd: int, content: memoryview, offset: int) -> None:
    while content:
        many = os.pwrite(fd, content, offset)
        content, offset = content[many:], offset + many


class NeverCame(Exception):
    """The other side holds a file for complete, and a part of it is not here."""


class ReceivedPlan:
    """The files wanted at the end, and the present parts. over: set when nobody waits for an answer any more. busy: is
    called again and again during work that the other side waits for."""

    def __init__(self, asked: dict[str, Any], busy: Callable[[], None]) -> None:
        self._asked, self._root, self._busy = asked, Path(asked["root"]), busy
        self._sent: set[int] = set()  # files of which the other side has every piece acknowledged
        self.folder, self.over = self._root / PARTIAL, threading.Event()
        self._files: list[Entry] = [tuple(one) for one in asked["files"]]
        self._made: set[str] = set()  # folders
        self._before: dict[int, int] = {}  # pieces of each file that an earlier call has left

    def begin(self) -> list[tuple[int, list[tuple[int, int]]]]:
        """Makes folders and room; the missing ranges of each file. Raises OSError."""
        with contextlib.suppress(FileNotFoundError):  # the end of another copy removes a folder without anything in it
            return self._begun()
        return self._begun()

    def _begun(self) -> list[tuple[int, list[tuple[int, int]]]]:
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self._asked["single"]:
            (self._root / COPYING).touch()
        for path, to in self._asked["links"]:
            self._link(path, to)
        due = [(n, one) for n, one in enumerate(self._files) if not self._there(one)]
        lacking = [(n, self._missing(one)) for n, one in due]
        needed = sum(to - begin for _, ranges in lacking for begin, to in ranges)
        large = [(n, one) for n, one in due if one[1] > SMALL]
        disk = os.statvfs(self.folder)
        if needed + _SPARE > disk.f_bavail * disk.f_frsize + sum(self._held(one) for _, one in large):
            raise OSError(errno.ENOSPC, f"{needed} bytes do not fit on the disk of {self._root}")
        self._sweep([name_of(one[0]) for _, one in due if one[1] <= SMALL])
        for number, one in large:
            self._room(one)
            self._busy()
            self._before[number] = len(noted_pieces(self._journal(one), one[1], one[2]))
        self._publish()
        return lacking

    def _sweep(self, small: list[str]) -> None:
        """Removes useless leftovers of earlier calls: of small files, and of ones that were large."""
        left = {one.name for one in self.folder.iterdir()}
        dead = {name for name in left if name.startswith(_SMALL) and not Path("/proc", name[len(_SMALL) :]).exists()}
        for name in dead | left.intersection([*small, *(f"{name}.journal" for name in small)]):
            (self.folder / name).unlink(missing_ok=True)

    def _publish(self) -> None:
        """Publishes the arriving files for the program that sends them on to the next node."""
        for old in self.folder.glob("*.plan"):
            old.unlink(missing_ok=True)
        if self._asked.get("chain"):
            made = self.folder / "new"
            made.write_text(json.dumps({name: self._asked[name] for name in ("files", "links", "single")}), "utf-8")
            made.replace(self.folder / f"{name_of(self._asked['chain'])}.plan")

    def _at(self, path: str) -> str:
        """The path below the root, whatever the text contains; its folder exists."""
        if path.startswith("/") or ".." in path.split("/"):
            raise OSError(errno.EINVAL, f"{path!r} leads out of {self._root}")
        if (folder := path.rpartition("/")[0]) not in self._made:
            (self._root / folder).mkdir(parents=True, exist_ok=True)
            self._made.add(folder)
        return f"{self._root}/{path}"

    def _link(self, path: str, to: str) -> None:
        if not stays_below(path, to):
            raise OSError(errno.EINVAL, f"the link {path!r} leads out of {self._root}")
        at = Path(self._at(path))
        if os.path.lexists(at) and not (at.is_symlink() and str(at.readlink()) == to):
            at.unlink()
        if not os.path.lexists(at):
            at.symlink_to(to)

    def _there(self, one: Entry) -> bool:
        path, size, mtime, _ = one
        try:
            state = os.lstat(self._at(path))
        except FileNotFoundError:
            return False
        return stat.S_ISREG(state.st_mode) and (state.st_size, state.st_mtime_ns) == (size, mtime)

    def _held(self, one: Entry) -> int:
        """Bytes that an earlier call has made room for and that no journal names."""
        at = self.folder / name_of(one[0])
        taken = at.stat().st_blocks * 512 if at.exists() else 0
        return max(0, taken - (one[1] - sum(to - begin for begin, to in self._missing(one))))

    def _journal(self, one: Entry) -> Path:
        return self.folder / f"{name_of(one[0])}.journal"

    def _missing(self, one: Entry) -> list[tuple[int, int]]:
        pieces = noted_pieces(self._journal(one), one[1], one[2]) if one[1] > SMALL else []
        return missing(((at, at + length) for at, length, _ in pieces), one[1])

    def _room(self, one: Entry) -> None:
        path, size, mtime, _ = one
        fd = os.open(self.folder / name_of(path), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        with contextlib.suppress(OSError):
            os.posix_fallocate(fd, 0, size)
        os.ftruncate(fd, size)
        os.close(fd)
        journal, head = self._journal(one), f"of {size} {mtime}\n"
        if not journal.exists() or not journal.read_text("ascii").startswith(head):
            journal.write_text(head, "ascii")

    def finish(self, index: int, expected: str) -> bool:
        """Verifies a large file and gives it its name; False when it is another than expected: nothing is left of it.

        Waits for what has not arrived. Raises EOFError when the other side is gone.
        """
        path, size, mtime, _ = one = self._files[index]
        at, journal = self.folder / name_of(path), self._journal(one)
        if not self._arrived(index, expected):
            self._before[index] = 0
            self._sent.discard(index)
            journal.write_text(f"of {size} {mtime}\n", "ascii")
            return False
        fd = os.open(at, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        self._name(fd, at, one)
        journal.unlink(missing_ok=True)
        return True

    def unpack(self, content: memoryview) -> dict[str, list[int]]:
        """A pack: a line of JSON [[index, checksum], ...], then these files; which are whole and named, by `ok`.

        They are written through, and leave the page cache, at the end of the copy: a power cut leaves files of another
        size, which are sent again.
        """
        listed, _, _ = bytes(content[:PIECE]).partition(b"\n")
        at, part = len(listed) + 1, self.folder / f"{_SMALL}{os.getpid()}"
        found: dict[str, list[int]] = {"ok": [], "bad": []}
        for index, expected in json.loads(listed):
            one = self._files[index]
            data = content[at : at + one[1]]
            at += one[1]
            made = (
                checksum_of([zlib.crc32(data)])
                if str(expected).startswith(SUMMED)
                else hashlib.sha256(data).hexdigest()
            )
            good = made == expected and len(data) == one[1]
            found["ok" if good else "bad"].append(index)
            if good:
                write(fd := self._opened(part), data, 0)
                self._name(fd, part, one)
        return found

    def _opened(self, part: Path) -> int:
        while True:
            try:
                return os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            except FileNotFoundError:  # as in begin
                self.folder.mkdir(exist_ok=True)

    def _name(self, fd: int, at: Path, one: Entry) -> None:
        """Gives a whole file, open as fd, its mode, its time and its name."""
        path, _, mtime, mode = one
        os.fchmod(fd, mode)
        os.utime(fd, ns=(mtime, mtime))
        os.close(fd)
        at.replace(self._at(path))

    def all_sent(self, index: int) -> None:
        """Notes that the other side has every piece of a file acknowledged: what is missing now never comes."""
        self._sent.add(index)

    def _arrived(self, index: int, expected: str) -> bool:
        """True if every piece is on the disk, and the content is the expected one."""
        one = self._files[index]
        at = self.folder / name_of(one[0])
        if expected.startswith(SUMMED):
            return not self._missing(one) and self._sum(index, at) == expected
        try:
            good = sha256_of(at, one[1], self._waiting(index))
        except NeverCame:
            return False
        while good != expected and index not in self._sent:  # a `bad` must not overtake what is acknowledged
            if self.over.wait(0.25):
                raise EOFError
        return good == expected and not self._missing(one)

    def _sum(self, index: int, at: Path) -> str:
        """The checksum from the journal, as far as this call has received it; older pieces are read again from the
        disk."""
        _, size, mtime, _ = one = self._files[index]
        fresh = noted_pieces(self._journal(one), size, mtime)[self._before.get(index, 0) :]
        known = {offset: crc for offset, _, crc in fresh if crc >= 0}
        fd = os.open(at, os.O_RDONLY)
        try:
            return checksum_of(known[n] if n in known else self._read(fd, n, size) for n in range(0, size, PIECE))
        finally:
            os.close(fd)

    def _read(self, fd: int, offset: int, size: int) -> int:
        self._busy()
        return file_crc(fd, offset, min(PIECE, size - offset))

    def _waiting(self, index: int) -> Callable[[int], None]:
        """Makes a function that returns once the file has arrived up to a place.

        It raises EOFError when the other side is gone, and NeverCame.
        """
        there, one = 0, self._files[index]

        def wait(to: int) -> None:
            nonlocal there
            self._busy()
            while there < to:
                sent, gaps = index in self._sent, self._missing(one)
                there = gaps[0][0] if gaps else one[1]
                if there < to and sent:
                    raise NeverCame
                if there < to and self.over.wait(0.25):
                    raise EOFError

        return wait

    def end(self) -> None:
        with contextlib.suppress(OSError):
            self.folder.rmdir()
