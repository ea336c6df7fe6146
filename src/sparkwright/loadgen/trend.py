"""The trend of a series: its steady decline, and its changes of level. Figures of both are in
docs/guides/soaking.md."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sparkwright.domain.summary import Interval
from sparkwright.domain.values import dataclass

Floats = NDArray[np.float64]
Points = Sequence[tuple[float, float]]

BINS, FEWEST = 60, 12
_RESAMPLES, _PERMUTATIONS, _SEED = 200, 499, 20261123
# A leak: along the line it takes so many times the noise around it, and each quarter so much of the whole's slope: a
# warm-up takes one quarter, a step of load another. Chosen on 800 scripted soaks, measured on 200 others.
_OVER_NOISE, _LEAST, _PARTS = 6.0, 0.3, 4


@dataclass(frozen=True, slots=True)
class TrendLine:
    """slope: per unit of x, with its 95 % interval. rise: over all of it. steady: every part of it goes that way."""

    slope: Interval
    rise: float
    steady: bool


def thinned(points: Points, most: int = BINS) -> list[tuple[float, float]]:
    """Medians of equal spans of x, in order; spans without a point are left out."""
    if not points:
        return []
    x, y = _arrays(sorted(points))
    span = (x[-1] - x[0]) / most or 1.0
    places = np.minimum(((x - x[0]) / span).astype(int), most - 1)
    return [(float(np.median(x[places == n])), float(np.median(y[places == n]))) for n in np.unique(places)]


def fit_trend(points: Points) -> TrendLine | None:
    """Theil and Sen's slope of the thinned points; its interval from blocks of residuals, for noise that lasts.

    None of too few points. https://doi.org/10.1080/01621459.1968.10480934
    """
    kept = thinned(points)
    if len(kept) < FEWEST:
        return None
    x, y = _arrays(kept)
    slope = float(_slopes(x, y)[0])
    rest = y - slope * x
    rest -= np.median(rest)
    dice, size = np.random.default_rng(_SEED), max(2, int(len(x) ** 0.5))
    count = -(-len(x) // size)
    starts = dice.integers(0, len(x) - size + 1, (_RESAMPLES, count))
    blocks = (starts[:, :, None] + np.arange(size)).reshape(_RESAMPLES, -1)[:, : len(x)]
    low, high = np.percentile(slope + _slopes(x, rest[blocks]), (2.5, 97.5))
    parts = np.array_split(np.arange(len(x)), _PARTS)
    least = min(float(np.sign(slope) * _slopes(x[part], y[part])[0]) for part in parts)
    rise = slope * float(x[-1] - x[0])
    steady = least >= _LEAST * abs(slope) and abs(rise) >= _OVER_NOISE * float(np.std(rest))
    return TrendLine(Interval(slope, float(low), float(high)), rise, bool(slope) and steady)


def _slopes(x: Floats, y: Floats) -> Floats:
    """The slope of each line of y, or of the only one."""
    first, second = _pairs(len(x))
    apart = x[second] - x[first]
    known, lines = apart > 0, np.atleast_2d(y)
    if not known.any():
        return np.zeros(len(lines))
    first, second = first[known], second[known]
    found: Floats = np.median((lines[:, second] - lines[:, first]) / apart[known], axis=1, overwrite_input=True)
    return found


@lru_cache(64)
def _pairs(count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    return np.triu_indices(count, 1)


def _arrays(points: Points) -> tuple[Floats, Floats]:
    both = np.array(points, np.float64)
    return both[:, 0], both[:, 1]


def changes(values: Sequence[float], least: float, most: int = 4) -> list[int]:
    """The places at which the level changes by `least` or more: binary segmentation by CUSUM, each cut against
    permutations.

    A cut counts when its statistic is larger than in all 499 shuffles of the same segment (1 in 500), and the medians
    before and after differ by `least`. https://doi.org/10.1214/14-AOS1245
    """
    dice, found = np.random.default_rng(_SEED), list[int]()
    waiting = [(0, len(values))]
    y = np.array(values, np.float64)
    while waiting and len(found) < most:
        begin, end = waiting.pop(0)
        cut = _cut(y[begin:end], least, dice)
        if cut:
            found.append(begin + cut)
            waiting += [(begin, begin + cut), (begin + cut, end)]
    return sorted(found)


def _cut(y: Floats, least: float, dice: np.random.Generator) -> int:
    """The place of the change, 0 for none."""
    if len(y) < FEWEST:
        return 0
    edge = max(3, len(y) // 12)
    statistic = _cusum(y[None, :], edge)[0]
    cut = int(np.argmax(statistic)) + edge
    if abs(float(np.median(y[cut:]) - np.median(y[:cut]))) < least:
        return 0
    shuffled = dice.permuted(np.tile(y, (_PERMUTATIONS, 1)), axis=1)
    return cut if statistic.max() > _cusum(shuffled, edge).max() else 0


def _cusum(y: Floats, edge: int) -> Floats:
    """The deviation of the partial sums in each line from an even level, scaled by the place."""
    size = y.shape[1]
    sums = np.cumsum(y - y.mean(axis=1, keepdims=True), axis=1)[:, edge - 1 : size - edge]
    places = np.arange(edge, size - edge + 1)
    scaled: Floats = np.abs(sums) / np.sqrt(places * (size - places) / size)
    return scaled
