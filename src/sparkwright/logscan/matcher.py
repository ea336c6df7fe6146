"""One pass over one source: which signs are there, which marks, how it ends."""

import re
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sparkwright.domain.diagnosis import Proof
from sparkwright.domain.printable import without_escapes
from sparkwright.logscan.book import Book, Signed, lowered, shaped
from sparkwright.logscan.envelope import rejoined
from sparkwright.logscan.logline import Excerpt, decoded, is_settings, when, who
from sparkwright.logscan.sign import WINDOW, MarkCount, Story
from sparkwright.logscan.window import LineWindow, MatchedLine, Open

TAIL = 40
_EDGE = 64 * 1024  # bytes of a block in which its first and last lines are looked for
_LONGEST_LINE = 1 << 20
_CLEAN, _LONG = 50_000, 2000  # so many shapes of lines with nothing in them are kept, of so many bytes at most
_KEPT = 4096  # shapes of lines, and surroundings, whose result is kept
_FAR, _BEFORE = 150, 100  # characters
_COUNTED = 100  # from then on a sign's lines are not counted any more


@dataclass(slots=True)
class Hit:
    """A sign that was found. proof: the lines that made it count first; groups: named parts of its patterns."""

    signed: Signed
    proof: tuple[Proof, ...]
    groups: dict[str, str] = field(default_factory=dict)
    count: int = 1


_POSTED = re.compile(rb'"POST /v1/[^" ]{1,80} HTTP/\d\.\d" 200\b')
_GOOD = b'" 200'


def _last_answer(block: bytes) -> int:
    """The position of the last access line of an answered request in a block; 0 for none."""
    at = block.rfind(_GOOD)
    while at > 0:
        begin = block.rfind(b"\n", 0, at) + 1
        if _POSTED.search(block, max(begin, at - 200), at + len(_GOOD)):
            return at
        at = block.rfind(_GOOD, 0, begin)
    return 0


