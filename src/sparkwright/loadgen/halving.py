"""Successive halving over a space of settings, and what each setting was worth.

Rung 0 measures few points shortly: the recipe's own, and a design in which each value appears about equally often. A
model without interactions (the logarithm of a score is a sum of one term a setting) is fitted to what was measured; the
next rung measures half as many points, the best of those measured and of those that the model expects, for twice as
long. What comes next follows from the trials alone: a search that was killed resumes where it was.
https://arxiv.org/abs/1502.07943 has successive halving.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import ceil, exp, log, prod
from random import Random
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from sparkwright.domain.tuning import Effect, Point, Setting, Trial, Tried
from sparkwright.domain.values import dataclass

Floats = NDArray[np.float64]
RUNGS = 3
_LEAST = 4  # points of the first rung, beyond the recipe's own
_MOST_SPACE = 20_000  # points that the model is asked about
_RIDGE = 0.05
_RESAMPLES, _SEED = 400, 20261123
_LOW, _HIGH = 2.5, 97.5


def space(settings: Sequence[Setting]) -> int:
    return prod(len(one.values) for one in settings)


def points(settings: Sequence[Setting], seed: int) -> Iterator[Point]:
    """All of them; of a larger space a sample."""
    ranges = [range(len(one.values)) for one in settings]
    if space(settings) <= _MOST_SPACE:
        yield from product(*ranges)
        return
    dice = Random(f"points/{seed}")
    yield from (tuple(dice.choice(one) for one in ranges) for _ in range(_MOST_SPACE))


def sizes(settings: Sequence[Setting]) -> tuple[int, ...]:
    """How many points each rung measures: enough in the first for each value's term."""
    first = min(space(settings), max(_LEAST, 1 + sum(len(one.values) - 1 for one in settings)))
    return tuple(max(2, ceil(first / 2**rung)) for rung in range(RUNGS))


def design(settings: Sequence[Setting], seed: int, good: Callable[[Point], bool]) -> tuple[Point, ...]:
    """Points for the first rung besides the own one: columns of shuffled values, each about equally often.

    good: whether the plan lets it start; others take the place of those that it does not.
    """
    dice, wanted = Random(f"design/{seed}"), sizes(settings)[0] - 1
    found: dict[Point, None] = {}
    for _ in range(8):
        columns = [_column(len(one.values), wanted, dice) for one in settings]
        for point in zip(*columns, strict=True):
            if any(point) and point not in found and len(found) < wanted and good(point):
                found[point] = None
    return tuple(found)


def _column(count: int, rows: int, dice: Random) -> list[int]:
    column = [row % count for row in range(count, count + rows)]
    dice.shuffle(column)
    return column


@dataclass(frozen=True, slots=True)
class Model:
    """log(score) = terms[0] + the terms of the point's values; those of the recipe's own values are 0."""

    terms: Floats
    places: Mapping[tuple[int, int], int]

    def __call__(self, point: Point) -> float:
        at = [self.places[pair] for pair in enumerate(point) if pair in self.places]
        return float(self.terms[0] + sum(self.terms[place] for place in at))


def scored(trials: Sequence[Trial]) -> dict[Point, list[Trial]]:
    """What counts, by point; a point that failed in any way is out altogether."""
    out, found = failed(trials), dict[Point, list[Trial]]()
    for one in trials:
        if one.point not in out and one.rung >= 0 and one.scores:
            found.setdefault(one.point, []).append(one)
    return found


def value_of(trials: Sequence[Trial]) -> float:
    """Of one point: the mean of its longest measurement."""
    return fmean(max(trials, key=lambda one: one.rung).scores)


def fitted(settings: Sequence[Setting], trials: Sequence[Trial]) -> Model:
    """By least squares with a small penalty; longer measurements count for more."""
    found = scored(trials)
    rows = [(point, one) for point, some in found.items() for one in some]
    return _fit(settings, rows)


def _fit(settings: Sequence[Setting], rows: Sequence[tuple[Point, Trial]]) -> Model:
    pairs = [(n, value) for n, one in enumerate(settings) for value in range(1, len(one.values))]
    places = {pair: place for place, pair in enumerate(pairs, 1)}
    matrix, target = np.zeros((len(rows), len(pairs) + 1)), np.zeros(len(rows))
    for row, (point, trial) in enumerate(rows):
        weight = len(trial.scores) ** 0.5
        matrix[row, 0] = weight
        for pair in enumerate(point):
            if pair in places:
                matrix[row, places[pair]] = weight
        target[row] = weight * log(max(fmean(trial.scores), 1e-9))
    penalty = np.eye(len(pairs) + 1) * _RIDGE
    penalty[0, 0] = 1e-9
    terms = np.linalg.solve(matrix.T @ matrix + penalty, matrix.T @ target).astype(np.float64)
    return Model(terms, places)


