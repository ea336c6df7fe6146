"""Finds the loop of a text that goes on repeating itself: bounded memory, a look each kilobyte, no cost for a token.

A loop is a tail of the text that has one period and is long: a table, a list or a poem repeats words, its rows differ.
Digits are looked at a second time: sentences that differ only in numbers which count up are a loop, too; rows of data
that do are none.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from sparkwright.domain.values import dataclass

EVERY = 1024  # bytes of text between two looks
WINDOW = 40 * 1024
_ANCHOR = 48  # the last bytes, which must have been there before
_CANDIDATES = 8
LONGEST_PERIOD = 4096
# Bytes that repeat before it is a loop: of words, of blanks, of data (quotes, brackets), of what has no words (zeros,
# lines, base64), and of sentences with numbers that count. And so many times.
OF_WORDS, OF_BLANKS, OF_DATA, OF_SIGNS, COUNTED = 8192, 4096, 24 * 1024, 32 * 1024, 12 * 1024
TIMES, TIMES_OF_LONG, TIMES_COUNTED = 8, 5, 48
_LONG = 1024
_DIVERSE = 3  # different bytes; fewer are no words
_WORD = re.compile(rb"[A-Za-z\x80-\xff]{2}")
_BLANK = re.compile(rb"(?:[ \t\r\n]|\\[nrt])+")
_NUMBER = re.compile(rb"[0-9]+")
_PROSE = re.compile(rb"(?:[A-Za-z\x80-\xff]{2,}[^A-Za-z\x80-\xff]*){4}")
_OF_DATA = re.compile(rb"[{}\[\]<>|=;\"#$\t]|\\t|://")


@dataclass(frozen=True, slots=True)
class TextLoop:
    """period: the text that repeats; times: how often in a row, at least. counts: only its numbers differ."""

    period: str
    times: int
    counts: bool = False


class LoopFinder:
    """Feed it the text of one answer as it comes; `found` is the loop that it ended in."""

    def __init__(self) -> None:
        self.found: TextLoop | None = None
        self._text, self._plain = bytearray(), bytearray()
        self._new = 0

    def feed(self, text: bytes) -> TextLoop | None:
        """text: as bytes of JSON strings or of UTF-8, escapes included."""
        for at in range(0, len(text), EVERY):
            if self.found:
                break
            part = text[at : at + EVERY]
            self._text += part
            self._add_plain(part)
            self._new += len(part)
            if self._new >= EVERY:
                self._new = 0
                self.found = self._look()
        return self.found

    def _add_plain(self, part: bytes) -> None:
        """The text with each number as one `0`; a number may come in two parts."""
        plain = _NUMBER.sub(b"0", part)
        if self._plain[-1:] == b"0" and plain[:1] == b"0":
            plain = plain[1:]
        self._plain += plain
        for window in (self._text, self._plain):
            if len(window) > 2 * WINDOW:
                del window[:-WINDOW]

    def _look(self) -> TextLoop | None:
        text = bytes(self._text[-WINDOW:])
        for period in _periods(text):
            unit = text[-period:]
            if _repeats(text, period, _needed(unit)):
                return TextLoop(_shown(unit), _needed(unit) // period)
        plain = bytes(self._plain[-WINDOW:])
        for period in _periods(plain):
            unit = plain[-period:]
            need = max(COUNTED, TIMES_COUNTED * period)
            if b"0" in unit and _is_prose(unit) and _repeats(plain, period, need) and _counts_up(text, unit, need):
                return TextLoop(_shown(unit), need // period, counts=True)
        return None


def _periods(text: bytes) -> Iterator[int]:
    """The distances at which the last bytes were there before, the shortest first."""
    place, end = len(text) - _ANCHOR, len(text) - 1
    if place <= 0:
        return
    anchor = text[place:]
    for _ in range(_CANDIDATES):
        at = text.rfind(anchor, max(0, place - LONGEST_PERIOD), end)
        if at < 0:
            return
        yield place - at
        end = at + _ANCHOR - 1


def _repeats(text: bytes, period: int, need: int) -> bool:
    return len(text) >= need and text[-need:-period] == text[-need + period :]


def _needed(unit: bytes) -> int:
    """The bytes that must have this period."""
    if _BLANK.fullmatch(unit):
        return OF_BLANKS
    if not _WORD.search(unit) or len(set(unit)) < _DIVERSE:
        return OF_SIGNS
    least = OF_DATA if _OF_DATA.search(unit) else OF_WORDS
    return max(least, (TIMES if len(unit) <= _LONG else TIMES_OF_LONG) * len(unit))


def _is_prose(unit: bytes) -> bool:
    return bool(_PROSE.search(unit)) and not _OF_DATA.search(unit)


def _counts_up(text: bytes, unit: bytes, need: int) -> bool:
    """True if each number of the period is the same as in the one before, or always one more, or always one less."""
    slots = unit.count(b"0")
    numbers = [int(one[:15]) for one in _NUMBER.findall(text[-2 * need :])][:-1]
    turns = min(len(numbers) // slots, TIMES_COUNTED)
    rows = [numbers[len(numbers) - (turn + 1) * slots : len(numbers) - turn * slots] for turn in range(turns)]
    steps = {tuple(b - a for a, b in zip(old, new, strict=True)) for new, old in pairwise(rows)}
    return turns >= TIMES_COUNTED // 2 and len(steps) == 1 and all(abs(step) <= 1 for step in next(iter(steps)))


def _shown(unit: bytes) -> str:
    return unit[:200].decode("utf-8", "replace")
