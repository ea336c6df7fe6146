"""The words that a regular expression cannot match without: the matcher decodes only lines that have one of them."""

import re
from bisect import bisect
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from itertools import accumulate
from math import fsum

# The standard library's own parser of expressions: nothing public tells what an expression is made of.
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

SHORTEST = 4  # bytes
# How many of ten thousand lines of healthy logs and logs of failures have a word (scripts/words/common_words.py).
_PAIRS = iter((files("sparkwright.logscan") / "common.txt").read_text(encoding="utf-8").split())
COMMON: dict[str, int] = {word: int(count) for word, count in zip(_PAIRS, _PAIRS, strict=True)}
_MOST = 25  # texts that one run of characters may be
_EMPTY = frozenset({""})
MARK = re.compile(r"""["'`()\[\]{}<>]""")
# Of an expression: what stays as it is, or a quote or bracket (or a choice of them) that must be there.
_QUOTED = re.compile(
    r"""\(\?<[=!][^()]*\)|\(\?P?<\w+>|\(\?[^\s)]|\{\d*,?\d*\}
    |(?P<mark>\\[\[\](){}]|["'`<>]|\[(?:\\?["'`(){}<>]|\\[\[\]])+\])(?![+*{?])|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]""",
    re.VERBOSE | re.DOTALL,
)
_NOT_IN_WORD = r"(?!(?<=\w)\w)"
_LITERAL = _constants.LITERAL
# Where what holds a sequence has it; everything else (any character, anchors, categories) is blind to digits.
_SEQUENCES = {"SUBPATTERN": 3, "MAX_REPEAT": 2, "MIN_REPEAT": 2, "POSSESSIVE_REPEAT": 2, "ASSERT": 1, "ASSERT_NOT": 1}
_SHORT = 3  # bytes; enough to check a line with, too little to look for
_CHECKED = 5
_UNKNOWN = 160.0  # lines in ten thousand with an unknown word, halved by each of its letters
_NUMBER = 160.0  # the same for numbers: of one or two digits many lines have any
_BETWEEN = re.compile(r"[\s:,=(){}\[\]'\"]+")
_ALL_COMMON = "\n" + "\n".join(COMMON) + "\n"
_STARTS = [0, *accumulate(len(word) + 1 for word in COMMON)][:-1]  # where the line feed before each word is
_COUNTS = [float(count) for count in COMMON.values()]


@cache
def lenient(pattern: str) -> str:
    """The same for lines that lost their quotes and brackets, where it has a text to look for without them."""
    text = _QUOTED.sub(lambda m: rf"(?:{m['mark']}|{_NOT_IN_WORD})" if m["mark"] else m[0], pattern)
    return text if text == pattern or _rarest(text) else pattern


@cache
def required(pattern: str) -> tuple[str, ...]:
    """Lower-case texts of which every match has at least one. Raises ValueError when there is none long enough."""
    best = _rarest(lenient(pattern))
    if not best:
        raise ValueError(f"no text of {SHORTEST} characters or more that every match of {pattern!r} has")
    return tuple(sorted(best))


@cache
def _rarest(pattern: str) -> frozenset[str]:
    return _best(_parser.parse(pattern, re.IGNORECASE))


@cache
def all_required(pattern: str) -> tuple[tuple[str, ...], ...]:
    """Every such choice that the pattern makes, that of `required` first: a line must have one text of each."""
    choices = _choices(_parser.parse(lenient(pattern), re.IGNORECASE))
    first, found = _rarest(lenient(pattern)), sorted(set(choices), key=rarity, reverse=True)
    listed = [texts for texts in (first, *(one for one in found if one != first)) if texts]
    return tuple(tuple(sorted(texts)) for texts in listed[:_CHECKED])


def _choices(items: Iterable[Any]) -> list[frozenset[str]]:
    listed = tuple(items)
    found = [_fewest(texts) for texts in _runs(listed) if _shortest(texts) >= _SHORT]
    for op, value in listed:
        if op.name == "SUBPATTERN":
            found += _choices(value[3])
        elif inner := _inside(op.name, value, _SHORT):
            found.append(inner)
    return found


def _best(items: Iterable[Any], least: int = SHORTEST) -> frozenset[str]:
    """The rarest choice of those that a sequence offers; least: bytes of the shortest of its texts."""
    listed = list(items)
    choices = [_fewest(texts) for texts in _runs(listed) if _shortest(texts) >= least]
    choices += [inner for op, value in listed if op is not _LITERAL and (inner := _inside(op.name, value, least))]
    return max(choices, key=rarity, default=frozenset()) if len(choices) > 1 else next(iter(choices), frozenset())


def _fewest(texts: frozenset[str]) -> frozenset[str]:
    """The texts without those that contain another one: a search for `thing` finds `things`, too."""
    if len(texts) == 1:
        return texts
    return frozenset(text for text in texts if not any(other in text for other in texts if other != text))


def rarity(texts: Iterable[str]) -> tuple[float, int]:
    """Larger for texts that fewer lines have, all of them together, as far as COMMON has them; then for longer ones."""
    listed = list(texts)
    return -fsum(map(_lines_in_ten_thousand, listed)), _shortest(listed)


