"""Which runs are being measured: locks that go with their process, however it ends."""

import fcntl
import os
import zlib
from pathlib import Path

from sparkwright.domain.errors import Busy


class Holds:
    """A byte of one file for each run, locked by the process that measures it.

    One object a process: the first one that closes the file gives up the locks of all. Methods raise OSError.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle = -1
        self._mine: set[str] = set()

    def take(self, run: str) -> None:
        """Until it is freed. Raises Busy when another process has it."""
        try:
            self._lock(fcntl.LOCK_EX | fcntl.LOCK_NB, run)
        except (BlockingIOError, PermissionError):
            raise Busy(f"{run} is being measured by another process", "wait until it has ended, or stop it") from None
        self._mine.add(run)

    def free(self, run: str) -> None:
        self._mine.discard(run)
        self._lock(fcntl.LOCK_UN, run)

    def elsewhere(self, run: str) -> bool:
        """Whether another process has it."""
        if run in self._mine:
            return False
        try:
            self.take(run)
        except Busy:
            return True
        self.free(run)
        return False

    def close(self) -> None:
        """Frees all."""
        if self._handle >= 0:
            os.close(self._handle)
        self._handle = -1
        self._mine.clear()

    def _lock(self, how: int, run: str) -> None:
        if self._handle < 0:
            self._handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.lockf(self._handle, how, 1, zlib.crc32(run.encode()))
