"""One pass over one source: which signs are there, which marks, how it ends."""

import re
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sparkwright.domain.diagnosis import Proof
from sparkwright.domain.printable import without_escapes
from sparkwright.logscan.book import Book, Pattern, Signed, lowered, shaped, without_digits
from sparkwright.logscan.envelope import rejoined
from sparkwright.logscan.line_plan import ANYWHERE, OFTEN, LinePart, LinePlan, LineStep
from sparkwright.logscan.logline import LONGEST, Excerpt, decoded, is_settings, line_time, process_name
from sparkwright.logscan.sign import WINDOW, MarkCount, Story
from sparkwright.logscan.window import LineWindow, MatchedLine, Open

TAIL = 40
_EDGE = 64 * 1024  # bytes of a block in which its first and last lines are looked for
_LONGEST_LINE = 1 << 20
_CLEAN, _LONG = 50_000, 2000  # so many shapes of lines with nothing in them are kept, of so many bytes at most
_KEPT = 4096  # shapes of lines, and surroundings, whose result is kept
_FAR, _BEFORE, _LEVEL = 150, 100, 48  # characters; the last: of a line's beginning, with its time and level
_Key = tuple[bytes, tuple[int, ...] | None]  # a line's shape and its words with digits
_NOTHING = LinePlan(0, [])
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


