"""Searching a recipe's variants for those that fit, with few questions: each costs a whole ledger.

Pure search: how memory is counted is the judge's business, a function of a recipe and of what is done on the nodes.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from sparkwright.domain.ledger import Lack
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.speed import Load, Speed
from sparkwright.domain.units import GIB
from sparkwright.domain.verdict import Action, Variant, Verdict
from sparkwright.planner.variants import changed


class Judge(Protocol):
    """Who knows the nodes. Judging the same twice gives the same."""

    def verdict(self, recipe: Recipe, actions: Sequence[Action] = ()) -> Verdict:
        """Whether it fits once the actions are done."""
        ...

    def speed(self, recipe: Recipe, load: Load) -> Speed | None:
        """How fast it will be; None when nothing tells it."""
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
