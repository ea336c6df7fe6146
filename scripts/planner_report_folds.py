"""The planner on the rows whose source, or whose model, had no part in fitting its levels and the width of its ranges.

Its constants are rates and reserves: a change of one moves a quantity's level, alone or on several nodes, and a change
of its spread the width of the ranges. Both are fitted again here to the rows of all other sources (models), the level
as the median of errors, the width so that nine of ten rows are inside; then the left-out rows are compared.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from planner_report_answers import Answer
from planner_report_dates import source
from planner_report_memory import POOL
from planner_report_rows import Case
from planner_report_speed import CALIBRATED
from planner_report_stats import percentile

# Of these nothing was fitted to measurements: dimensions and the engines' code decide, and the range is of what a row
# does not state. The reader of rows and the choice of what is modelled were made with all rows in view all the same.
RULES = frozenset({"kv_tokens_given_gib", "kv_tokens_unknown_draft"})
_INSIDE = 0.9
_FEWEST = 3  # rows of others, below which nothing is fitted


@dataclass(frozen=True, slots=True)
class _Miss:
    """level: published less predicted. off: how many times the range's own half that is, on its side."""

    row: str
    fold: str
    level: float
    off: float


def by_source(case: Case) -> str:
    return source(case.row)


def by_model(case: Case) -> str:
    return case.model or str(case.row.get("model"))


def left_out(cases: Sequence[Case], answers: Sequence[Answer], fold: Callable[[Case], str]) -> list[Answer]:
    """The answers as they would be if the rows of the same fold had not been there; `fits` has no level of its own."""
    folds = {case.id: fold(case) for case in cases}
    several = {case.id: case.recipe.nodes > 1 for case in cases}
    groups: dict[tuple[str, bool], list[Answer]] = defaultdict(list)
    for answer in answers:
        if answer.predicted and not isinstance(answer.published, bool) and answer.published > 0:
            groups[answer.quantity, several[answer.id]].append(answer)
    return [again for group in groups.values() for again in _again(group, folds)]


def _again(group: Sequence[Answer], folds: Mapping[str, str]) -> list[Answer]:
    if group[0].quantity in RULES:
        return list(group)
    misses = [_miss(answer, folds[answer.id]) for answer in group]
    whole, made = _level(misses), {}
    for fold in {miss.fold for miss in misses}:
        others = [miss for miss in misses if miss.fold != fold]
        enough = len({miss.row for miss in others}) >= _FEWEST and group[0].quantity != CALIBRATED
        made[fold] = (_level(others) - whole if enough else 0.0, _width(others))
    return [_refitted(answer, *made[folds[answer.id]]) for answer in group]


def _miss(answer: Answer, fold: str) -> _Miss:
    value, published = _scaled(answer, answer.predicted), _scaled(answer, answer.published)
    edge = _scaled(answer, answer.high if published > value else answer.low)
    off = abs(published - value)
    return _Miss(answer.id, fold, published - value, off / abs(edge - value) if edge != value else math.inf * off)


def _scaled(answer: Answer, figure: float | None) -> float:
    """What a constant adds to: GiB of a pool, which is what reserves leave; else the logarithm."""
    if answer.quantity == POOL:
        return figure or 0.0
    return math.log(figure) if figure and figure > 0 else -math.inf


def _level(misses: Sequence[_Miss]) -> float:
    """A row counts once."""
    rows: dict[str, list[float]] = defaultdict(list)
    for miss in misses:
        rows[miss.row].append(miss.level)
    return statistics.median(statistics.median(mine) for mine in rows.values()) if rows else 0.0


def _width(misses: Sequence[_Miss]) -> float:
    """How many times as wide the ranges would have to be; 1 where too few rows or points without a range decide."""
    rows: dict[str, list[float]] = defaultdict(list)
    for miss in misses:
        rows[miss.row].append(miss.off)
    found = percentile(sorted(statistics.median(mine) for mine in rows.values()), _INSIDE)
    return found if found and math.isfinite(found) and len(rows) >= _FEWEST else 1.0


def _refitted(answer: Answer, moved: float, width: float) -> Answer:
    value = _scaled(answer, answer.predicted)
    edges = (value + moved + (_scaled(answer, edge) - value) * width for edge in (answer.low, answer.high))
    low, high = (max(0.0, edge) if answer.quantity == POOL else math.exp(edge) for edge in edges)
    middle = value + moved
    return replace(answer, predicted=middle if answer.quantity == POOL else math.exp(middle), low=low, high=high)
