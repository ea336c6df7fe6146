"""Lines of a source that were not like any before, saved for a later reader: the first ones and the last ones."""

from collections import deque
from collections.abc import Iterable, Iterator

FIRST, LAST = 400, 1600
_LONGEST = 1200  # bytes of each


class Excerpt:
    """At most FIRST + LAST lines of _LONGEST bytes."""

    def __init__(self) -> None:
        self._first: list[tuple[int, bytes]] = []
        self._last: deque[tuple[int, bytes]] = deque(maxlen=LAST)

    def add(self, lines: Iterable[tuple[int, bytes]]) -> None:
        for number, line in lines:
            (self._first if len(self._first) < FIRST else self._last).append((number, line[:_LONGEST]))

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """(number from 1, raw line) in the order of the source."""
        yield from self._first
        yield from self._last
