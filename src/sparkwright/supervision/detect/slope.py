"""A robust line through points: the median of the slopes of all pairs (Theil and Sen), and whether it is a trend."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations
from math import sqrt
from statistics import median

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Trend:
    """slope: per unit of x. rise: along the line from the first point to the last; noise: mean deviation from it.

    least: of the slopes of the three thirds the one that goes least its way. A step falls into one third and leaves the
    two others flat, and what levels off has a flat end: only what goes on all the time is a leak.
    """

    slope: float
    rise: float
    noise: float
    least: float


def slope(points: Sequence[Point]) -> float:
    """0 for fewer than two different x."""
    found = [(y - before) / (x - since) for (since, before), (x, y) in combinations(points, 2) if x != since]
    return median(found) if found else 0.0


def trend(points: Sequence[Point]) -> Trend:
    """Of at least one point, in order of x."""
    middle = slope(points)
    level = median(y - middle * x for x, y in points)
    noise = sqrt(sum((y - middle * x - level) ** 2 for x, y in points) / len(points))
    third = max(2, len(points) // 3)
    sign = 1 if middle > 0 else -1
    least = min(sign * slope(part) for part in (points[:third], points[third:-third], points[-third:]))
    return Trend(middle, middle * (points[-1][0] - points[0][0]), noise, sign * least)


def comeback(values: Sequence[float]) -> float:
    """The most that later ones lie above an earlier one: what leaks never comes back, what is borrowed does."""
    return max((value - least for value, least in zip(values, accumulate(values, min), strict=True)), default=0.0)
