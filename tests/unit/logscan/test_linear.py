"""No line of a log, however it was written, costs more than linear time."""

import re
from collections.abc import Iterator
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

import pytest

from sparkwright.causes.diagnose import log_book
from sparkwright.logscan.book import RUN, linear

PATTERNS = [pattern.text for pattern in log_book().patterns]
REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")


def inner_sequences(op: str, value: Any) -> list[Any]:
    """The sequences that an item holds."""
    if op in REPEATS:
        return [value[2]]
    if op == "BRANCH":
        return list(value[1])
    at = {"SUBPATTERN": 3, "ASSERT": 1, "ASSERT_NOT": 1}.get(op)
    return [value] if op == "ATOMIC_GROUP" else [value[at]] if at is not None else []


def repeats(items: Any) -> Iterator[int]:
    """The most that each repeat takes."""
    for op, value in items:
        if op.name in REPEATS:
            yield int(value[1])
        for sequence in inner_sequences(op.name, value):
            yield from repeats(sequence)


def begins(items: Any) -> Iterator[int]:
    """The most that a repeat takes with which a match may begin at any place."""
    for op, value in items:
        if op.name in REPEATS:
            yield int(value[1])
            if value[0]:
                return
        elif op.name in ("BRANCH", "SUBPATTERN", "ATOMIC_GROUP"):
            for sequence in inner_sequences(op.name, value):
                yield from begins(sequence)
            return
        else:  # a letter, an anchor, a look behind: not every place is a beginning
            return


@pytest.mark.full
def test_no_repeat_is_open() -> None:
    """Guards against `word.*` from each of many words to the line's end; only what begins with the line may do so."""
    compiled = {text: _parser.parse(linear(text), re.IGNORECASE) for text in PATTERNS}
    most = {text: max(repeats(tree), default=0) for text, tree in compiled.items() if not text.startswith("^")}
    assert [text for text, found in most.items() if found == _constants.MAXREPEAT] == []


@pytest.mark.full
def test_no_pattern_begins_with_a_run() -> None:
    """Guards against `\\d+ requests` on a line of digits: a run that is tried from each of its letters."""
    trees = {text: _parser.parse(linear(text), re.IGNORECASE) for text in PATTERNS}
    assert [text for text, tree in trees.items() if any(most >= RUN for most in begins(tree))] == []


@pytest.mark.parametrize(
    ("text", "bounded"),
    [
        (r"a+b*?c{2,}[+*]\+\*", r"a{1,300}b{0,300}?c{2,300}[+*]\+\*"),
        (r"[^]*]+(?:x|y)*+", r"[^]*]{1,300}(?:x|y){0,300}+"),
        (r"^.*x", r"^.*x"),
        (r"a{2,3}\[b+\]{1,}", r"a{2,3}\[b{1,300}\]{1,300}"),
    ],
)
def test_bounds_are_put_where_repeats_are(text: str, bounded: str) -> None:
    """Guards brackets, escapes and lazy repeats."""
    assert linear(text) == bounded
