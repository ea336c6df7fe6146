"""All patterns of all causes, ready for one pass over a log.

One pass (multi_search.py) finds the words that patterns cannot do without; only lines that have one of them are
decoded, and only their patterns are tried there (docs/adr/0007-one-pass-over-logs.md).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache, cached_property
from hashlib import sha256
from typing import TypeVar

from sparkwright.logscan.literals import MARK, all_required, digit_blind, lenient, rarity, required
from sparkwright.logscan.logline import LONGEST, decoded
from sparkwright.logscan.multi_search import Finder
from sparkwright.logscan.relaxed import relaxed
from sparkwright.logscan.sign import WINDOW, Sign, TableRows

# One pass over the bytes: small letters, and carriage returns as the form feeds that set parts of a line apart.
_LOW = bytes(bytes(range(256)).lower()).replace(b"\r", b"\x0c")
# The same with every digit as 0: lines that differ in their numbers alone are judged once.
_SHAPE = bytes(48 if 48 <= letter < 58 else letter for letter in _LOW)
_NO_DIGITS = bytes(48 if 48 <= letter < 58 else letter for letter in range(256))
# A run of letters that a pattern leaves open: longer ones are taken for so long. From each of many places to the line's
# end would be quadratic; where a pattern begins with the line there is one place only.
RUN = 300
_OPEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(?:([*+])|\{(\d+),\})([?+]?)", re.DOTALL)
_DIGIT = re.compile("[0-9]")
K = TypeVar("K")
V = TypeVar("V")
Needs = tuple[tuple[float, int], Sequence[str]]  # its rarity, and the words of which every match has one


@dataclass(frozen=True, slots=True, eq=False)
class Signed:
    """A sign of the cause with that code.

    parts: where its patterns are in the book, the rarest first; rarest: the part that the whole log is searched for,
    the others are looked for around it; unless: the pattern of lines left out.
    """

    code: str
    sign: Sign
    parts: tuple[int, ...]
    rarest: int
    unless: int | None = None

    @property
    def is_near(self) -> bool:
        return len(self.parts) > 1 and self.sign.within <= WINDOW

    @property
    def looked_for(self) -> tuple[int, ...]:
        return self.parts if self.sign.within > WINDOW else (self.rarest,)


@dataclass(slots=True)
class Pattern:
    """One expression, compiled when its word is first met; in a line without quotes and brackets it needs none."""

    text: str
    _compiled: list[re.Pattern[str]] = field(default_factory=list)
    _needs: tuple[tuple[bytes, ...], ...] | None = None
    _blind: bool | None = None

    def search(self, line: str) -> re.Match[str] | None:
        if not self._compiled:
            texts = dict.fromkeys((self.text, lenient(self.text)))
            self._compiled = [re.compile(linear(text), re.IGNORECASE) for text in texts]
        lost = len(self._compiled) > 1 and not MARK.search(line)
        return self._compiled[lost].search(line)

    def first_place(self, line: str) -> int | None:
        """The first character that may decide whether lines of that shape match; None if with no numbers they do."""
        text = self.text if MARK.search(line) else lenient(self.text)
        wider = relaxed(linear(text))
        if wider is None:
            return 0
        found = wider[0].search(line)
        return max(0, found.start() - wider[1]) if found else None

    @property
    def digit_blind(self) -> bool:
        if self._blind is None:
            self._blind = digit_blind(self.text)
        return self._blind

    def possible(self, shape: bytes, has_word: bool = False) -> bool:
        """True if bytes of that shape may contain the fixed parts of every match; has_word: they have a word it is
        found by."""
        if self._needs is None:
            self._needs = tuple(tuple(shaped(t.encode()) for t in texts) for texts in all_required(self.text))
        for texts in self._needs[has_word:]:
            for text in texts:
                if text in shape:
                    break
            else:
                return False
        return True


class Book:
    """signs: with their causes' codes; marks, rows: counted in a whole log; once: marks that count once; needs: known.

    Raises ValueError for a pattern without a word to look for.
    """

    def __init__(
        self,
        signs: Iterable[tuple[str, Sign]],
        marks: Mapping[str, str],
        rows: Mapping[str, TableRows],
        once: Mapping[str, str],
        needs: Mapping[str, Needs],
    ) -> None:
        self._needs, self._once = needs, frozenset(once)
        self.patterns: list[Pattern] = []
        self._far: dict[int, bool] = {}
        self._numbers: dict[str, int] = {}
        self.signs = tuple(self._signed(code, sign) for code, sign in signs)
        self.rows = {name: (row.header, re.compile(row.pattern, re.M)) for name, row in rows.items()}
        self.marks = {name: self._number(pattern) for name, pattern in {**marks, **once}.items()}
        self._signs_of = _index((number, signed) for signed in self.signs for number in signed.looked_for)
        self._marks_of = _index((number, name) for name, number in self.marks.items())
        looked_for = sorted({*self._signs_of, *self._marks_of})
        self._words = _index((word, n) for n in looked_for for word in self._required(self.patterns[n].text))

    def _signed(self, code: str, sign: Sign) -> Signed:
        unless = self._number(sign.unless) if sign.unless else None
        parts = sorted(sign.patterns, key=self._rarity, reverse=True)
        return Signed(code, sign, tuple(map(self._number, parts)), self._number(parts[0]), unless)

    def _required(self, pattern: str) -> Sequence[str]:
        known = self._needs.get(digest(pattern))
        return known[1] if known else required(pattern)

    def _rarity(self, pattern: str) -> tuple[float, int]:
        """The rarity of the pattern's words; a pattern without any word is only searched around another one."""
        try:
            return self._needs[digest(pattern)][0] if digest(pattern) in self._needs else rarity(required(pattern))
        except ValueError:
            return (float("-inf"), 0)

    def _number(self, pattern: str) -> int:
        if pattern not in self._numbers:
            self._numbers[pattern] = len(self.patterns)
            self.patterns.append(Pattern(pattern))
        return self._numbers[pattern]

    def signs_of(self, pattern: int) -> tuple[Signed, ...]:
        return self._signs_of.get(pattern, ())

    def excused(self, signed: Signed, line: str) -> bool:
        """True if the sign excludes the line."""
        if signed.unless is None or not self.patterns[signed.unless].possible(shaped(line.encode())):
            return False
        return self.patterns[signed.unless].search(line) is not None

    def is_blind(self, signed: Signed) -> bool:
        """True if digits do not matter to its patterns."""
        return all(self.patterns[part].digit_blind for part in signed.parts)

    def excuses_blindly(self, signed: Signed) -> bool:
        """True if digits do not matter to the lines that the sign excludes."""
        return signed.unless is None or self.patterns[signed.unless].digit_blind

    def marks_of(self, pattern: int) -> tuple[str, ...]:
        return self._marks_of.get(pattern, ())

    @cached_property
    def wanted_again(self) -> Set[int]:
        """The patterns of which a story asks for later lines that have them."""
        return {pattern for pattern, names in self._marks_of.items() if not self._once.issuperset(names)}

    def is_only_counted(self, pattern: int) -> bool:
        """True for marks alone that digits do not matter to: in a line of a known shape they need no search."""
        is_mark = pattern in self.wanted_again and pattern not in self._signs_of
        return is_mark and self.patterns[pattern].digit_blind

    @cached_property
    def only_near(self) -> Mapping[int, tuple[Signed, ...]]:
        """The signs of the patterns that are of no use without others around them."""
        asked = ((n, signs) for n, signs in self._signs_of.items() if n not in self._marks_of)
        return {n: signs for n, signs in asked if all(signed.is_near for signed in signs)}

    def is_only_far(self, pattern: int) -> bool:
        """True if the other patterns of all its signs may be anywhere, or far away. Kept: asked at each line."""
        known = self._far.get(pattern)
        if known is None:
            signs = self.signs_of(pattern)
            known = self._far[pattern] = all(len(one.parts) > 1 and one.sign.within > WINDOW for one in signs)
        return known

    @cached_property
    def needles(self) -> tuple[str, ...]:
        return tuple(sorted(self._words))

    @cached_property
    def _of_word(self) -> tuple[tuple[int, ...], ...]:
        return tuple(self._words[word] for word in self.needles)

    @cached_property
    def _every(self) -> Finder:
        return Finder([word.encode() for word in self.needles])

    @cached_property
    def _of_digits(self) -> Finder:
        """The words with digits: a line's shape hides them."""
        encoded = [word.encode() for word in self.needles if _DIGIT.search(word)]
        return Finder(encoded or [b"\n"])

    def words_with_digits(self, low: bytes) -> Iterator[tuple[int, int]]:
        """(number, position) of the words with digits in a lowercased block."""
        return ((word, at) for word, at, _ in self._of_digits.hits(low))

    def live(self, shape: bytes, words: Iterable[int], line: bytes) -> tuple[int, ...]:
        """Patterns with a word of `words`: those that depend on digits, and those that this line matches."""
        numbers = {number for word in words for number in self._of_word[word]}
        possible = [number for number in sorted(numbers) if self.patterns[number].possible(shape, True)]
        text = decoded(line) if possible else ""
        return tuple(n for n in possible if not self.patterns[n].digit_blind or self.patterns[n].search(text))

    def needless(self, done: Set[int], pattern: int) -> frozenset[int]:
        """The words of a pattern that no other one needs but those that are done."""
        words = required(self.patterns[pattern].text)
        places = (number for number, word in enumerate(self.needles) if word in words)
        return frozenset(number for number in places if done >= set(self._of_word[number]))

    def lines_with_words(self, low: bytes, needless: Set[int] = frozenset()) -> Iterator[tuple[int, int, set[int]]]:
        """(start, end, words) of the lines of a lowered block, and of parts between form feeds, that have any word.

        Of very long ones only what is around the word is taken. needless: words that do not count.
        """
        start, end, words, in_parts = 0, -1, set[int](), b"\x0c" in low
        for word, at, _ in self._every.hits(low):
            if word in needless:
                continue
            if at >= end:
                if words:
                    yield start, end, words
                (start, end), words = _around(low, at, in_parts), set()
            words.add(word)
        if words:
            yield start, end, words