class Scan:
    """Feed it the bytes of one source in order, cut anywhere. year: of times without one; skipped: lines before."""

    def __init__(self, book: Book, source: str, year: int, skipped: int = 0) -> None:
        self.hits: dict[Signed, Hit] = {}
        self.lines = skipped
        self.bytes = 0
        self.answered = 0  # the last line about a request that was answered well, 0 for none
        self.kept = Excerpt()
        self._book, self._source, self._year = book, source, year
        self._rest = b""
        self._last: dict[int, MatchedLine] = {}
        self._counts: Counter[Signed] = Counter()
        self._marks: dict[str, tuple[int, MatchedLine, MatchedLine]] = {}
        self._head: list[bytes] = []
        self._tail: deque[tuple[int, bytes]] = deque(maxlen=WINDOW)
        self._open: list[Open] = []
        self._clean: set[bytes] = set()  # shapes of lines in which there is nothing
        self._tried: set[int] = set()  # of lines with those around them, in which there is nothing either
        self._by_digits = False  # whether the last look depended on more than shapes
        self._known: dict[tuple[bytes, frozenset[int]], tuple[int, ...]] = {}
        self._vain: set[tuple[int, int]] = set()
        self._done: set[int] = set()
        self._needless: frozenset[int] = frozenset()  # words of what is done

    def feed(self, chunk: bytes) -> tuple[Hit, ...]:
        """Reads a chunk and returns its new hits. An unfinished line waits for the next call, or for `close`."""
        whole, newline, rest = chunk.rpartition(b"\n")
        if not newline:
            self._rest += chunk
            return () if len(self._rest) < _LONGEST_LINE else self.close()
        block, self._rest = self._rest + whole, rest
        return tuple(self._block(rejoined(without_escapes(block))))

    def close(self) -> tuple[Hit, ...]:
        """Reads the last line, which has no end."""
        block, self._rest = self._rest, b""
        return tuple(self._block(rejoined(without_escapes(block)))) if block else ()

    def _block(self, block: bytes) -> Iterator[Hit]:
        window = LineWindow(block, self.lines + 1, tuple(self._tail))
        yield from self._waiting(window)
        low = lowered(block)
        fresh, dirty, wanted = self._fresh(low, window), set[int](), set[int]()
        for line, start, end, words in self._lines_with_words(low, window.starts, fresh):
            for pattern in self._live(block[start:end], frozenset(words)):
                if pattern not in self._done:
                    dirty.add(line)
                    self._by_digits = False
                    is_wanted = self._is_wanted(pattern, window.first + line, window)
                    if is_wanted or self._by_digits:
                        wanted.add(line)
                    if is_wanted:
                        yield from self._line(pattern, window.first + line, block[start:end], window)
        # Lines of these shapes need no second look. Logs repeat themselves, but for their numbers.
        shapes = (window.shapes[line] for line in fresh if line not in dirty)
        if len(self._clean) < _CLEAN:
            self._clean.update(shape for shape in shapes if len(shape) < _LONG)
        spans = (window.span(window.first + line, WINDOW) for line in dirty - wanted)
        if len(self._tried) < _CLEAN:
            self._tried.update(window.key(span) for span in spans if span)
        starts = window.starts
        self.kept.add((window.first + line, block[starts[line] : starts[line + 1] - 1]) for line in fresh)
        self._tables(block)
        self._remember(block)
        if at := _last_answer(block):
            self.answered = window.first + block.count(b"\n", 0, at)
        self.lines = window.last
        self.bytes += len(block) + 1

    def _fresh(self, low: bytes, window: LineWindow) -> list[int]:
        """The lines, from 0, that have to be searched: their shape is new, or they have a word with digits."""
        known = self._clean.issuperset(window.shapes)  # quicker than one by one
        fresh = set() if known else {line for line, shape in enumerate(window.shapes) if shape not in self._clean}
        if self._tried:  # without those that were no sign before, among the same lines
            spans = ((line, window.span(window.first + line, WINDOW)) for line in fresh)
            fresh = {line for line, span in spans if not (span and window.key(span) in self._tried)}
        if len(fresh) < len(window.shapes):
            fresh.update(bisect_right(window.starts, at) - 1 for at in self._book.words_with_digits(low))
        return sorted(fresh)

    def _lines_with_words(
        self, low: bytes, starts: list[int], fresh: list[int]
    ) -> Iterator[tuple[int, int, int, set[int]]]:
        """(line from 0, start and end in the block, words) of the fresh lines that have any."""
        joined = b"\n".join([low[starts[line] : starts[line + 1] - 1] for line in fresh])
        at = place = 0
        for start, end, words in self._book.lines_with_words(joined, self._needless):
            place += joined.count(b"\n", at, start)
            at = start
            moved = starts[fresh[place]] - joined.rfind(b"\n", 0, start) - 1
            yield fresh[place], start + moved, end + moved, words

    def _live(self, line: bytes, words: frozenset[int]) -> tuple[int, ...]:
        """Kept for the next line like it."""
        shape = shaped(line)
        known = self._known.get((shape, words))
        if known is None:
            if len(self._known) > _KEPT:
                self._known.clear()
            known = self._known[shape, words] = self._book.live(shape, words, line)
        return known

    def _is_wanted(self, pattern: int, number: int, window: LineWindow) -> bool:
        """True if the pattern deserves a closer look: it has company, or needs none."""
        signs = self._book.only_near.get(pattern)
        return signs is None or any(s in self.hits or self._has_company(s, pattern, number, window) for s in signs)

    def _has_company(self, signed: Signed, pattern: int, number: int, window: LineWindow) -> bool:
        """True if the lines around may have the other patterns of the sign, and were not searched before."""
        span = window.span(number, signed.sign.within)
        if span is None:
            return True
        key = id(signed), window.key(span)
        if key in self._vain:
            return False
        others = [self._book.patterns[part] for part in signed.parts if part != pattern]
        shape = window.shape(span)
        possible = all(other.possible(shape) for other in others)
        if possible and not all(self._book.patterns[part].digit_blind for part in signed.parts):
            key = id(signed), hash(window.text(span))
            self._by_digits = True
        known = key in self._vain
        if len(self._vain) > _KEPT:
            self._vain.clear()
        self._vain.add(key)
        return possible and not known

    def _line(self, pattern: int, number: int, raw: bytes, window: LineWindow) -> Iterator[Hit]:
        text, searched = decoded(raw), self._book.patterns[pattern]
        # What does not look at digits was found in a line of this shape: `live` has seen to it.
        if searched.digit_blind or searched.search(text):
            yield from self._found(pattern, MatchedLine(number, text, searched), window)

    def _found(self, pattern: int, line: MatchedLine, window: LineWindow) -> Iterator[Hit]:
        self._last[pattern] = line
        for name in self._book.marks_of(pattern):
            self._seen_mark(name, line)
        signs = self._book.signs_of(pattern)
        for signed in () if signs and is_settings(line.text) else signs:
            if not self._book.excused(signed, line.text):
                yield from self._sign(signed, pattern, line, window)
        if all(self._counts[signed] > _COUNTED for signed in signs) and not self._book.wanted_again(pattern):
            self._done.add(pattern)
            self._needless |= self._book.needless(self._done, pattern)

    def _sign(self, signed: Signed, pattern: int, line: MatchedLine, window: LineWindow) -> Iterator[Hit]:
        if len(signed.parts) == 1 or signed in self.hits:
            yield from self._count(signed, {pattern: line})
        elif signed.sign.within > WINDOW:
            yield from self._anywhere(signed, line.number)
        elif pattern in self._book.only_near or self._has_company(signed, pattern, line.number, window):
            open_ = Open(signed, line.number + signed.sign.within, {pattern: line})
            yield from self._look(open_, window.around(line.number, signed.sign.within), window.last)

    def _anywhere(self, signed: Signed, number: int) -> Iterator[Hit]:
        """Hits of a sign whose patterns were all seen close enough to this line."""
        seen = {part: self._last[part] for part in signed.parts if part in self._last}
        if all(part in seen and number - seen[part].number <= signed.sign.within for part in signed.parts):
            yield from self._count(signed, seen)

    def _look(self, open_: Open, around: Iterable[tuple[int, bytes]], last: int) -> Iterator[Hit]:
        """The other patterns of a sign in the lines around its rarest; what may still come is waited for."""
        lines = [(number, raw, shaped(raw)) for number, raw in around]
        for part in open_.signed.parts:
            if part not in open_.found and not self._is_there(part, lines, open_) and open_.until <= last:
                return
        if len(open_.found) == len(set(open_.signed.parts)):
            yield from self._count(open_.signed, open_.found)
        else:
            self._open.append(open_)

    def _is_there(self, part: int, lines: Iterable[tuple[int, bytes, bytes]], open_: Open) -> bool:
        pattern = self._book.patterns[part]
        for number, raw, shape in lines:
            if pattern.possible(shape):
                text = decoded(raw)
                if pattern.search(text):
                    open_.found[part] = MatchedLine(number, text, pattern)
                    return True
        return False

    def _waiting(self, window: LineWindow) -> Iterator[Hit]:
        """Signs whose surroundings went on beyond the last block."""
        waiting, self._open = self._open, []
        for open_ in waiting:
            if open_.signed not in self.hits:
                yield from self._look(open_, window.until(open_.until), window.last)

    def _count(self, signed: Signed, found: Mapping[int, MatchedLine]) -> Iterator[Hit]:
        self._counts[signed] += 1
        if signed in self.hits:
            self.hits[signed].count = self._counts[signed]
        elif self._counts[signed] >= signed.sign.times:
            lines = {line.number: line for line in found.values()}
            matches = [match for line in found.values() if (match := line.match)]
            groups = {name: text for match in matches for name, text in match.groupdict().items() if text}
            proof = tuple(self._proof(lines[number]) for number in sorted(lines))
            self.hits[signed] = Hit(signed, proof, groups, self._counts[signed])
            yield self.hits[signed]

    def _seen_mark(self, name: str, line: MatchedLine) -> None:
        count, first, _ = self._marks.get(name, (0, line, line))
        self._marks[name] = count + 1, first, line

    def _tables(self, block: bytes) -> None:
        """Rows are counted below their header."""
        for name, (header, row) in self._book.rows.items():
            if header not in self._marks:
                continue
            top = self._marks[header][1].number
            for match in row.finditer(block):
                number = self.lines + 1 + block.count(b"\n", 0, match.start())
                if number > top:
                    self._seen_mark(name, MatchedLine(number, decoded(match[0])))

    def _proof(self, line: MatchedLine) -> Proof:
        """The proof of a line; if the match is far from its beginning, only the part from there on."""
        match, text = line.match, line.text.strip()
        if match and match.start() > _FAR:
            text = f"... {line.text[match.start() - _BEFORE :].strip()}"
        return Proof(self._source, line.number, text, when(line.text, self._year), who(line.text))

    def _remember(self, block: bytes) -> None:
        """The first lines and the last ones, raw: they are read only when somebody asks."""
        if len(self._head) < TAIL:
            self._head += block[:_EDGE].split(b"\n")[: TAIL - len(self._head)]
        last = block[-_EDGE:].split(b"\n")[-WINDOW:]
        total = self.lines + block.count(b"\n") + 1
        self._tail.extend((total - len(last) + 1 + i, line) for i, line in enumerate(last))

    def times(self) -> tuple[float | None, float | None]:
        """The times of the source's first and last line, as far as its lines show them."""
        first = (when(decoded(line), self._year) for line in self._head)
        last = (when(decoded(line), self._year) for _, line in reversed(self._tail))
        return next((t for t in first if t is not None), None), next((t for t in last if t is not None), None)

    def story(self, ended: bool = True) -> Story:
        tail = tuple(self._proof(MatchedLine(number, decoded(line))) for number, line in self._tail if line.strip())[
            -TAIL:
        ]
        marks = {
            name: MarkCount(n, self._proof(first), self._proof(last)) for name, (n, first, last) in self._marks.items()
        }
        return Story(self._source, self.lines, marks, tail, ended)
