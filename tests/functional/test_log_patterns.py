"""Hostile lines against all patterns of logs: twice the line is not four times the work."""

import re
import time
from re import _constants, _parser  # type: ignore[attr-defined]
from statistics import median
from typing import Any

import pytest

from sparkwright.causes.candidates import line_pattern, mechanisms
from sparkwright.causes.diagnose import log_book
from sparkwright.causes.fallback import kind_patterns
from sparkwright.logscan.book import linear

pytestmark = pytest.mark.full

FILLS = ("1", "1 ", " ", "a", "a ", "1.", "x/", "-", "=", ":", "12 out of ", "ERROR ", "--a", "lib", "'\"", "\t")
REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
# Seconds of one search from which on its growth is looked at: below it nothing is to be feared.
WORTH = 0.001
ROUNDS = (5, 40)  # pairs measured; most patterns need the first few only


def samples(items: Any) -> str:
    """The beginning of a match, as far as it has letters: the look of required words."""
    text = ""
    for op, value in items:
        if op is _constants.LITERAL:
            text += chr(value)
        elif op.name in REPEATS and value[0]:
            text += samples(value[2])
        elif op.name == "SUBPATTERN":
            text += samples(value[3])
        elif op.name == "BRANCH":
            text += samples(value[1][0])
        elif op.name == "IN":
            text += "1" if "DIGIT" in str(value) else "a"
    return text


def seconds(pattern: re.Pattern[str], text: str) -> float:
    began = time.thread_time()
    pattern.search(text)
    return time.thread_time() - began


def grows_steeply(pattern: re.Pattern[str], line: str) -> bool:
    """True if twice the line costs over three times as much, in the median of pairs measured one after the other."""
    half = line[: len(line) // 2]
    ratios: list[float] = []
    for pairs in ROUNDS:
        ratios += [seconds(pattern, line) / seconds(pattern, half) for _ in range(pairs)]
        if median(ratios) <= 3:
            return False
    return True


def test_a_quadratic_pattern_is_steep_and_a_linear_one_is_not() -> None:
    """The measure itself."""
    assert grows_steeply(re.compile("a.*b.*c"), "a" * 8000)
    assert not grows_steeply(re.compile("a.{0,300}b.{0,300}c"), "a" * 8000)


@pytest.mark.full
@pytest.mark.parametrize("fills", [pytest.param((), id="own"), pytest.param(FILLS, marks=pytest.mark.full, id="any")])
def test_twice_the_line_is_not_four_times_the_work(fills: tuple[str, ...]) -> None:
    """Guards against what nobody thought of: fills and beginnings of matches, again and again, against all patterns.

    Growth alone counts: a busy machine makes single pairs look steep, a quadratic pattern most of them.
    """
    steep = []
    for text in (pattern.text for pattern in log_book().patterns):
        pattern = re.compile(linear(text), re.IGNORECASE)
        own = samples(_parser.parse(text, re.IGNORECASE))
        for fill in fills or (own[:-1], f"{own[:-1]} ", f"{own[: len(own) // 2]} "):
            line = (fill or "x") * (8000 // len(fill or "x"))
            if seconds(pattern, line[:2000]) > WORTH and grows_steeply(pattern, line):
                steep.append((text, fill))
    assert steep == []


def test_no_mechanism_of_a_line_is_quadratic() -> None:
    """Guards the patterns that explain a line, the forms of lines and the conditions of causes, with the same fills."""
    starts = (line_pattern(name).pattern for name in ("prefix", "exception"))  # matched at the beginning of a line only
    forms = [*(re.compile(rf"\A(?:{text})") for text in starts)]
    forms += [line_pattern(name) for name in ("fatal", "said", "level", "bad", "follows", "goes_on")]
    every = [*forms, line_pattern("continues"), *kind_patterns()]
    texts = [text for one in mechanisms() for text in (*one.patterns, *(row.get("when", "") for row in one.causes))]
    every += [re.compile(linear(text)) for text in texts]
    steep = []
    for pattern in every:
        for fill in (*FILLS, "[", "(", "a.", "A", "aA", "a: ", '"', "{"):
            line = fill * (8000 // len(fill))
            if seconds(pattern, line[:2000]) > WORTH and grows_steeply(pattern, line):
                steep.append((pattern.pattern, fill))
    assert steep == []
