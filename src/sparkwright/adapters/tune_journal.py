"""Searches of settings on this machine: a file each, a line for what was begun and one for each trial, on the disk."""

import fcntl
import json
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sparkwright.domain.codec import Unreadable, encodable, from_tree
from sparkwright.domain.errors import UsageError
from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.tuning import Trial
from sparkwright.domain.values import asdict, dataclass

_MOST = 64 << 20
_ID = re.compile(r"t-\d{8}-[0-9a-f]{4}")


@dataclass(frozen=True, slots=True)
class FileJournal:
    """Implements app.tune.Journal."""

    path: Path

    @property
    def id(self) -> str:
        return self.path.stem

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the search: one process at a time continues it. Raises UsageError."""
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise UsageError(f"{self.path} cannot be read: {error.strerror}") from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            hint = "wait until it ends, or press Ctrl-C there"
            raise UsageError(f"search {self.id} goes on in another process", hint) from None
        finally:
            os.close(handle)

    def add(self, trial: Trial) -> None:
        """Appends the trial; it is on the disk when this returns. Raises UsageError."""
        _append(self.path, asdict(trial))

    def trials(self) -> tuple[Trial, ...]:
        """Raises UsageError."""
        return tuple(_read(self.path))

    def header(self) -> dict[str, Any]:
        try:
            with self.path.open("rb") as file:
                found: dict[str, Any] = read_json(file.readline(_MOST))
            return found
        except (OSError, ValueError) as error:
            raise UsageError(f"{self.path} cannot be read: {error}") from None


def begin_journal(folder: Path, header: dict[str, Any]) -> FileJournal:
    """Raises UsageError."""
    day = time.strftime("%Y%m%d", time.gmtime())
    journal = FileJournal(folder / f"t-{day}-{secrets.token_hex(2)}.jsonl")
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise UsageError(f"{folder} cannot be made: {error.strerror}") from None
    _append(journal.path, header)
    return journal


def find_journal(folder: Path, wanted: str) -> FileJournal:
    """The search with that id; `last`: the newest. Raises UsageError."""
    known = sorted(folder.glob("t-*.jsonl"), key=lambda path: path.stat().st_mtime) if folder.is_dir() else []
    found = [path for path in known if wanted in ("last", path.stem) and _ID.fullmatch(path.stem)]
    if not found:
        names = ", ".join(path.stem for path in known[-5:])
        raise UsageError(f"no search {wanted} to resume", f"there are: {names}" if names else "none was begun here")
    journal = FileJournal(found[-1])
    with journal.locked():
        whole = journal.path.read_bytes()
        if not whole.endswith(b"\n"):  # the process was killed while it wrote
            os.truncate(journal.path, whole.rfind(b"\n") + 1)
    return journal


def _append(path: Path, tree: dict[str, Any]) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(encodable(json.dumps(tree, ensure_ascii=False)).encode() + b"\n")
            file.flush()
            os.fsync(handle)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None


def _read(path: Path) -> Iterator[Trial]:
    if path.stat().st_size > _MOST:
        raise UsageError(f"{path} is larger than 64 MiB: no journal of a search")
    for number, line in enumerate(path.read_bytes().splitlines()[1:], 2):
        try:
            yield from_tree(Trial, read_json(line))
        except (ValueError, Unreadable) as error:
            raise UsageError(f"{path}:{number}: {error}") from None
