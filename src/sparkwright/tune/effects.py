"""The effect of each setting: main effects of a model without interactions, with their intervals.

The logarithm of a score is a sum of one term a setting; the model is fitted by least squares with a small penalty, and
longer measurements count for more.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import exp, log
from statistics import median

import numpy as np
from numpy.typing import NDArray

from sparkwright.domain.tuning import Effect, Point, Trial, TuneSetting, scored
from sparkwright.domain.values import dataclass

Floats = NDArray[np.float64]
_RIDGE = 0.05
_RESAMPLES, _SEED = 400, 20261123
_LOW, _HIGH = 2.5, 97.5


@dataclass(frozen=True, slots=True)
class EffectModel:
    """log(score) = terms[0] + the terms of the point's values; those of the recipe's own values are 0."""

    terms: Floats
    places: Mapping[tuple[int, int], int]


def _fit(settings: Sequence[TuneSetting], rows: Sequence[tuple[Point, Sequence[float]]]) -> EffectModel:
    pairs = [(n, value) for n, one in enumerate(settings) for value in range(1, len(one.values))]
    places = {pair: place for place, pair in enumerate(pairs, 1)}
    matrix, target = np.zeros((len(rows), len(pairs) + 1)), np.zeros(len(rows))
    for row, (point, scores) in enumerate(rows):
        weight = len(scores) ** 0.5
        matrix[row, 0] = weight
        for pair in enumerate(point):
            if pair in places:
                matrix[row, places[pair]] = weight
        target[row] = weight * log(max(median(scores), 1e-9))
    penalty = np.eye(len(pairs) + 1) * _RIDGE
    penalty[0, 0] = 1e-9
    terms = np.linalg.solve(matrix.T @ matrix + penalty, matrix.T @ target).astype(np.float64)
    return EffectModel(terms, places)


def effects(settings: Sequence[TuneSetting], trials: Sequence[Trial]) -> tuple[Effect, ...]:
    """Main effects with a bootstrap over the points: measurements of one point stay together."""
    found = list(scored(trials).items())
    if len(found) < 2:
        return ()
    model, dice = _fit(settings, found), np.random.default_rng(_SEED)
    drawn: dict[int, list[float]] = {place: [] for place in model.places.values()}
    for _ in range(_RESAMPLES):
        rows = [found[one] for one in dice.integers(0, len(found), len(found))]
        terms = _fit(settings, rows).terms
        for pair in {pair for point, _ in rows for pair in enumerate(point) if pair in model.places}:
            drawn[model.places[pair]].append(float(terms[model.places[pair]]))
    return tuple(_effects(settings, model, drawn, [point for point, _ in found]))


def _effects(
    settings: Sequence[TuneSetting], model: EffectModel, drawn: Mapping[int, Sequence[float]], tried: Sequence[Point]
) -> Iterator[Effect]:
    for (number, value), place in model.places.items():
        count, one = sum(point[number] == value for point in tried), settings[number]
        if not count:
            continue
        low = high = None
        if count > 1 and len(drawn[place]) >= _RESAMPLES // 2:
            low, high = (exp(float(edge)) - 1 for edge in np.percentile(drawn[place], (_LOW, _HIGH)))
        yield Effect(one.name, one.values[value], exp(float(model.terms[place])) - 1, low, high, count)