def linear(pattern: str) -> str:
    """The same with a bound for every repeat that has none."""
    if pattern.startswith("^"):
        return pattern
    return _OPEN.sub(lambda m: f"{{{m[2] or '*+'.index(m[1])},{RUN}}}{m[3]}" if m[1] or m[2] else m[0], pattern)


def lowered(block: bytes) -> bytes:
    return block.translate(_LOW)


def shaped(block: bytes) -> bytes:
    return block.translate(_SHAPE)


def without_digits(block: bytes) -> bytes:
    """The same with every digit as 0; the case of letters stays."""
    return block.translate(_NO_DIGITS)


def _around(block: bytes, at: int, in_parts: bool) -> tuple[int, int]:
    """The bounds of the line, or of the part of a line, that has the byte at `at`."""
    first = at - LONGEST if at > LONGEST else 0
    start = block.rfind(b"\n", first, at) + 1 or max(0, at - LONGEST // 2)
    end = block.find(b"\n", at, at + LONGEST)
    end = min(len(block), at + LONGEST) if end < 0 else end
    if not in_parts:
        return start, end
    start = max(start, block.rfind(b"\x0c", start, at) + 1)
    part = block.find(b"\x0c", at, end)
    return start, end if part < 0 else part


@cache
def digest(pattern: str) -> str:
    """The key under which `needs` are stored."""
    return sha256(pattern.encode()).hexdigest()[:16]


def needs_of(pattern: str) -> Needs:
    """The words and rarity of a pattern for a file of them. Raises ValueError if it has no word."""
    words = required(pattern)
    return rarity(words), words


def _index(pairs: Iterable[tuple[K, V]]) -> Mapping[K, tuple[V, ...]]:
    found: dict[K, list[V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return {key: tuple(dict.fromkeys(values)) for key, values in found.items()}
