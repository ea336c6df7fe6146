"""The expected scores of unmeasured settings: a Gaussian process over the logarithms of scores.

Two values of a setting are the more alike the nearer they are in its order; points are alike by their settings, one by
one and in pairs. How much each of these counts is not chosen but averaged, weighted by how well it explains what was
measured. https://gaussianprocess.org/gpml/ has the formulas, https://doi.org/10.1023/A:1008306431147 the expected
improvement.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import erf, exp, log, pi, sqrt
from statistics import fmean, median

import numpy as np
from numpy.typing import NDArray

from sparkwright.domain.tuning import Point, TuneSetting
from sparkwright.domain.values import dataclass

Floats = NDArray[np.float64]
_ALONE, _PAIRS, _SMOOTH = (0.05, 0.1, 0.2, 0.4, 0.8), (0.1, 0.3, 0.8), (0.2, 0.9)
_UNLIKELY = 5.0  # below the likeliest way, log
_REACH = 1.5  # steps in the order of values over which likeness falls
_LEVEL = 1.0  # standard deviation of the common level, log
_USUAL, _WEIGHT = 0.03, 3.0  # how far repeats differ before that is known, and for how many differences that counts
_START = 0.005  # by which starts of the same settings differ
_MEDIAN = pi / 2  # variance of a median compared with that of a mean


@dataclass(frozen=True, slots=True)
class MeasuredPoint:
    """The measurement of one point: the logarithm of its score, and its variance."""

    value: float
    variance: float


def measured_points(scores: Mapping[Point, Sequence[float]]) -> dict[Point, MeasuredPoint]:
    """Medians, with a variance that all points share by what their repeats differ; one repeat may be an outlier."""
    logs = {point: [log(max(one, 1e-9)) for one in some] for point, some in scores.items()}
    centers = {point: median(some) for point, some in logs.items()}
    apart = [
        (one - centers[point]) * sqrt(len(some) / (len(some) - 1))
        for point, some in logs.items()
        for one in some
        if len(some) > 1
    ]
    count = len(apart)
    usual = 1.4826 * median(map(abs, apart)) if apart else _USUAL
    robust = (count * usual**2 + _WEIGHT * _USUAL**2) / (count + _WEIGHT)
    whole = (sum(one * one for one in apart) + _WEIGHT * _USUAL**2) / (count + _WEIGHT)
    found = {}
    for point, some in logs.items():
        single = _MEDIAN * robust if len(some) > 2 else whole
        found[point] = MeasuredPoint(centers[point], single / len(some) + _START**2)
    return found


@dataclass(frozen=True, slots=True)
class Surface:
    """found: by point. parts: of each way to weigh likeness its weight, its kernel and the solved system."""

    found: Mapping[Point, MeasuredPoint]
    settings: tuple[TuneSetting, ...]
    parts: tuple[tuple[float, tuple[float, float, float], Floats, Floats], ...]

    def expected(self, points: Sequence[Point]) -> Iterator[tuple[float, Floats, Floats]]:
        """(weight, means, standard deviations) of each way to weigh likeness."""
        known = list(self.found)
        level = fmean(one.value for one in self.found.values())
        bases = {smooth: _bases(self.settings, points, known, smooth) for smooth in _SMOOTH}
        for weight, kind, lower, solved in self.parts:
            cross = _kernel(bases[kind[2]], kind)
            count = len(self.settings)
            variance = _kernel((float(count), count * (count - 1) / 2), kind)  # settings, and pairs of them
            half = np.linalg.solve(lower, cross.T)
            left = np.maximum(variance - np.sum(half**2, axis=0), 1e-12)
            yield weight, level + cross @ solved, np.sqrt(left)

    def means(self, points: Sequence[Point]) -> dict[Point, float]:
        whole = sum(weight * means for weight, means, _ in self.expected(points))
        return dict(zip(points, map(float, np.asarray(whole)), strict=True))

    def gains(self, points: Sequence[Point]) -> dict[Point, float]:
        """Expected improvement over the best that was measured, log."""
        known, total = list(self.found), np.zeros(len(points))
        measured = list(self.expected(known))
        for (weight, means, widths), (_, theirs, _) in zip(self.expected(points), measured, strict=True):
            over = (means - theirs.max()) / widths
            density = np.exp(-(over**2) / 2) / sqrt(2 * pi)
            below = np.array([(1 + erf(one / sqrt(2))) / 2 for one in over])
            total += weight * widths * (over * below + density)
        return dict(zip(points, map(float, total), strict=True))


def surface(settings: Sequence[TuneSetting], found: Mapping[Point, MeasuredPoint]) -> Surface:
    points = list(found)
    level = fmean(one.value for one in found.values())
    target = np.array([one.value - level for one in found.values()])
    noise = np.diag([one.variance for one in found.values()])
    bases = {smooth: _bases(settings, points, points, smooth) for smooth in _SMOOTH}
    rows = []
    for alone, share, smooth in product(_ALONE, _PAIRS, _SMOOTH):
        kind = (alone, alone * share, smooth)
        lower: Floats = np.linalg.cholesky(_kernel(bases[smooth], kind) + noise).astype(np.float64)
        solved: Floats = np.linalg.solve(lower.T, np.linalg.solve(lower, target)).astype(np.float64)
        likely = -float(target @ solved) / 2 - float(np.log(np.diag(lower)).sum())
        rows.append((likely, kind, lower, solved))
    most = max(row[0] for row in rows)
    rows = [row for row in rows if row[0] > most - _UNLIKELY]
    whole = sum(exp(row[0] - most) for row in rows)
    return Surface(found, tuple(settings), tuple((exp(row[0] - most) / whole, *row[1:]) for row in rows))


def _kernel(bases: tuple[Floats | float, Floats | float], kind: tuple[float, float, float]) -> Floats:
    alone, pairs, _ = kind
    return np.asarray(_LEVEL**2 + alone**2 * bases[0] + pairs**2 * bases[1], dtype=np.float64)


def _bases(
    settings: Sequence[TuneSetting], some: Sequence[Point], others: Sequence[Point], smooth: float
) -> tuple[Floats, Floats]:
    """Likeness by settings one by one, and by pairs of them, summed."""
    left, right = np.array(some), np.array(others)
    total, squares = np.zeros((len(some), len(others))), np.zeros((len(some), len(others)))
    for number, setting in enumerate(settings):
        part = _alike(setting, smooth)[np.ix_(left[:, number], right[:, number])]
        total, squares = total + part, squares + part**2
    return total, (total**2 - squares) / 2


def _alike(setting: TuneSetting, smooth: float) -> Floats:
    """The likeness of each two values of a setting: 1 for equal ones, less with distance in order, 0 without an
    order."""
    numbers = sorted({one for one in setting.values if _number(one)})
    places = [float(numbers.index(one)) if _number(one) else None for one in setting.values]
    table = np.eye(len(places))
    for a, b in product(range(len(places)), repeat=2):
        one, other = places[a], places[b]
        if a != b and one is not None and other is not None:
            table[a, b] = smooth * exp(-((one - other) ** 2) / (2 * _REACH**2))
    return table


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