def upcoming(
    settings: Sequence[Setting], first: Sequence[Point], trials: Sequence[Trial], good: Callable[[Point], bool]
) -> tuple[int, Point] | None:
    """(rung, point) to try next; None at the end. first: of rung 0 in order. good: the plan lets it start.

    The recipe's own point is measured in the last rung, too: what a change is worth is a difference of equals.
    """
    known, out = {(one.rung, one.point) for one in trials}, failed(trials)
    for point in first:
        if (0, point) not in known and point not in out:
            return 0, point
    for rung, wanted in enumerate(sizes(settings)[1:], 1):
        done = sum(one.rung == rung and one.point not in out for one in trials)
        if done < wanted and (then := _promoted(settings, trials, rung, good)):
            return rung, then
    own = first[0]
    return None if own in out or (RUNGS - 1, own) in known else (RUNGS - 1, own)


def failed(trials: Sequence[Trial]) -> set[Point]:
    return {one.point for one in trials if one.state is not Tried.MEASURED}


def _promoted(
    settings: Sequence[Setting], trials: Sequence[Trial], rung: int, good: Callable[[Point], bool]
) -> Point | None:
    """The best that this rung has not measured: by its own value where it has one, else by the model.

    In the last rung only what was measured in the one before: a final of points that were all measured alike.
    """
    measured, there = scored(trials), {one.point for one in trials if one.rung == rung}
    if not measured:
        return None
    before = {one.point for one in trials if one.rung == rung - 1}
    expected = {point: log(max(value_of(some), 1e-9)) for point, some in measured.items()}
    if rung == RUNGS - 1:
        expected = {point: value for point, value in expected.items() if point in before}
    else:
        model = fitted(settings, trials)
        expected |= {point: model(point) for point in points(settings, _SEED) if point not in expected}
    ranked = sorted(expected.keys() - there - failed(trials), key=lambda point: (-expected[point], point))
    return next((point for point in ranked if point in measured or good(point)), None)


def best(trials: Sequence[Trial]) -> Point | None:
    """Of the highest rung that was measured the one with the highest score."""
    found = scored(trials)
    rungs = {point: max(one.rung for one in some) for point, some in found.items()}
    most = max(rungs.values(), default=0)
    return max((p for p in found if rungs[p] == most), key=lambda p: value_of(found[p]), default=None)


def effects(settings: Sequence[Setting], trials: Sequence[Trial]) -> tuple[Effect, ...]:
    """Main effects with a bootstrap over the points: measurements of one point stay together."""
    found = scored(trials)
    if len(found) < 2:
        return ()
    groups = [[(point, one) for one in some] for point, some in found.items()]
    model, dice = _fit(settings, [row for rows in groups for row in rows]), np.random.default_rng(_SEED)
    drawn: dict[int, list[float]] = {place: [] for place in model.places.values()}
    for _ in range(_RESAMPLES):
        chosen = dice.integers(0, len(groups), len(groups))
        rows = [row for one in chosen for row in groups[one]]
        terms = _fit(settings, rows).terms
        for pair in {pair for point, _ in rows for pair in enumerate(point) if pair in model.places}:
            drawn[model.places[pair]].append(float(terms[model.places[pair]]))
    return tuple(_effects(settings, model, drawn, list(found)))


def _effects(
    settings: Sequence[Setting], model: Model, drawn: Mapping[int, Sequence[float]], tried: Sequence[Point]
) -> Iterator[Effect]:
    for (number, value), place in model.places.items():
        count, one = sum(point[number] == value for point in tried), settings[number]
        if not count:
            continue
        low = high = None
        if count > 1 and len(drawn[place]) >= _RESAMPLES // 2:
            low, high = (exp(float(edge)) - 1 for edge in np.percentile(drawn[place], (_LOW, _HIGH)))
        yield Effect(one.name, one.values[value], exp(float(model.terms[place])) - 1, low, high, count)
