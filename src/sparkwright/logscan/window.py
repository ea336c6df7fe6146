"""The lines around one: where the other patterns of a sign are looked for."""

import re
from collections.abc import Iterator
from itertools import accumulate

from sparkwright.domain.values import dataclass
from sparkwright.logscan.book import Pattern, Signed, shaped
from sparkwright.logscan.logline import LONGEST, decoded
from sparkwright.logscan.sign import WINDOW


@dataclass(frozen=True, slots=True)
class MatchedLine:
    """A line that a pattern was found in; it is decoded, and where in it is looked for, only when somebody asks."""

    number: int
    raw: bytes
    pattern: Pattern | None = None

    @property
    def text(self) -> str:
        return decoded(self.raw)

    @property
    def match(self) -> re.Match[str] | None:
        return self.pattern.search(self.text) if self.pattern else None


@dataclass(slots=True)
class Open:
    """A sign whose rarest pattern was found: what of it is there, and up to which line the rest may come."""

    signed: Signed
    until: int
    found: dict[int, MatchedLine]


class LineWindow:
    """A block from line `first` on; before: the last (number, bytes); starts: where its lines begin, and one more."""

    def __init__(self, block: bytes, first: int, before: tuple[tuple[int, bytes], ...]) -> None:
        self.block, self.first, self.before = block, first, before
        self._shape = shaped(block)
        self.shapes = self._shape.split(b"\n")
        self.starts = [0, *accumulate(map((1).__add__, map(len, self.shapes)))]
        self.last = first + len(self.shapes) - 1
        self._keys: dict[tuple[int, int], int] = {}
        self._around: dict[int, int] = {}

    def span(self, number: int, within: int) -> tuple[int, int] | None:
        """The range of lines of the block around one, counted from 0; None if some are not here."""
        place = number - self.first
        inside = place >= within and place + within < len(self.shapes)
        return (place - within, place + within + 1) if inside else None

    def key(self, span: tuple[int, int]) -> int:
        """The same for lines of the same shapes. Their hashes are known by now, so this is quick."""
        known = self._keys.get(span)
        if known is None:
            known = self._keys[span] = hash(tuple(self.shapes[span[0] : span[1]]))
        return known

    def around_key(self, line: int) -> int | None:
        """The key of the widest span around a line of the block, counted from 0; None if some are not here."""
        known = self._around.get(line)
        if known is None and WINDOW <= line < len(self.shapes) - WINDOW:
            known = self._around[line] = hash(tuple(self.shapes[line - WINDOW : line + WINDOW + 1]))
        return known

    def line(self, place: int) -> bytes:
        """The bytes of a line of the block, counted from 0."""
        return self.block[self.starts[place] : self.starts[place + 1] - 1]

    def shape(self, span: tuple[int, int]) -> bytes:
        return self._shape[self.starts[span[0]] : self.starts[span[1]] - 1]

    def text(self, span: tuple[int, int]) -> bytes:
        return self.block[self.starts[span[0]] : self.starts[span[1]] - 1]

    def around(self, number: int, within: int) -> Iterator[tuple[int, bytes]]:
        """(number, bytes) of a line, of those before it with the nearest first, of those after it."""
        place = number - self.first
        yield from self._lines(range(place, max(place - within, 0) - 1, -1))
        earlier = [pair for pair in self.before if number - within <= pair[0] < self.first]
        yield from reversed(earlier)
        yield from self._lines(range(place + 1, min(place + within + 1, len(self.shapes))))

    def until(self, last: int) -> Iterator[tuple[int, bytes]]:
        """The block's lines up to the one of that number."""
        yield from self._lines(range(min(last - self.first + 1, len(self.shapes))))

    def _lines(self, places: range) -> Iterator[tuple[int, bytes]]:
        for place in places:
            start = self.starts[place]  # what is decoded of a line at most
            yield self.first + place, self.block[start : min(start + 2 * LONGEST, self.starts[place + 1] - 1)]
