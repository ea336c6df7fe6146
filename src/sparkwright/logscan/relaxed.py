"""Expressions with every digit for any: a line that these do not match is not matched with other numbers either."""

import re
from collections.abc import Iterable, Iterator
from functools import cache

# The standard library's own parser and compiler of expressions: nothing public takes an expression that was changed.
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]
from typing import Any

from sparkwright.logscan.literals import is_blind

_DIGITS = (_constants.RANGE, (48, 57))
_INSIDE = {"SUBPATTERN": 3, "MAX_REPEAT": 2, "MIN_REPEAT": 2, "ASSERT": 1}  # where it has what it holds
_ANY = (
    _constants.IN,
    [(_constants.CATEGORY, one) for one in (_constants.CATEGORY_SPACE, _constants.CATEGORY_NOT_SPACE)],
)


class _FixedError(Exception):
    """The expression has a part of which no wider one is known."""


@cache
def relaxed(pattern: str) -> tuple[re.Pattern[str], int] | None:
    """An expression that digits do not matter to, and that matches wherever the pattern does, and how many characters
    before a match it looks at; None if none is known."""
    tree = _parser.parse(pattern, re.IGNORECASE)
    try:
        found: re.Pattern[str] = _compiler.compile(_wider(tree), re.IGNORECASE)
    except _FixedError:
        return None
    return found, max(_behind(tree), default=1)


def _behind(tree: Any) -> Iterator[int]:
    """The characters that each part looks back at: those of lookbehinds, one for the bound of a word."""
    for op, value in tree:
        if str(op) in ("ASSERT", "ASSERT_NOT") and value[0] < 0:
            yield 1 + value[1].getwidth()[1]
        for inner in _inner(value):
            yield from _behind(inner)


def _inner(value: Any) -> Iterator[Any]:
    if isinstance(value, _parser.SubPattern):
        yield value
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _inner(one)


def _wider(tree: Any) -> Any:
    items = (item if is_blind(item) else _item(*item) for item in tree)
    return _parser.SubPattern(tree.state, [item for item in items if item is not None])


def _item(op: Any, value: Any) -> Any:
    """The item with each digit for any; None for a condition that is left out."""
    name = str(op)
    if name in ("LITERAL", "NOT_LITERAL"):
        return (_constants.IN, [_DIGITS]) if name == "LITERAL" else _ANY
    if name == "ASSERT_NOT":
        return None
    if name == "IN":
        return op, _set(value)
    if name == "BRANCH":
        return op, (value[0], [_wider(branch) for branch in value[1]])
    at = _INSIDE.get(name)
    if at is None or (name == "SUBPATTERN" and (value[1] or value[2])):
        raise _FixedError
    return op, (*value[:at], _wider(value[at]))


def _set(items: Iterable[Any]) -> list[Any]:
    """A set with all digits; of one that excludes, what is left when it excludes none."""
    listed = list(items)
    if str(listed[0][0]) == "NEGATE":
        kept = [item for item in listed if is_blind(item)]
        return kept if len(kept) > 1 else list(_ANY[1])
    return [*listed, _DIGITS]
