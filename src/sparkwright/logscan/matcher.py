"""One pass over one source: which signs are there, which marks, how it ends."""

import re
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sparkwright.domain.diagnosis import Proof
from sparkwright.domain.printable import without_escapes
from sparkwright.logscan.book import Book, Signed, lowered, shaped, without_digits
from sparkwright.logscan.envelope import rejoined
from sparkwright.logscan.logline import Excerpt, decoded, is_settings, line_time, process_name
from sparkwright.logscan.sign import WINDOW, MarkCount, Story
from sparkwright.logscan.window import LineWindow, MatchedLine, Open

TAIL = 40
_EDGE = 64 * 1024  # bytes of a block in which its first and last lines are looked for
_LONGEST_LINE = 1 << 20
_CLEAN, _LONG = 50_000, 2000  # so many shapes of lines with nothing in them are kept, of so many bytes at most
_KEPT = 4096  # shapes of lines, and surroundings, whose result is kept
_FAR, _BEFORE, _LEVEL = 150, 100, 48  # characters; the last: of a line's beginning, with its time and level
_Part = tuple[int, int, tuple[int, ...]]  # of a line: start, end, patterns
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
        self._new: list[Hit] = []  # of this block
        self._clean: set[bytes] = set()  # shapes of lines in which there is nothing
        self._tried: set[int] = set()  # of lines with those around them, in which there is nothing either
        self._by_digits = False  # whether the last look depended on more than shapes
        self._shown: dict[tuple[int, bytes], tuple[Signed, ...]] = {}
        self._parts: dict[tuple[bytes, tuple[int, ...] | None], list[_Part]] = {}  # by shape, and words with digits
        self._parts_without: frozenset[int] | None = None  # the needless words that they were found without
        self._known: dict[tuple[bytes, frozenset[int]], tuple[int, ...]] = {}
        self._vain: set[tuple[int, int]] = set()
        self._unwanted: set[tuple[int, int] | None] = (
            set()
        )  # patterns among lines of these shapes, until a sign is found
        self._done: set[int] = set()
        self._needless: frozenset[int] = frozenset()  # words of what is done

    def feed(self, chunk: bytes) -> tuple[Hit, ...]:
        """Reads a chunk and returns its new hits. An unfinished line waits for the next call, or for `close`."""
        whole, newline, rest = chunk.rpartition(b"\n")
        if not newline:
            self._rest += chunk
            return () if len(self._rest) < _LONGEST_LINE else self.close()
        block, self._rest = self._rest + whole, rest
        return self._block(rejoined(without_escapes(block)))

    def close(self) -> tuple[Hit, ...]:
        """Reads the last line, which has no end."""
        block, self._rest = self._rest, b""
        return self._block(rejoined(without_escapes(block))) if block else ()

    def _block(self, block: bytes) -> tuple[Hit, ...]:
        window = LineWindow(block, self.lines + 1, tuple(self._tail))
        self._waiting(window)
        low = lowered(block)
        digits = self._digits(low, window.starts)
        fresh, dirty, wanted = self._fresh(digits, window), set[int](), set[int]()
        for line, start, end, live in self._lines_with_patterns(block, low, window, fresh, digits):
            for pattern in live:
                if pattern not in self._done:
                    dirty.add(line)
                    self._by_digits = False
                    is_wanted = self._is_wanted(pattern, window.first + line, window)
                    if is_wanted or self._by_digits:
                        wanted.add(line)
                    if is_wanted:
                        self._line(pattern, window.first + line, block[start:end], window)
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
        new, self._new = tuple(self._new), []
        return new

    def _digits(self, low: bytes, starts: list[int]) -> dict[int, tuple[int, ...]]:
        """The words with digits, which shapes hide, as (number, place in the line) one after the other, by line."""
        found: dict[int, tuple[int, ...]] = {}
        for word, at in self._book.words_with_digits(low):
            line = bisect_right(starts, at) - 1
            found[line] = (*found.get(line, ()), word, at - starts[line])
        return found

    def _fresh(self, digits: Mapping[int, tuple[int, ...]], window: LineWindow) -> list[int]:
        """The lines, from 0, that have to be searched: their shape is new, or they have a word with digits."""
        clean = self._clean
        fresh = {line for line, shape in enumerate(window.shapes) if shape not in clean}
        if self._tried:  # without those that were no sign before, among the same lines
            spans = ((line, window.span(window.first + line, WINDOW)) for line in fresh)
            fresh = {line for line, span in spans if not (span and window.key(span) in self._tried)}
        if len(fresh) < len(window.shapes):
            fresh.update(digits)
        return sorted(fresh)

    def _lines_with_patterns(
        self, block: bytes, low: bytes, window: LineWindow, fresh: list[int], digits: Mapping[int, tuple[int, ...]]
    ) -> Iterator[tuple[int, int, int, tuple[int, ...]]]:
        """(line from 0, start and end in the block, live patterns) of the fresh lines that have any word.

        Kept for other lines of the same shape with the same words with digits.
        """
        if self._parts_without is not self._needless:
            self._parts, self._parts_without = {}, self._needless
        starts, shapes, parts = window.starts, window.shapes, self._parts
        keys = [(shapes[line], digits.get(line)) for line in fresh]
        seen: dict[int, list[_Part]] = {line: [] for line, key in zip(fresh, keys, strict=True) if key not in parts}
        for line, start, end, words in self._lines_with_words(low, starts, list(seen)):
            live = self._live(block[start:end], frozenset(words))
            seen[line].append((start - starts[line], end - starts[line], live))
        if len(parts) < _KEPT:
            new = ((key, seen[line]) for line, key in zip(fresh, keys, strict=True) if line in seen)
            parts.update((key, found) for key, found in new if len(key[0]) < _LONG)
        for line, key in zip(fresh, keys, strict=True):
            at = starts[line]
            for start, end, live in seen[line] if line in seen else parts[key]:
                yield line, at + start, at + end, live

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
        if signs is None:
            return True
        span = window.span(number, WINDOW)
        key = (pattern, window.key(span)) if span else None
        if key in self._unwanted:
            return False
        wanted = any(s in self.hits or self._has_company(s, pattern, number, window) for s in signs)
        if key and not (wanted or self._by_digits) and len(self._unwanted) < _CLEAN:
            self._unwanted.add(key)
        return wanted

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

    def _line(self, pattern: int, number: int, raw: bytes, window: LineWindow) -> None:
        searched = self._book.patterns[pattern]
        # What does not look at digits was found in a line of this shape: `live` has seen to it.
        if searched.digit_blind or searched.search(decoded(raw)):
            self._found(pattern, MatchedLine(number, raw, searched), window)

    def _found(self, pattern: int, line: MatchedLine, window: LineWindow) -> None:
        self._last[pattern] = line
        for name in self._book.marks_of(pattern):
            self._seen_mark(name, line)
        signs = self._book.signs_of(pattern)
        for signed in signs and self._signs_in(pattern, line):
            self._sign(signed, pattern, line, window)
        if pattern not in self._book.wanted_again and all(self._counts[signed] > _COUNTED for signed in signs):
            self._done.add(pattern)
            self._needless |= self._book.needless(self._done, pattern)

    def _signs_in(self, pattern: int, line: MatchedLine) -> tuple[Signed, ...]:
        """The signs of the pattern that the line may show. Kept for lines that differ in digits alone."""
        key = pattern, without_digits(line.raw)
        known = self._shown.get(key)
        if known is not None:
            return known
        signs = () if is_settings(line.text) else self._book.signs_of(pattern)
        known = tuple(signed for signed in signs if not self._book.excused(signed, line.text))
        if all(self._book.excuses_blindly(signed) for signed in signs):
            if len(self._shown) > _KEPT:
                self._shown.clear()
            self._shown[key] = known
        return known

    def _sign(self, signed: Signed, pattern: int, line: MatchedLine, window: LineWindow) -> None:
        if len(signed.parts) == 1 or signed in self.hits:
            self._count(signed, {pattern: line})
        elif signed.sign.within > WINDOW:
            self._anywhere(signed, line.number)
        elif pattern in self._book.only_near or self._has_company(signed, pattern, line.number, window):
            open_ = Open(signed, line.number + signed.sign.within, {pattern: line})
            self._look(open_, window.around(line.number, signed.sign.within), window.last)

    def _anywhere(self, signed: Signed, number: int) -> None:
        """Hits of a sign whose patterns were all seen close enough to this line."""
        seen = {part: self._last[part] for part in signed.parts if part in self._last}
        if all(part in seen and number - seen[part].number <= signed.sign.within for part in signed.parts):
            self._count(signed, seen)

    def _look(self, open_: Open, around: Iterable[tuple[int, bytes]], last: int) -> None:
        """The other patterns of a sign in the lines around its rarest; what may still come is waited for."""
        lines = [(number, raw, shaped(raw)) for number, raw in around]
        for part in open_.signed.parts:
            if part not in open_.found and not self._is_there(part, lines, open_) and open_.until <= last:
                return
        if len(open_.found) == len(set(open_.signed.parts)):
            self._count(open_.signed, open_.found)
        else:
            self._open.append(open_)

    def _is_there(self, part: int, lines: Iterable[tuple[int, bytes, bytes]], open_: Open) -> bool:
        pattern = self._book.patterns[part]
        for number, raw, shape in lines:
            if pattern.possible(shape):
                text = decoded(raw)
                if pattern.search(text):
                    open_.found[part] = MatchedLine(number, raw, pattern)
                    return True
        return False

    def _waiting(self, window: LineWindow) -> None:
        """Signs whose surroundings went on beyond the last block."""
        waiting, self._open = self._open, []
        for open_ in waiting:
            if open_.signed not in self.hits:
                self._look(open_, window.until(open_.until), window.last)

    def _count(self, signed: Signed, found: Mapping[int, MatchedLine]) -> None:
        self._counts[signed] += 1
        if signed in self.hits:
            self.hits[signed].count = self._counts[signed]
        elif self._counts[signed] >= signed.sign.times:
            lines = {line.number: line for line in found.values()}
            matches = [match for line in found.values() if (match := line.match)]
            groups = {name: text for match in matches for name, text in match.groupdict().items() if text}
            proof = tuple(self._proof(lines[number]) for number in sorted(lines))
            self.hits[signed] = Hit(signed, proof, groups, self._counts[signed])
            self._new.append(self.hits[signed])
            self._unwanted.clear()

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
                    self._seen_mark(name, MatchedLine(number, match[0]))

    def _proof(self, line: MatchedLine) -> Proof:
        """The proof of a line; if the match is far from its beginning, only that and the part around the match."""
        match, text = line.match, line.text.strip()
        if match and match.start() > _FAR:
            text = f"{text[:_LEVEL]} ... {line.text[match.start() - _BEFORE :].strip()}"
        return Proof(self._source, line.number, text, line_time(line.text, self._year), process_name(line.text))

    def _remember(self, block: bytes) -> None:
        """The first lines and the last ones, raw: they are read only when somebody asks."""
        if len(self._head) < TAIL:
            self._head += block[:_EDGE].split(b"\n")[: TAIL - len(self._head)]
        last = block[-_EDGE:].split(b"\n")[-WINDOW:]
        total = self.lines + block.count(b"\n") + 1
        self._tail.extend((total - len(last) + 1 + i, line) for i, line in enumerate(last))

    def times(self) -> tuple[float | None, float | None]:
        """The times of the source's first and last line, as far as its lines show them."""
        first = (line_time(decoded(line), self._year) for line in self._head)
        last = (line_time(decoded(line), self._year) for _, line in reversed(self._tail))
        return next((t for t in first if t is not None), None), next((t for t in last if t is not None), None)

    def story(self, ended: bool = True) -> Story:
        tail = tuple(self._proof(MatchedLine(number, line)) for number, line in self._tail if line.strip())[-TAIL:]
        marks = {
            name: MarkCount(n, self._proof(first), self._proof(last)) for name, (n, first, last) in self._marks.items()
        }
        return Story(self._source, self.lines, marks, tail, ended)
