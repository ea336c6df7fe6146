"""Files of the head node that somebody else writes: read again when they have changed."""

import sys
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")
_PAUSE = 0.2


class Watched(Generic[T]):
    """`parse` raises ValueError for what cannot be read. A missing file is `empty`, at once.

    A file that cannot be read is tried again at most every 0.2 s. Meanwhile what was read before counts, for `patience`
    seconds; then it is `empty` until a read succeeds. clock: monotonic seconds.
    """

    def __init__(
        self, path: Path, parse: Callable[[bytes], T], empty: T, clock: Callable[[], float], patience: float = inf
    ) -> None:
        self._path, self._parse, self._empty = path, parse, empty
        self._clock, self._patience, self._pause = clock, patience, 0.0
        self._seen: tuple[int, int, int] | None = None
        self._failed: float | None = None
        self._again = -inf
        self._value = empty

    def at_most_every(self, seconds: float) -> "Watched[T]":
        """The same, which looks at its file once in so many seconds."""
        self._pause = seconds
        return self

    @property
    def value(self) -> T:
        if self._clock() >= self._again:
            self._refresh()
        return self._value

    @property
    def given_up(self) -> bool:
        """True if `empty` counts because the file has been unreadable for longer than `patience`."""
        return self._failed is not None and self._clock() - self._failed > self._patience

    def _refresh(self) -> None:
        try:
            seen = self._mark()
            if seen != self._seen or self._failed is not None:
                self._value = self._parse(self._path.read_bytes()) if seen else self._empty
                self._seen, self._failed = seen, None
            self._again = self._clock() + self._pause if self._pause else -inf
        except (OSError, ValueError) as error:
            now = self._clock()
            if self._failed is None:
                self._failed = now
                sys.stderr.write(f"{self._path}: cannot be read and is tried again: {error}\n")
            self._again = now + _PAUSE
            if self.given_up:
                self._value = self._empty

    def _mark(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size
