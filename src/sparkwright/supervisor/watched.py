"""A small file that others write: read again when it has changed, and its last good content kept."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")


class Watched(Generic[T]):
    """`parse` raises ValueError for what cannot be read. A missing file is `empty`, at once."""

    def __init__(self, path: Path, parse: Callable[[bytes], T], empty: T) -> None:
        self._path, self._parse, self._empty = path, parse, empty
        self._seen: tuple[int, int, int] | None = None
        self._value = empty

    @property
    def value(self) -> T:
        seen = self._mark()
        if seen != self._seen:
            self._value = self._read() if seen else self._empty
            self._seen = seen
        return self._value

    def _mark(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def _read(self) -> T:
        try:
            return self._parse(self._path.read_bytes())
        except (OSError, ValueError) as error:
            sys.stderr.write(f"{self._path}: not used, what was read before still counts: {error}\n")
            return self._value
