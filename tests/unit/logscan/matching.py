"""Texts that an expression matches, made from what the expression is made of."""

import random
import re
from collections.abc import Callable, Iterable
from re import _parser  # type: ignore[attr-defined]
from typing import Any

_LETTERS = {"DIGIT": "0123456789", "SPACE": " \t", "WORD": "abcXYZ_059"}
_ANY = "aZ 5: -é"
_MORE = 3  # times beyond the least that something is repeated


def matching(pattern: re.Pattern[str], dice: random.Random) -> str:
    """A matching text, '' if none was found: some attempts fail, since excluded places are not inspected."""
    parsed = _parser.parse(pattern.pattern)
    made = (_joined(parsed, dice, {}) for _ in range(100))
    return next((text for one in made for text in (one.upper(), one) if pattern.search(text)), "")


def _joined(items: Iterable[Any], dice: random.Random, groups: dict[int, str]) -> str:
    return "".join(_MADE[op.name](value, dice, groups) for op, value in items)


def _group(value: Any, dice: random.Random, groups: dict[int, str]) -> str:
    text = _joined(value[3], dice, groups)
    groups[value[0]] = text
    return text


def _repeated(value: Any, dice: random.Random, groups: dict[int, str]) -> str:
    least, most, items = value
    times = dice.randint(least, min(int(most), least + _MORE))
    return "".join(_joined(items, dice, groups) for _ in range(times))


def _one_of(value: Any, dice: random.Random, groups: dict[int, str]) -> str:
    if value[0][0].name == "NEGATE":
        not_those = "".join(_letters(op.name, what) for op, what in value[1:])
        return dice.choice([letter for letter in _ANY + "%~" if letter not in not_those])
    return dice.choice("".join(_letters(op.name, what) for op, what in value))


def _letters(kind: str, what: Any) -> str:
    if kind == "LITERAL":
        return chr(what)
    if kind == "RANGE":
        return "".join(map(chr, range(what[0], what[1] + 1)))
    name = what.name.removeprefix("CATEGORY_")
    return _LETTERS[name] if name in _LETTERS else "".join(set("a-:%~ 5") - set(_LETTERS[name.removeprefix("NOT_")]))


_MADE: dict[str, Callable[[Any, random.Random, dict[int, str]], str]] = {
    "LITERAL": lambda value, dice, groups: chr(value),
    "NOT_LITERAL": lambda value, dice, groups: dice.choice([one for one in _ANY if one != chr(value)]),
    "ANY": lambda value, dice, groups: dice.choice(_ANY),
    "IN": _one_of,
    "BRANCH": lambda value, dice, groups: _joined(dice.choice(value[1]), dice, groups),
    "SUBPATTERN": _group,
    "ATOMIC_GROUP": _joined,
    "GROUPREF": lambda value, dice, groups: groups[value],
    "MAX_REPEAT": _repeated,
    "MIN_REPEAT": _repeated,
    "POSSESSIVE_REPEAT": _repeated,
    "ASSERT": lambda value, dice, groups: _joined(value[1], dice, groups),
    "ASSERT_NOT": lambda value, dice, groups: "",
    "AT": lambda value, dice, groups: "",
}
