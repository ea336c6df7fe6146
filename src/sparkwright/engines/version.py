"""Versions of engines: which of two is the newer, whether one is in a range, which a recipe names."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sparkwright.domain.recipe import Recipe

_FINAL, _STAGES = 0, {"dev": -4, "a": -3, "b": -2, "rc": -1, "post": 1}
_VERSION = re.compile(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:[.-]?(dev|rc|a|b|post)(\d*))?")
_BOUND = re.compile(r"(<=|>=|<|>|==)\s*([\w.]+)$")
_NUMBER = re.compile(r"[0-9]+", re.ASCII)
Key = tuple[int, ...]


@lru_cache(maxsize=512)  # tables of releases ask for the same few thousands of times
def version_key(engine: str, version: str) -> Key:
    """The key to compare versions: (major, minor, patch, stage, number); () for anything but a version.

    llama.cpp counts builds: `b10269`, and 2026.10.11549 of the wheel that carries build 11549.
    """
    if engine == "llama-cpp":
        numbers = re.findall(r"\d+", version)
        return (int(numbers[-1]),) if numbers else ()
    match = _VERSION.match(version)
    if not match:
        return ()
    stage = _STAGES.get(match[4] or "", _FINAL)
    return (int(match[1]), int(match[2] or 0), int(match[3] or 0), stage, int(match[5] or 0))


def bounds(wanted: str) -> tuple[tuple[str, str], ...]:
    """`>=0.5.10,<0.5.13` as (operator, version) pairs; '' has none. Raises ValueError on anything else."""
    matches = [_BOUND.match(part.strip()) for part in wanted.split(",")] if wanted else []
    if not all(matches):
        raise ValueError(f"{wanted!r} is no range; write it as in `>=0.5.10,<0.5.13`")
    return tuple((match[1], match[2]) for match in matches if match)


@lru_cache(maxsize=1024)
def within(engine: str, version: str, wanted: str) -> bool:
    """True if the version keeps every bound of the range. Anything but a version is only in the range ''."""
    key = version_key(engine, version)
    return all(key and _holds(sign, key, version_key(engine, bound)) for sign, bound in bounds(wanted))


def _holds(sign: str, key: Key, bound: Key) -> bool:
    return {"<": key < bound, "<=": key <= bound, ">": key > bound, ">=": key >= bound, "==": key == bound}[sign]


def version(recipe: Recipe) -> tuple[int, ...]:
    """`0.21.1rc1` -> (0, 21, 1); () for text without numbers: then it counts as newer than all."""
    return _numbers(recipe.engine.version)


@lru_cache(maxsize=512)
def _numbers(version: str) -> tuple[int, ...]:
    core = version.split("+")[0].split("rc")[0].split(".dev")[0]
    return tuple(int(part) for part in _NUMBER.findall(core)[:3])


def is_since(recipe: Recipe, *wanted: int) -> bool:
    """True if the engine is that version or newer; an unreadable version counts as new."""
    return not (own := version(recipe)) or own >= wanted