def _could_match(pattern: Pattern, line: int, window: LineWindow) -> bool:
    """True if lines of the shape of that one may match, with whatever numbers."""
    return pattern.possible(window.shapes[line]) and pattern.first_place(decoded(window.line(line))) is not None


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
        self._tried_shapes: set[int] = set()  # of the lines amid those
        self._by_digits = False  # whether the last look depended on more than shapes
        self._shown: dict[tuple[int, bytes], tuple[Signed, ...]] = {}
        self._plans: dict[_Key, LinePlan] = {}
        self._plans_without: frozenset[int] | None = None  # the needless words that they were found without
        self._last_plan = 0
        self._matches: dict[tuple[int, int, bytes], bool] = {}
        self._idle: set[tuple[int, int]] = set()  # plans among lines of these shapes that have no company
        self._known: dict[tuple[bytes, frozenset[int]], tuple[int, ...]] = {}
        self._vain: set[tuple[int, int]] = set()
        # Signs among lines of these shapes where digits decide, and how far away the other patterns may be.
        self._crowded: dict[tuple[int, int], list[tuple[Pattern, list[int]]] | None] = {}
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
        fresh = self._fresh(digits, window)
        dirty, wanted = self._search(fresh, self._plans_of(low, window, fresh, digits), window)
        # Lines of these shapes need no second look. Logs repeat themselves, but for their numbers.
        shapes = (window.shapes[line] for line in fresh if line not in dirty)
        if len(self._clean) < _CLEAN:
            self._clean.update(shape for shape in shapes if len(shape) < _LONG)
        if len(self._tried) < _CLEAN:
            self._try_no_more(dirty - wanted, window)
        starts, first = window.starts, window.first
        self.kept.add([(first + n, block[starts[n] : starts[n + 1] - 1]) for n in self.kept.needed(fresh)])
        self._tables(block)
        self._remember(block, window.last)
        if at := _last_answer(block):
            self.answered = window.first + block.count(b"\n", 0, at)
        self.lines = window.last
        self.bytes += len(block) + 1
        new, self._new = tuple(self._new), []
        return new

    def _digits(self, low: bytes, starts: list[int]) -> dict[int, tuple[int, ...]]:
        """The words with digits, which shapes hide, as (number, place in the line) one after the other, by line."""
        found: dict[int, list[int]] = {}
        for word, at in self._book.words_with_digits(low):
            line = bisect_right(starts, at) - 1
            found.setdefault(line, []).extend((word, at - starts[line]))
        return {line: tuple(words) for line, words in found.items()}

    def _fresh(self, digits: Mapping[int, tuple[int, ...]], window: LineWindow) -> list[int]:
        """The lines, from 0, that have to be searched: their shape is new, or they have a word with digits."""
        clean, tried, vain = self._clean, self._tried_shapes, set[int]()
        fresh = [line for line, shape in enumerate(window.shapes) if shape not in clean]
        if tried:  # without those that were no sign before, among the same lines
            maybe = (line for line in fresh if hash(window.shapes[line]) in tried)
            vain = {line for line in maybe if window.around_key(line) in self._tried}
        return sorted({*fresh, *digits} - (vain - digits.keys()))

    def _try_no_more(self, lines: Iterable[int], window: LineWindow) -> None:
        """Keeps what is around lines in which nothing was found, nor will be."""
        for line in lines:
            around = window.around_key(line)
            if around is not None:
                self._tried.add(around)
                self._tried_shapes.add(hash(window.shapes[line]))

    def _plans_of(
        self, low: bytes, window: LineWindow, fresh: list[int], digits: Mapping[int, tuple[int, ...]]
    ) -> list[LinePlan]:
        """The plan of each fresh line. Kept for other lines of the same shape with the same words with digits."""
        if self._plans_without is not self._needless:
            self._plans, self._plans_without = {}, self._needless
        shapes, plans, new = window.shapes, self._plans, dict[_Key, int]()
        keys = [(shapes[line], digits.get(line)) for line in fresh]
        for line, key in zip(fresh, keys, strict=True):
            if key not in plans:
                new.setdefault(key, line)
        if not new:
            return [plans[key] for key in keys]
        parts: dict[int, list[LinePart]] = {}
        for line, start, end, words in self._lines_with_words(low, window.starts, list(new.values())):
            live = self._live(window.block[start:end], frozenset(words))
            parts.setdefault(line, []).append((start - window.starts[line], end - window.starts[line], live))
        made = {key: self._new_plan(parts[line]) if line in parts else _NOTHING for key, line in new.items()}
        found = [made[key] if key in made else plans[key] for key in keys]
        if len(plans) < _KEPT:
            plans.update((key, plan) for key, plan in made.items() if len(key[0]) < _LONG)
        return found

    def _new_plan(self, parts: list[LinePart]) -> LinePlan:
        self._last_plan += 1
        return LinePlan(self._last_plan, parts)

    def _search(self, fresh: Iterable[int], plans: Iterable[LinePlan], window: LineWindow) -> tuple[set[int], set[int]]:
        """The lines with patterns that are not done, and those of them that deserved a closer look."""
        dirty, wanted, counted, done = set[int](), set[int](), list[LinePlan](), self._done
        for line, plan in zip(fresh, plans, strict=True):
            if plan.version != len(done):
                plan.renew(self._book, done)
            if not plan.is_dirty:
                continue
            dirty.add(line)
            if plan.is_wanted:
                wanted.add(line)
            if plan.uses < OFTEN:
                plan.count_use(self._book, done, window.line(line))
            is_counted = self._is_counted(plan)
            if is_counted:
                if not plan.lines:
                    counted.append(plan)
                plan.lines, plan.last = plan.lines + 1, line
            if self._take(plan, is_counted, line, window):
                wanted.add(line)
        for plan in counted:
            self._count_marks(plan, window)
        return dirty, wanted

    def _is_counted(self, plan: LinePlan) -> bool:
        """True if its marks need only be counted: each was seen before."""
        plan.seen = plan.seen or all(name in self._marks for name, *_ in plan.counted)
        return plan.seen and bool(plan.counted)

    def _take(self, plan: LinePlan, is_counted: bool, line: int, window: LineWindow) -> bool:
        """Takes the steps of a line, but what is_counted. True if a pattern that needs company has it."""
        steps = plan.others if is_counted else plan.steps
        around = window.around_key(line) if plan.near else None
        if around is None:
            return self._take_each(steps, plan, line, window)
        if (plan.number, around) in self._idle:
            self._take_each(plan.plain if is_counted else [s for s in steps if not s[3]], plan, line, window)
            return False
        if self._take_each(steps, plan, line, window):
            return True
        if len(self._idle) < _CLEAN and all((pattern, around) in self._unwanted for pattern in plan.near):
            self._idle.add((plan.number, around))
        return False

    def _take_each(self, steps: Iterable[LineStep], plan: LinePlan, line: int, window: LineWindow) -> bool:
        number, start, has_company = window.first + line, window.starts[line], False
        for begin, end, pattern, near, place in steps:
            if pattern in self._done:
                continue
            if near:
                self._by_digits = False
                is_wanted = self._is_wanted(pattern, line, window)
                has_company |= is_wanted or self._by_digits
                if not is_wanted:
                    continue
            raw = window.block[start + begin : start + end]
            if place == ANYWHERE or self._is_match((plan.number, pattern, raw[place:]), raw):
                self._line(pattern, number, raw, window, place != ANYWHERE)
        return has_company

    def _is_match(self, key: tuple[int, int, bytes], raw: bytes) -> bool:
        """True if a pattern matches. Kept for lines of the plan that are alike from where a match may begin.

        key: plan, pattern, the line's bytes from there on.
        """
        known = self._matches.get(key)
        if known is None:
            if len(self._matches) > _KEPT:
                self._matches.clear()
            known = self._matches[key] = self._book.patterns[key[1]].search(decoded(raw)) is not None
        return known

    def _count_marks(self, plan: LinePlan, window: LineWindow) -> None:
        """Adds the lines of a plan whose marks were seen before."""
        number, at = window.first + plan.last, window.starts[plan.last]
        for name, start, end, pattern in plan.counted:
            count, first, last = self._marks[name]
            if number >= last.number:
                last = MatchedLine(number, window.block[at + start : at + end], self._book.patterns[pattern])
            self._marks[name] = count + plan.lines, first, last
        plan.lines = 0

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

    def _is_wanted(self, pattern: int, line: int, window: LineWindow) -> bool:
        """True if a pattern that is of no use alone deserves a closer look. line: from 0."""
        around = window.around_key(line)
        key = (pattern, around) if around is not None else None
        if key in self._unwanted:
            return False
        signs, number = self._book.only_near[pattern], window.first + line
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
        is_met = key in self._crowded
        possible = is_met or self._is_possible(signed, pattern, window.shape(span))
        if possible and (is_met or not self._book.is_blind(signed)):
            self._by_digits = True
            if is_met and not self._is_there_by_digits(key, signed, pattern, number - window.first, window):
                return False
            if len(self._crowded) > _KEPT:
                self._crowded.clear()
            self._crowded.setdefault(key, None)
            key = id(signed), hash(window.text(span))
        known = key in self._vain
        if len(self._vain) > _KEPT:
            self._vain.clear()
        self._vain.add(key)
        return possible and not known

    def _is_there_by_digits(
        self, key: tuple[int, int], signed: Signed, pattern: int, line: int, window: LineWindow
    ) -> bool:
        """True if the sign's other patterns are around a line, counted from 0; which lines may have them is kept."""
        lines = self._crowded[key]
        if lines is None:
            around = range(-signed.sign.within, signed.sign.within + 1)
            others = (self._book.patterns[part] for part in signed.parts if part != pattern)
            lines = [(one, [n for n in around if _could_match(one, line + n, window)]) for one in others]
            self._crowded[key] = lines
        return all(any(one.search(decoded(window.line(line + n))) for n in places) for one, places in lines)

    def _is_possible(self, signed: Signed, pattern: int, shape: bytes) -> bool:
        others = [self._book.patterns[part] for part in signed.parts if part != pattern]
        return all(other.possible(shape) for other in others)

    def _line(self, pattern: int, number: int, raw: bytes, window: LineWindow, is_match: bool) -> None:
        searched = self._book.patterns[pattern]
        # What does not look at digits was found in a line of this shape: `live` has seen to it.
        if is_match or searched.digit_blind or searched.search(decoded(raw)):
            self._found(pattern, MatchedLine(number, raw, searched), window)

    def _found(self, pattern: int, line: MatchedLine, window: LineWindow) -> None:
        for name in self._book.marks_of(pattern):
            self._seen_mark(name, line)
        signs = self._book.signs_of(pattern)
        if signs:
            self._last[pattern] = line
        if signs and (not self._book.is_only_far(pattern) or self._is_close(signs, line.number)):
            for signed in self._signs_in(pattern, line):
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
            if found := self._seen_with(signed, line.number):
                self._count(signed, found)
        elif pattern in self._book.only_near or self._has_company(signed, pattern, line.number, window):
            open_ = Open(signed, line.number + signed.sign.within, {pattern: line})
            self._look(open_, window.around(line.number, signed.sign.within), window.last)

    def _is_close(self, signs: Iterable[Signed], number: int) -> bool:
        """True if one of these signs was found, or all its patterns were seen close enough to this line."""
        return any(signed in self.hits or self._seen_with(signed, number) for signed in signs)

    def _seen_with(self, signed: Signed, number: int) -> dict[int, MatchedLine] | None:
        """The last line of each pattern of a sign; None if one is not close enough to this line."""
        found = dict[int, MatchedLine]()
        for part in signed.parts:
            line = self._last.get(part)
            if line is None or number - line.number > signed.sign.within:
                return None
            found[part] = line
        return found

    def _look(self, open_: Open, around: Iterable[tuple[int, bytes]], last: int) -> None:
        """The other patterns of a sign in the lines around its rarest; what may still come is waited for."""
        read = ((number, raw[: 2 * LONGEST]) for number, raw in around)  # no more of a line is decoded
        lines = [(number, raw, shaped(raw)) for number, raw in read]
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
            self._idle.clear()

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

    def _remember(self, block: bytes, total: int) -> None:
        """The first lines and the last ones, raw: they are read only when somebody asks."""
        if len(self._head) < TAIL:
            self._head += block[:_EDGE].split(b"\n")[: TAIL - len(self._head)]
        last = block[-_EDGE:].split(b"\n")[-WINDOW:]
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
