"""One text for all ranks: what is the same is written out, what differs becomes a variable with a value a rank."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# Variables that many compose files call so; an endpoint of the same name must not be hit.
PLAIN = {"node-rank": "NODE_RANK", "headless": "HEADLESS", "master-addr": "MASTER_ADDR"}
Unit = tuple[str, ...]
Flag = tuple[str, int]
_PROGRAM: Flag = ("", 0)


@dataclass(frozen=True, slots=True)
class Varied:
    """text: words quoted for a shell, with `${NAME}`. values[rank]: NAME -> quoted words (may be empty)."""

    text: str
    values: tuple[Mapping[str, str], ...]


def vary(commands: Sequence[Sequence[str]]) -> Varied | None:
    """The ranks' command lines as one; None where they cannot be: other programs, or the same flags in another order.

    Nor where a value holds a quote: Compose's versions read such a line of .env differently.
    """
    ranks = [_units(words) for words in commands]
    order = _order(ranks)
    if order is None or any(rank[_PROGRAM] != ranks[0][_PROGRAM] for rank in ranks):
        return None
    values = [dict[str, str]() for _ in ranks]
    texts = [_one(flag[0], [rank.get(flag) for rank in ranks], values) for flag in order]
    if any("'" in value for own in values for value in own.values()):
        return None
    return Varied(" ".join(text for text in texts if text), tuple(values))


def _units(words: Sequence[str]) -> dict[Flag, Unit]:
    """`--flag value...` by flag and its how-manieth time; the words before the first flag under ''."""
    found: dict[Flag, list[str]] = {_PROGRAM: []}
    current = _PROGRAM
    for word in words:
        if word.startswith("-") and len(word) > 1:
            current = (word, sum(flag == word for flag, _ in found))
            found[current] = []
        found[current].append(word)
    return {flag: tuple(unit) for flag, unit in found.items()}


def _order(ranks: Sequence[Mapping[Flag, Unit]]) -> list[Flag] | None:
    """All flags in an order that keeps each rank's own; None where two ranks contradict each other."""
    merged: list[Flag] = []
    for rank in ranks:
        at = 0
        for flag in rank:
            if flag not in merged:
                merged.insert(at, flag)
            at = merged.index(flag) + 1
    for rank in ranks:
        if [flag for flag in merged if flag in rank] != list(rank):
            return None
    return merged


def _one(flag: str, mine: Sequence[Unit | None], values: list[dict[str, str]]) -> str:
    """One flag as text; where ranks differ (or everybody's files have a variable), the values are filled in."""
    first, plain = mine[0], PLAIN.get(flag.lstrip("-"))
    if first is not None and all(unit == first for unit in mine) and not (plain and len(first) == 2):
        return shlex.join(first)
    name = plain or "ARG_" + re.sub(r"\W", "_", flag.lstrip("-").upper())
    while name in values[0]:
        name += "_"
    valued = all(unit is not None and len(unit) == 2 for unit in mine)
    for unit, own in zip(mine, values, strict=True):
        own[name] = shlex.join((unit or ())[1:] if valued else unit or ())
    return f"{shlex.quote(flag)} ${{{name}}}" if valued else f"${{{name}}}"


def common(environments: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """What all ranks set to the same value, in the first one's order."""
    first, *others = environments
    return {k: v for k, v in first.items() if all(k in other and other[k] == v for other in others)}


def own(environment: Mapping[str, str], shared: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in environment.items() if k not in shared}
