"""A search over a space of settings: which point is measured next, for how long, and which is the best.

The recipe's own settings come first, then a few points of a design, then those of which the most improvement is
expected. While a point serves it is measured until it is clearly worse than the best so far, or long enough. What
comes next follows from the trials alone: a search that was killed resumes where it was.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from random import Random

from sparkwright.domain.tuning import Point, Trial, TuneSetting, scored
from sparkwright.tune.surface import MeasuredPoint, measured_points, surface

REPEATS = (1, 1, 2)  # of a point's first measurement, of the next ones while it serves
MORE = (4,)  # where its repeats still differ by too much
_SURE = 0.02  # standard deviation (log) of a point that is known well enough
_CLEAR = 2.5  # standard deviations by which a point is worse, and measured no longer
_LEAST = 8  # points that are tried where a third of all is fewer
_SHARE, _EACH = 3, 3  # a third of all; in a large space three for each value
_GAIN = 0.0003  # expected improvement (log) that is not worth a start
_MOST_SPACE = 20_000  # points that are asked about
_SEED = 20261123


def space_size(settings: Sequence[TuneSetting]) -> int:
    return prod(len(one.values) for one in settings)


def points(settings: Sequence[TuneSetting], seed: int) -> Iterator[Point]:
    """All of them; of a larger space a sample."""
    ranges = [range(len(one.values)) for one in settings]
    if space_size(settings) <= _MOST_SPACE:
        yield from product(*ranges)
        return
    dice = Random(f"points/{seed}")
    yield from (tuple(dice.choice(one) for one in ranges) for _ in range(_MOST_SPACE))


def trial_limit(settings: Sequence[TuneSetting]) -> int:
    """Points that are tried at most: a third of all, of a large space three for each value."""
    values = 1 + sum(len(one.values) - 1 for one in settings)
    return min(space_size(settings), max(_LEAST, min(space_size(settings) // _SHARE, _EACH * values)))


def _early(settings: Sequence[TuneSetting]) -> int:
    """Points of the design that are tried before anything is expected of others."""
    return max(1, trial_limit(settings) // 4)


def design(settings: Sequence[TuneSetting], seed: int, good: Callable[[Point], bool]) -> tuple[Point, ...]:
    """Points besides the own one, more than are tried: columns of shuffled values, each about equally often.

    good: whether the plan lets it start; others take the place of those that it does not.
    """
    dice = Random(f"design/{seed}")
    wanted = max(_early(settings), *(len(one.values) - 1 for one in settings))
    found: dict[Point, None] = {}
    for _ in range(8):
        columns = [_column(len(one.values), wanted, dice) for one in settings]
        for point in zip(*columns, strict=True):
            if any(point) and point not in found and len(found) < wanted and good(point):
                found[point] = None
    return tuple(found)


def _column(count: int, rows: int, dice: Random) -> list[int]:
    column = [row % count for row in range(1, rows + 1)]
    dice.shuffle(column)
    return column


def repeats(rung: int) -> int:
    return (*REPEATS, *MORE)[rung]


def upcoming(
    settings: Sequence[TuneSetting], first: Sequence[Point], trials: Sequence[Trial], good: Callable[[Point], bool]
) -> tuple[int, Point] | None:
    """(rung, point) to measure next; None at the end. first: the own point, then the design in an order of its own.

    good: whether the plan lets it start.
    """
    tried = {one.point: max(t.rung for t in trials if t.point == one.point) for one in trials if one.rung >= 0}
    found = measured_points(scored(trials))
    last = next((one.point for one in reversed(trials) if one.rung >= 0), None)
    if last in found and _longer(found, last, tried[last], first[0]):
        return tried[last] + 1, last
    if point := next((one for one in first[: 1 + _early(settings)] if one not in tried), None):
        return (0, point) if len(tried) < trial_limit(settings) else None
    if not found or len(tried) >= trial_limit(settings):
        return None
    return _promising(settings, found, tried, good)


def _longer(found: Mapping[Point, MeasuredPoint], point: Point, rung: int, own: Point) -> bool:
    """True if a working point is measured further: not if it is clearly worse, nor if it is known."""
    others = [one for other, one in found.items() if other != point]
    best, this = max(others, key=lambda one: one.value, default=None), found[point]
    worse = best is not None and best.value - this.value > _CLEAR * (best.variance + this.variance) ** 0.5
    if rung + 1 < len(REPEATS):
        return point == own or not worse
    return rung + 1 < len(REPEATS) + len(MORE) and not worse and this.variance > _SURE**2


def _promising(
    settings: Sequence[TuneSetting],
    found: Mapping[Point, MeasuredPoint],
    tried: Mapping[Point, int],
    good: Callable[[Point], bool],
) -> tuple[int, Point] | None:
    """The most promising point; one that was measured shortly may be measured again."""
    short = {point for point in found if tried[point] + 1 < len(REPEATS)}
    asked = [point for point in points(settings, _SEED) if point not in tried or point in short]
    if not asked:
        return None
    gains = surface(settings, found).gains(asked)
    for point in sorted(asked, key=lambda one: (-gains[one], one)):
        if gains[point] < _GAIN:
            return None
        if point in short or good(point):
            return tried.get(point, -1) + 1, point
    return None


def best_point(settings: Sequence[TuneSetting], trials: Sequence[Trial]) -> Point | None:
    """The highest by what was measured and what is expected there; of those only that were measured more than once."""
    found = measured_points(scored(trials))
    again = {one.point for one in trials if one.rung > 0}
    if not found:
        return None
    means = surface(settings, found).means(list(found))
    return max(found, key=lambda point: (point in again, means[point], point))
