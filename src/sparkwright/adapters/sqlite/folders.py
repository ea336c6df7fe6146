"""Incident folders: the evidence, and the incident itself as JSON, so that it can be read without the store."""

import errno
import fcntl
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sparkwright.adapters.artifacts import private_folder, write
from sparkwright.domain.codec import Unreadable, from_json, to_json
from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.incident import Incident

RECORD, DIAGNOSIS = "incident.json", "diagnosis.json"
LOCK = ".lock"
_NUMBER = re.compile(r"[1-9][0-9]{0,8}", re.ASCII)
_KEPT = 20
_MOST_BYTES = 32 * 1024**2
_MOST_DIAGNOSIS = 1024**2
_ROOM = 8192  # bytes of a record that a full disk cannot take
_CUT = b"\n... %d bytes were cut here ...\n"
_HEAD = 4  # a file that is cut keeps its first quarter: engines say at their start how they were called


RecordMark = tuple[int, int, int]


class Folders:
    """root/<deployment>/<number>/, for the user's eyes only. Numbers are unique under root.

    Methods raise OSError; reading does not.
    """

    def __init__(self, root: Path, kept: int = _KEPT, most: int = _MOST_BYTES) -> None:
        self._root = root
        self._kept = kept
        self._most = most

    def numbered(self) -> Iterator[tuple[int, Path]]:
        with suppress(OSError):
            for folder in self._root.glob("*/*"):
                if _NUMBER.fullmatch(folder.name) and folder.is_dir():
                    yield int(folder.name), folder

    def of(self, number: int) -> Path | None:
        return next((folder for each, folder in self.numbered() if each == number), None)

    def last(self) -> int:
        return max((number for number, _ in self.numbered()), default=0)

    def make(self, deployment: str, number: int) -> tuple[int, Path]:
        """The folder of this number, or of the next that is free: deployments that share a head share the numbers."""
        private_folder(self._root / deployment)
        with self._alone():
            free = number if self.of(number) is None else self.last() + 1
            folder = self._root / deployment / str(free)
            folder.mkdir(mode=0o700)
        return free, folder

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """No other supervisor is here: the lock goes with its holder, however that ends."""
        handle = os.open(self._root / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def write(self, incident: Incident) -> None:
        """All of it or what was there before; on a full disk in the place of that."""
        write(Path(incident.folder) / RECORD, to_json(incident, indent=1).encode(), room=_ROOM)

    def read(self, number: int) -> Incident | None:
        folder = self.of(number)
        return _read(folder) if folder else None

    def diagnosis(self, number: int) -> dict[str, Any] | None:
        """The supervisor's diagnosis of the incident's cause; None without a readable one."""
        folder = self.of(number)
        if folder is None:
            return None
        try:
            path = folder / DIAGNOSIS
            found = read_json(path.read_bytes()) if path.stat().st_size <= _MOST_DIAGNOSIS else None
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def all(self) -> tuple[Incident, ...]:
        found = (_read(folder) for _, folder in sorted(self.numbered()))
        return tuple(incident for incident in found if incident)

    def marks(self) -> dict[Path, RecordMark]:
        """The mark of each incident's record by its folder: another one once the record is written again."""
        found = {}
        for _, folder in self.numbered():
            with suppress(OSError):
                stat = (folder / RECORD).stat()
                found[folder] = stat.st_ino, stat.st_mtime_ns, stat.st_size
        return found

    def forget(self, deployment: str) -> None:
        """Removes the oldest; the one that is open is among the newest."""
        mine = sorted((number, folder) for number, folder in self.numbered() if folder.parent.name == deployment)
        for _, folder in mine[: -self._kept]:
            shutil.rmtree(folder, ignore_errors=True)

    def fill(self, number: int, files: Mapping[str, bytes]) -> None:
        """Writes the evidence, cuts it down to its bound, and removes the oldest folders of the deployment."""
        folder = self.of(number)
        if folder is None:
            raise FileNotFoundError(errno.ENOENT, "there is no folder for it")
        for name, content in files.items():
            write(folder / name, content, sync=False)
        self.trim(folder)
        self.forget(folder.parent.name)

    def trim(self, folder: Path) -> None:
        """Cuts the middle out of the largest files until all of them are within the bound."""
        sizes = {path: path.stat().st_size for path in folder.iterdir() if path.is_file() and path.name != RECORD}
        over = sum(sizes.values()) - self._most
        for path in sorted(sizes, key=lambda path: sizes[path], reverse=True):
            if over <= 0:
                return
            keep = max(sizes[path] - over, self._most // (2 * len(sizes)))
            over -= _cut(path, sizes[path], keep)


def _read(folder: Path) -> Incident | None:
    with suppress(OSError, Unreadable):
        return from_json(Incident, (folder / RECORD).read_bytes())
    return None


def _cut(path: Path, size: int, keep: int) -> int:
    """Bytes that it is smaller by."""
    if keep >= size:
        return 0
    first, last = keep // _HEAD, keep - keep // _HEAD
    with path.open("r+b") as file:
        head = file.read(first)
        file.seek(size - last)
        tail = file.read()
        file.seek(len(head))
        file.write(_CUT % (size - keep) + tail)
        file.truncate()
        return size - file.tell()


def shortened(files: Mapping[str, str], each: int, total: int) -> dict[str, bytes]:
    """The smallest files whole, the larger ones with `each` bytes of their beginning and end; `total` bytes in all."""
    kept = dict[str, bytes]()
    for name, text in sorted(files.items(), key=lambda file: len(file[1])):
        content = text.encode("utf-8", "replace")
        if len(content) > each:
            first, last = each // _HEAD, each - each // _HEAD
            content = content[:first] + _CUT % (len(content) - each) + content[-last:]
        if sum(map(len, kept.values())) + len(content) <= total:
            kept[name] = content
    return kept
