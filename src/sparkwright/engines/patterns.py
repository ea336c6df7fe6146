"""Patterns that somebody else wrote, made safe to run over log lines: bounded repeats, no nest of repeats."""

import re
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

from sparkwright.logscan.book import linear

_REPEATS = frozenset({_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT})
_LOOKS = frozenset({_constants.ASSERT, _constants.ASSERT_NOT})
_MOST_CHARS = 1000
# Ways in which one start of a match can be divided among the pattern's repeats.
_MOST_WAYS = 1_000_000
_DIGIT_WAYS = 1


def safe_pattern(text: str) -> re.Pattern[str]:
    """The pattern with a bound for every open repeat. Raises ValueError for one whose cost explodes on a hostile line.

    A repeat inside a repeat, a back reference, and repeats that together divide a line in over a million ways.
    """
    if len(text) > _MOST_CHARS:
        raise ValueError(f"a pattern of {len(text)} characters; allowed: {_MOST_CHARS}")
    bounded = linear(text) if not text.startswith("^") else f"^{linear(text[1:])}"
    try:
        tree = _parser.parse(bounded)
        compiled = re.compile(bounded)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"no pattern: {error}") from None
    if _ways(tree) > _MOST_WAYS:
        raise ValueError("it backtracks: bound its repeats, as in `.{0,60}` for `.*`")
    return compiled


def _ways(tree: Any, inside: bool = False) -> int:
    """Ways to divide a text among the repeats of a pattern. Raises ValueError for a nest of repeats."""
    ways = 1
    for op, value in tree:
        if op in _REPEATS:
            least, most, body = value
            varies = most > 1 and most != least
            if varies and inside:
                raise ValueError("it backtracks: a repeat stands inside a repeat; write one of them without")
            # Digits end where the number ends: hardly any other way to divide them.
            most = min(int(most), int(least) + _DIGIT_WAYS) if "CATEGORY_DIGIT" in str(body) else int(most)
            ways *= (most - int(least) + 1) * _ways(body, inside or varies)
        elif op is _constants.SUBPATTERN:
            ways *= _ways(value[3], inside)
        elif op is _constants.BRANCH:
            ways *= sum(_ways(branch, inside) for branch in value[1])
        elif op in _LOOKS:
            ways *= _ways(value[1], inside)
        elif op in (_constants.GROUPREF, _constants.GROUPREF_EXISTS):
            raise ValueError("it refers back to a group; write the text again")
    return ways
