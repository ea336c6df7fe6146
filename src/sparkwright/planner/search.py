"""Searching a recipe's variants for those that fit, with few questions: each costs a whole ledger.

Pure search: how memory is counted is the judge's business, a function of a recipe and of what is done on the nodes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

from sparkwright.domain.ledger import Lack
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import GIB
from sparkwright.domain.verdict import Action, Load, Speed, Variant, Verdict

_SIZES = ("serving.kv_cache_bytes", "model.size")
_OWN = ("model", "engine", "parallelism", "serving", "speculation", "parsers")


def changed(recipe: Recipe, variant: Variant) -> Recipe:
    """Keys are those of a recipe file; a key of `flags` is an option's name, however the recipe spells it."""
    for key, value in variant.changes:
        section, _, name = key.partition(".")
        if section == "flags":
            kept = {n: v for n, v in recipe.flags.items() if n.lstrip("-").replace("_", "-") != name}
            recipe = replace(recipe, flags=kept if value is None else {**kept, name: value})
        elif section in _OWN and name:
            recipe = replace(recipe, **{section: replace(getattr(recipe, section), **{name: value})})
        else:
            recipe = replace(recipe, **{section: value})
    return recipe


def written(variant: Variant) -> str:
    """In one line: the commands first, each with its nodes, then the keys: `serving.context: 131072, nodes: 4`."""
    nodes: dict[str, list[str]] = {}
    for action in variant.actions:
        nodes.setdefault(action.command, []).append("" if action.deployment else action.node)
    done = [command + (f"   # on {' and '.join(names)}" if all(names) else "") for command, names in nodes.items()]
    keys = ", ".join(f"{key}: {scalar(key, value)}" for key, value in variant.keys.items())
    return "; and ".join([*done, *([keys] if keys else [])])


def yaml_lines(variant: Variant) -> Iterator[str]:
    """The changed keys as written in a recipe, ready to paste; sections in the order of their first key."""
    sections: dict[str, dict[str, Any]] = {}
    for key, value in variant.keys.items():
        section, _, name = key.partition(".")
        sections.setdefault(section, {})[name] = value
    for section, values in sections.items():
        if "" in values:
            yield f"{section}: {scalar(section, values[''])}"
            continue
        yield f"{section}:"
        yield from (f"  {name}: {scalar(f'{section}.{name}', value)}" for name, value in values.items())


def scalar(key: str, value: Any) -> str:
    """As YAML writes it; sizes that are whole GiB as such, what is taken away as null."""
    if value is None or value == "":
        return "null"
    if key in _SIZES and value and value % GIB == 0:
        return f"{value // GIB} GiB"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


class Judge(Protocol):
    """Who knows the nodes. Judging the same twice gives the same."""

    def verdict(self, recipe: Recipe, actions: Sequence[Action] = ()) -> Verdict:
        """Whether it fits once the actions are done."""
        ...

    def speed(self, recipe: Recipe, load: Load) -> Speed | None:
        """How fast it will be; None when it is not known."""
        ...


class Tries:
    """Variants of one recipe and what is judged of them: each is asked once, and no more than `budget` in all.

    The recipe as it is is judged as the gate does it, which lets pass what has been seen to start. What is proposed
    instead has to leave something free in the middle of what is expected.
    """

    def __init__(self, recipe: Recipe, judge: Judge, budget: int) -> None:
        self.recipe = recipe
        self._judge, self._budget = judge, budget
        self._seen: dict[str, Verdict] = {}

    def __call__(self, variant: Variant) -> Verdict:
        """Once the budget is spent nothing new fits."""
        key = f"{sorted(variant.keys.items())}{variant.actions}"
        if key not in self._seen and self.spent:
            return _NOT_ASKED
        if key not in self._seen:
            found = self._judge.verdict(changed(self.recipe, variant), variant.actions)
            self._seen[key] = _surely(found) if variant != Variant() else found
        return self._seen[key]

    @property
    def asked(self) -> int:
        return len(self._seen)

    @property
    def spent(self) -> bool:
        return self.asked >= self._budget


_NOT_ASKED = Verdict(False, known=False)
# As little as two GB10 nodes have been reported to serve with: fraction 0.85 left 1 GB a node (recipes/schema.py).
SPARE = GIB


def _surely(found: Verdict) -> Verdict:
    if found.lack not in (None, Lack.CONTEXT) or found.room >= SPARE:
        return found
    return replace(found, fits=False, lack=Lack.NODE, short=max(found.short, SPARE - found.room))


def first(count: int, good: Callable[[int], bool]) -> int | None:
    """The smallest of 0..count-1 that is good, where all after a good one are good, too; None when none is.

    The last is asked first: most things that do not help do not help at their most either.
    """
    if count < 1 or not good(count - 1):
        return None
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if good(middle) else (middle + 1, high)
    return high