@cache
def _lines_in_ten_thousand(text: str) -> float:
    """The lines of ten thousand that have the text: those of its rarest word; the more words are together, the fewer.
    Its first and last word may be cut off."""
    words = _BETWEEN.sub("\n", text).split("\n")
    last = len(words) - 1
    bounded = ["\n" * (n > 0) + word + "\n" * (n < last) for n, word in enumerate(words) if word] or [text]
    return min(map(_lines_with, bounded)) / len(bounded) ** 2


@cache
def _lines_with(part: str) -> float:
    """The sum of all common words that have it in them, between line feeds; of one that none has, a guess."""
    at, lines = _ALL_COMMON.find(part), 0.0
    while at >= 0:
        word = bisect(_STARTS, at)
        lines += _COUNTS[word - 1]
        at = _ALL_COMMON.find(part, _STARTS[word]) if word < len(_STARTS) else -1
    if lines:
        return lines
    text = part.strip("\n")
    return (_NUMBER if text[:1] in ".0123456789" else _UNKNOWN) / float(2 ** len(text.encode()))


def _shortest(texts: Iterable[str]) -> int:
    return min(len(text.encode()) for text in texts)


def _runs(items: Iterable[Any]) -> list[frozenset[str]]:
    """Characters that are side by side, with what they may be: `wi-?fi` is `wifi` or `wi-fi`."""
    runs = [_EMPTY]
    for op, value in _joined(items):
        texts, goes_on = _texts(op, value), True
        if not texts:
            texts, goes_on = _begins(op, value), False
        longer = _product(runs[-1], texts)
        if longer:
            runs[-1] = longer
        elif texts:
            runs.append(texts)
        if not goes_on:
            runs.append(_EMPTY)
    return runs


def _product(first: frozenset[str], then: frozenset[str]) -> frozenset[str]:
    """Each text of the one before each of the other; empty when that are too many."""
    if len(first) * len(then) > _MOST:
        return frozenset()
    return frozenset(text + more for text in first for more in then)


def _joined(items: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """The items by the name of their kind, single characters next to one another as one text."""
    text = ""
    for op, value in items:
        if op is _LITERAL and _caseless(value):
            text += chr(value)
            continue
        if text:
            yield "TEXT", text.lower()
            text = ""
        yield op.name, value
    if text:
        yield "TEXT", text.lower()


def _begins(op: str, value: Any) -> frozenset[str]:
    """The possible beginnings of a group or a choice; the parser takes a common first letter out of a choice."""
    if op == "SUBPATTERN":
        return _runs(value[3])[0]
    if op == "BRANCH":
        return frozenset().union(*(_runs(branch)[0] for branch in value[1]))
    return frozenset()


def _texts(op: str, value: Any) -> frozenset[str]:
    """The possible texts of one item, if there are only a few; empty for others."""
    if op == "TEXT":
        return frozenset({value})
    if op in ("AT", "ASSERT_NOT"):
        return _EMPTY
    if op == "IN" and all(kind is _LITERAL and _caseless(letter) for kind, letter in value):
        return frozenset(chr(letter).lower() for _, letter in value)
    if op in ("SUBPATTERN", "BRANCH"):
        parts = [_whole(branch) for branch in (value[1] if op == "BRANCH" else value[3:])]
        return frozenset().union(*parts) if all(parts) else frozenset()
    if op == "MAX_REPEAT" and value[:2] == (0, 1):
        inner = _whole(value[2])
        return inner | _EMPTY if inner else inner
    return frozenset()


def _whole(items: Iterable[Any]) -> frozenset[str]:
    """The possible texts of a whole sequence, if there are only a few."""
    found = _EMPTY
    for op, value in _joined(items):
        found = _product(found, _texts(op, value))
        if not found:
            break
    return found


def _caseless(letter: int) -> bool:
    """True if the matcher can fold its case byte by byte, or need not."""
    return letter < 128 or chr(letter).lower() == chr(letter).upper()


def _inside(op: str, value: Any, least: int) -> frozenset[str]:
    """The required words of groups, alternatives and repeats that must occur."""
    if op == "SUBPATTERN":
        return _best(value[3], least)
    if op == "BRANCH":
        parts = [_best(branch, least) for branch in value[1]]
        return frozenset().union(*parts) if all(parts) else frozenset()
    if op in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        return _best(value[2], least) if value[0] > 0 else frozenset()
    if op == "ASSERT":
        return _best(value[1], least)
    return _best(value, least) if op == "ATOMIC_GROUP" else frozenset()


@cache
def digit_blind(pattern: str) -> bool:
    """True if neither digits nor their case matter to the pattern: lines of one shape are then alike."""
    return all(map(is_blind, _parser.parse(lenient(pattern), re.IGNORECASE)))


def is_blind(item: Any) -> bool:
    """True if neither digits nor their case matter to a part of a parsed expression."""
    op, value = str(item[0]), item[1]
    if op in ("LITERAL", "NOT_LITERAL"):
        return not 48 <= value < 58
    if op == "RANGE":
        return value == (48, 57) or bool(value[1] < 48 or value[0] > 57)
    if op.startswith("GROUPREF") or (op == "SUBPATTERN" and value[2]):  # the second: a part that looks at case
        return False
    if op == "IN":
        return all(map(is_blind, value))
    if op == "BRANCH":
        return all(is_blind(one) for branch in value[1] for one in branch)
    at = _SEQUENCES.get(op)
    return all(map(is_blind, value if op == "ATOMIC_GROUP" else value[at] if at is not None else ()))
