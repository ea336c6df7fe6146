"""The planner on the rows whose source, or whose model, had no part in fitting its levels and the width of its ranges.

Its constants are rates and reserves: a change of one moves a quantity's level, alone or on several nodes, and a change
of its spread the width of the ranges. Both are fitted again here to the rows of all other sources (models), each with
the same weight: the level as the median of errors, the width so that nine of ten rows are inside. Then the rows that
were left out are compared.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from planner_report_answers import PlannerAnswer
from planner_report_dates import source
from planner_report_memory import POOL
from planner_report_rows import PlannerCase
from planner_report_speed import CALIBRATED

# Of these nothing was fitted to measurements: dimensions and the engines' code decide, and the range is of what a row
# does not state. The reader of rows and the choice of what is modelled were made with all rows in view all the same.
RULES = frozenset({"kv_tokens_given_gib", "kv_tokens_unknown_draft"})
_INSIDE = 0.9
_SEEN = 10  # folds of which one may be outside
_FEWEST = 3  # rows of others, below which nothing is fitted


@dataclass(frozen=True, slots=True)
class _Miss:
    """level: published less predicted. off: how many times the range's own half that is, on its side."""

    row: str
    fold: str
    level: float
    off: float


def by_source(case: PlannerCase) -> str:
    return source(case.row)


def by_model(case: PlannerCase) -> str:
    return case.model or str(case.row.get("model"))


def left_out(
    cases: Sequence[PlannerCase], answers: Sequence[PlannerAnswer], fold: Callable[[PlannerCase], str]
) -> list[PlannerAnswer]:
    """The answers as they would be if the rows of the same fold had not been there; `fits` has no level of its own."""
    folds = {case.id: fold(case) for case in cases}
    several = {case.id: case.recipe.nodes > 1 for case in cases}
    groups: dict[tuple[str, bool], list[PlannerAnswer]] = defaultdict(list)
    for answer in answers:
        if answer.predicted and not isinstance(answer.published, bool) and answer.published > 0:
            groups[answer.quantity, several[answer.id]].append(answer)
    found: dict[str, list[list[PlannerAnswer]]] = defaultdict(list)
    for (quantity, _), group in groups.items():
        found[quantity].append(group)
    return [again for group in found.values() for again in _again(group, folds)]


def _again(groups: Sequence[Sequence[PlannerAnswer]], folds: Mapping[str, str]) -> list[PlannerAnswer]:
    """groups: of one quantity, each with a level of its own; the width is of all of them together."""
    if groups[0][0].quantity in RULES:
        return [answer for group in groups for answer in group]
    misses = [[_miss(answer, folds[answer.id]) for answer in group] for group in groups]
    every = [miss for some in misses for miss in some]
    widths = {fold: _width([one for one in every if one.fold != fold]) for fold in {one.fold for one in every}}
    made = []
    for group, some in zip(groups, misses, strict=True):
        levels = {fold: _moved(some, fold, group[0].quantity) for fold in {one.fold for one in some}}
        made += [_refitted(answer, levels[folds[answer.id]], widths[folds[answer.id]]) for answer in group]
    return made


def _moved(misses: Sequence[_Miss], fold: str, quantity: str) -> float:
    """The shift of the overall level without one fold; 0 if too few rows are left."""
    others = [miss for miss in misses if miss.fold != fold]
    enough = len({miss.row for miss in others}) >= _FEWEST and quantity != CALIBRATED
    return _level(others) - _level(misses) if enough else 0.0


def _miss(answer: PlannerAnswer, fold: str) -> _Miss:
    value, published = _scaled(answer, answer.predicted), _scaled(answer, answer.published)
    edge = _scaled(answer, answer.high if published > value else answer.low)
    off = abs(published - value)
    return _Miss(answer.id, fold, published - value, off / abs(edge - value) if edge != value else math.inf * off)


def _scaled(answer: PlannerAnswer, figure: float | None) -> float:
    """The scale on which a constant adds: GiB of a pool, the rest after reserves; else the logarithm."""
    if answer.quantity == POOL:
        return figure or 0.0
    return math.log(figure) if figure and figure > 0 else -math.inf


def _level(misses: Sequence[_Miss]) -> float:
    """A fold counts once: its rows share a machine and a way to measure, and many rows of one are no more sources."""
    folds = _by_fold(misses, lambda miss: miss.level)
    return statistics.median(map(statistics.median, folds.values())) if folds else 0.0


def _width(misses: Sequence[_Miss]) -> float:
    """The factor by which the ranges would have to be wider for nine of ten rows, each fold with the same weight.

    The fold that was left out has the same weight and is beyond all others (Lee, Barber and Willett 2023,
    Distribution-free inference with hierarchical data). Of fewer folds than ten no range is narrowed for it.
    """
    folds = _by_fold(misses, lambda miss: miss.off)
    scores = sorted((off, 1 / (len(mine) * (len(folds) + 1))) for mine in folds.values() for off in mine)
    reached = itertools.accumulate(weight for _, weight in scores)
    found = next((off for (off, _), so_far in zip(scores, reached, strict=True) if so_far >= _INSIDE), math.inf)
    least = 0.0 if len(folds) >= _SEEN else 1.0
    return max(least, found) if math.isfinite(found) and found else 1.0


def _by_fold(misses: Sequence[_Miss], value: Callable[[_Miss], float]) -> dict[str, list[float]]:
    """Each row's median, by fold."""
    rows: dict[tuple[str, str], list[float]] = defaultdict(list)
    for miss in misses:
        rows[miss.fold, miss.row].append(value(miss))
    found: dict[str, list[float]] = defaultdict(list)
    for (fold, _), mine in rows.items():
        found[fold].append(statistics.median(mine))
    return found


def _refitted(answer: PlannerAnswer, moved: float, width: float) -> PlannerAnswer:
    value = _scaled(answer, answer.predicted)
    edges = (value + moved + (_scaled(answer, edge) - value) * width for edge in (answer.low, answer.high))
    low, high = (max(0.0, edge) if answer.quantity == POOL else math.exp(edge) for edge in edges)
    middle = value + moved
    return replace(answer, predicted=middle if answer.quantity == POOL else math.exp(middle), low=low, high=high)
