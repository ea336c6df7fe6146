"""The work that lines of one shape ask for, found once and done for each of them."""

from collections.abc import Iterable, Set

from sparkwright.domain.values import dataclass, field
from sparkwright.logscan.book import Book
from sparkwright.logscan.logline import decoded

OFTEN = 16  # lines; then it pays to find out where, and whether, they may match with other numbers
ANYWHERE, NOWHERE = -1, -2
_Part = tuple[int, int, int]  # of a line: start, end, a pattern
LinePart = tuple[int, int, tuple[int, ...]]  # the same with several patterns
# A part's start and end, a pattern, whether it is of no use without others near, and the byte of the part before which
# nothing decides whether it matches; ANYWHERE: not known.
LineStep = tuple[int, int, int, bool, int]


@dataclass(slots=True)
class LinePlan:
    """The patterns to look at in lines of one shape, in order, without those that are done.

    is_wanted: there is one that needs no company. counted: marks whose lines are counted without a look at them, with
    their pattern's part, once each was seen; others: the steps without those; plain: without those that need company,
    too. version: of what is done; places: where the line decides, of parts with patterns to which digits matter.
    """

    number: int
    parts: list[LinePart]
    version: int = -1
    is_dirty: bool = False
    is_wanted: bool = False
    steps: tuple[LineStep, ...] = ()
    others: tuple[LineStep, ...] = ()
    plain: tuple[LineStep, ...] = ()
    near: tuple[int, ...] = ()
    counted: tuple[tuple[str, int, int, int], ...] = ()
    seen: bool = False  # each of those marks
    lines: int = 0  # of the block, that were counted
    last: int = 0
    uses: int = 0
    places: dict[_Part, int] = field(default_factory=dict)

    def renew(self, book: Book, done: Set[int]) -> None:
        """Leaves out what is done by now, and what such lines never match."""
        self.version = len(done)
        every = [(start, end, n) for start, end, live in self.parts for n in live if n not in done]
        mere = [part for part in every if book.is_only_counted(part[2])]
        self.is_dirty = bool(every)
        self.is_wanted = not all(n in book.only_near for *_, n in every)
        self.steps = tuple(self._steps(every, book))
        self.others = tuple(step for step in self.steps if step[:3] not in mere)
        self.plain = tuple(step for step in self.others if not step[3])
        self.near = tuple(step[2] for step in self.others if step[3])
        self.counted = tuple((name, start, end, n) for start, end, n in mere for name in book.marks_of(n))

    def _steps(self, parts: Iterable[_Part], book: Book) -> Iterable[LineStep]:
        for part in parts:
            place = self.places.get(part, ANYWHERE)
            if place != NOWHERE:
                yield (*part, part[2] in book.only_near, place)

    def count_use(self, book: Book, done: Set[int], line: bytes) -> None:
        """Counts a line of that shape; after some, finds out where such lines decide."""
        self.uses += 1
        if self.uses != OFTEN:
            return
        for start, end, n, *_ in self.plain:
            if not book.patterns[n].digit_blind:
                self.places[start, end, n] = _place(book, n, line[start:end])
        self.renew(book, done)


def _place(book: Book, pattern: int, part: bytes) -> int:
    text = decoded(part)
    place = book.patterns[pattern].first_place(text)
    if place is None:
        return NOWHERE
    return place if text.isascii() and len(text) == len(part) else ANYWHERE
