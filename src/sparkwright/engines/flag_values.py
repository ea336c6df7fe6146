"""One option of an engine, and what is wrong with the words given to it."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.values import dataclass, field

# vLLM: 1k is 1,000, 1K is 1,024. SGLang: 25.6k, and 1Ki for 1,024.
_HUMAN = {
    "human-int": re.compile(r"\d+(?:\.\d+)?[kKmMgGtT]?$|-1$|auto$"),
    "si-int": re.compile(r"-?\d+$|\d+(?:\.\d+)?[kMGT]$|\d+[KMGT]i$"),
}
_FITS: Mapping[str, Callable[[str], object]] = {"int": int, "number": float, "float": float}
_BOUNDS: Mapping[str, tuple[str, Callable[[float, float], bool]]] = {
    "ge": ("at least", lambda a, b: a >= b),
    "gt": ("above", lambda a, b: a > b),
    "le": ("at most", lambda a, b: a <= b),
    "lt": ("below", lambda a, b: a < b),
}
# What people write for a name that looks like another one: mxfp4 is another format.
_MEANT = {"nvfp4": "modelopt_fp4"}


@dataclass(frozen=True, slots=True)
class Option:
    """kind: flag, bool (has `--no-`), value, list, json, append (one word, repeatable), maybe (flag or value).

    choices: the only values; known: built-in names that plugins may add to; limits: ge, gt, le, lt.
    keys: of a JSON option, with the values that a key is limited to. folded: case and dashes of the value are ignored.
    deprecated: the engine's words; replaced_by: what to write instead; refused: the engine stops when it is given.
    """

    name: str
    kind: str
    type: str = "str"
    choices: tuple[Any, ...] = ()
    known: tuple[Any, ...] = ()
    aliases: tuple[str, ...] = ()
    negatives: tuple[str, ...] = ()
    deprecated: str = ""
    replaced_by: str = ""
    refused: bool = False
    folded: bool = False
    limits: Mapping[str, float] = field(default_factory=dict)
    keys: Mapping[str, list[Any] | None] = field(default_factory=dict)

    @property
    def negations(self) -> tuple[str, ...]:
        return self.negatives or ((f"--no-{self.name}",) if self.kind == "bool" else ())

    def allowed(self, key: str) -> Sequence[Any]:
        """The values of the option, or of one key of a JSON option, as far as they are listed."""
        return (self.keys.get(key) or ()) if key else (*self.choices, *self.known)

    @property
    def spellings(self) -> tuple[str, ...]:
        own = self.name if self.name.startswith("-") else f"--{self.name}"
        return (own, *self.aliases, *self.negations)


@dataclass(frozen=True, slots=True)
class FlagProblem:
    """value: the one that is not among those allowed; key: of a JSON option, where the problem is."""

    code: str
    what: str
    remedy: str = ""
    key: str = ""
    value: str = ""


def problems(option: Option, key: str, values: Sequence[str]) -> tuple[FlagProblem, ...]:
    """key: what follows a dot (`--speculative-config.method`). values: the words up to the next option."""
    if key:
        return tuple(_json_entry(option, key.split(".")[0], values[0] if values else "", nested="." in key))
    if option.kind in ("flag", "bool"):
        return (
            (FlagProblem("ENG003", f"takes no value, but {values[0]!r} follows", "remove the value"),) if values else ()
        )
    if option.kind == "maybe":
        return ()
    if not values:
        return (FlagProblem("ENG003", "needs a value", f"write --{option.name} {_example(option)}"),)
    if option.kind == "json":
        return tuple(_json(option, values[0]))
    wanted = values if option.kind == "list" else values[:1]
    extra = () if option.kind == "list" else _extra(values[1:2])
    return (*(found for value in wanted for found in _value(option, value)), *extra)


def _extra(values: Sequence[str]) -> tuple[FlagProblem, ...]:
    return tuple(FlagProblem("ENG003", f"takes one value; {v!r} is too much", "quote it, or remove it") for v in values)


def _value(option: Option, value: str) -> Iterator[FlagProblem]:
    if not _fits(option.type, value):
        yield FlagProblem(
            "ENG003", f"takes {_kind_name(option.type)}, not {value!r}", f"as in --{option.name} {_example(option)}"
        )
        return
    # Enforced choices, or the names that are built in
    if option.choices and not _is_one_of(value, option.choices, option.folded) and value != "None":
        yield FlagProblem("ENG002", f"does not take {value!r}", _allowed(value, option.choices), value=value)
    if option.known and not _is_one_of(value, option.known, folded=True):
        yield FlagProblem("ENG009", f"has no built-in {value!r}", _allowed(value, option.known))
    for name, limit in option.limits.items():
        words, holds = _BOUNDS[name]
        if _is_number(value) and not holds(float(value), limit):
            yield FlagProblem("ENG003", f"must be {words} {limit:g}, not {value}", f"choose a value {words} {limit:g}")


def _is_one_of(value: str, names: Sequence[Any], folded: bool) -> bool:
    if folded:
        return value.lower().replace("-", "_") in {str(n).lower().replace("-", "_") for n in names}
    return value in {str(n) for n in names}


def _allowed(value: str, names: Sequence[Any]) -> str:
    meant = [_MEANT[value.lower()]] if _MEANT.get(value.lower()) in names else []
    near = meant or get_close_matches(value.lower(), [str(n) for n in names], 1, 0.6)
    listed = ", ".join(str(n) for n in names)
    return f"did you mean {near[0]}? allowed: {listed}" if near else f"allowed: {listed}"


def _json(option: Option, text: str) -> Iterator[FlagProblem]:
    try:
        found = read_json(text)
    except ValueError as error:
        yield FlagProblem("ENG003", f"takes JSON: {error}", "check quotes and brackets")
        return
    for key, value in found.items() if isinstance(found, dict) else ():
        yield from _json_entry(option, key, value, nested=isinstance(value, dict))


def _json_entry(option: Option, key: str, value: object, nested: bool) -> Iterator[FlagProblem]:
    if option.kind not in ("json", "value"):
        yield FlagProblem("ENG003", f"has no key {key!r}: it is no JSON option", f"write --{option.name}")
    elif option.keys and key not in option.keys:
        yield FlagProblem("ENG004", f"has no key {key!r}", _allowed(key, list(option.keys)), key)
    elif not nested and (limited := option.keys.get(key)) and value is not None and value not in limited:
        yield FlagProblem(
            "ENG002", f"does not take {value!r} for {key}", _allowed(str(value), limited), key, str(value)
        )


def _fits(kind: str, value: str) -> bool:
    if kind in _HUMAN:
        return bool(_HUMAN[kind].match(value))
    try:
        _FITS.get(kind, str)(value)
    except ValueError:
        return value == "None"
    return True


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _kind_name(kind: str) -> str:
    names = {"int": "a whole number", "float": "a number", "number": "a number"}
    return names.get(kind, "a number such as 8192 or 8k" if kind in _HUMAN else "text")


def _example(option: Option) -> str:
    examples = {"int": "8", "float": "0.8", "human-int": "8192", "si-int": "8192", "number": "8"}
    return str(option.choices[0]) if option.choices else examples.get(option.type, "VALUE")
