"""A leak: memory that shrinks without end, apart from a step of load, a warm-up that levels off, and noise.

Windows of 4 minutes to 17 hours, of up to 48 points each, so that a leak that kills within the hour (10 -> 6 GB in
18 min has been reported) and one that takes days are found when they have taken a tenth of the headroom. Each point is
the median of its span. What counts is a window of which every third shrinks and nearly all pairs of points agree, by
the clock or, for traffic that comes and goes, by the count of finished requests.
"""

from collections import deque
from collections.abc import Sequence
from itertools import accumulate, combinations, pairwise
from math import sqrt
from statistics import median

from sparkwright.domain.units import MIB, duration, gib
from sparkwright.domain.values import dataclass, field
from sparkwright.supervisor.core.events import Fault
from sparkwright.supervisor.core.state import Recovery

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


def fit_slope(points: Sequence[Point]) -> float:
    """0 for fewer than two different x."""
    found = [(y - before) / (x - since) for (since, before), (x, y) in combinations(points, 2) if x != since]
    return median(found) if found else 0.0


def fit_trend(points: Sequence[Point]) -> Trend:
    """The trend of at least one point, in order of x."""
    middle = fit_slope(points)
    level = median(y - middle * x for x, y in points)
    noise = sqrt(sum((y - middle * x - level) ** 2 for x, y in points) / len(points))
    third = max(2, len(points) // 3)
    sign = 1 if middle > 0 else -1
    least = min(sign * fit_slope(part) for part in (points[:third], points[third:-third], points[-third:]))
    return Trend(middle, middle * (points[-1][0] - points[0][0]), noise, sign * least)


def comeback(values: Sequence[float]) -> float:
    """The most that later ones lie above an earlier one: what leaks never comes back, what is borrowed does."""
    return max((value - least for value, least in zip(values, accumulate(values, min), strict=True)), default=0.0)


_SPANS = tuple(5.0 * 2**step for step in range(9))
_POINTS, _MOST, _FEW = 48, 30, 12
# Part of the headroom that must be gone, and at least so much: on a machine of 120 GiB less is what its tools do. A
# little less than the tenth, which is gone when it has been said often enough; of what hurries still less.
_PART, _HURRIED, _SMALLEST = 0.09, 0.05, 256 * MIB
# Along the line it falls by so many times the mean deviation from it; each third by so much of the whole's slope (a
# step of load leaves two thirds flat, a warm-up the last one); and so many times what ever came back. Tried on noise
# that forgets itself within a second, five minutes and an hour (tests/unit/supervisor/core/detect/traces.py).
_OVER_NOISE, _LEAST, _NEVER_BACK = 8.0, 0.5, 2.0
# So many new points in a row must say so, and so many the contrary until it is over.
_STRIKES, _CALM = 4, 6
# Healthy engines drift by up to a GiB in hours (F2): what would take longer than this is not announced. What takes less
# than twenty minutes is told from a quarter of a window: a warm-up taken for a leak is better than one told late.
_HORIZON, _URGENT = 6 * 3600.0, 1200.0
_REQUESTS = 20


@dataclass(frozen=True, slots=True)
class Shrinking:
    """lost: bytes within `seconds`, of `before`; left: seconds until the floor at that; each: bytes a request."""

    lost: float
    seconds: float
    before: float
    left: float
    each: float
    noise: float


# Time, bytes, finished requests.
Look = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Terms:
    """floor: bytes. scale: of time. back: the most that has ever come back, in this window and in longer ones."""

    floor: int
    scale: float = 1.0
    back: float = 0.0


@dataclass
class Window:
    """Medians of `span` seconds: (time, bytes, finished requests). It is judged again with each point."""

    span: float
    points: deque[Look] = field(default_factory=lambda: deque(maxlen=_POINTS))
    shrinks: Shrinking | None = None
    comeback: float = 0.0
    _open: list[Look] = field(default_factory=list)
    _strikes: int = 0
    _calm: int = 0

    def add(self, look: Look, terms: Terms) -> None:
        if self._open and look[0] - self._open[0][0] >= self.span * 0.99:
            times, values, counts = zip(*self._open, strict=True)
            self.points.append((median(times), median(values), median(counts)))
            self._open.clear()
            self.comeback = comeback([value for _, value, _ in self.points])
            self._judge(terms)
        self._open.append(look)

    def _judge(self, terms: Terms) -> None:
        seen = shrinking(self.points, terms) if len(self.points) >= _FEW else None
        self._strikes = self._strikes + 1 if seen else 0
        self._calm = 0 if seen else self._calm + 1
        if seen and (self.shrinks or self._strikes >= _STRIKES):
            self.shrinks = seen
        elif self._calm >= _CALM:
            self.shrinks = None


@dataclass
class Leak:
    """One node. scale: of time."""

    node: str
    scale: float = 1.0
    windows: tuple[Window, ...] = ()
    _pace: tuple[Look, Trend] | None = None

    def __post_init__(self) -> None:
        self.windows = tuple(Window(span * self.scale) for span in _SPANS)

    def sample(self, available: int, finished: float | None, floor: int, at: float) -> None:
        back = 0.0
        for window in reversed(self.windows):
            back = max(back, window.comeback)
            window.add((at, float(available), finished or 0.0), Terms(floor, self.scale, back))

    def pace(self) -> Trend | None:
        """The trend over the last quarter of an hour or less, for display; None before it means anything."""
        points = next((w.points for w in self.windows[2::-1] if len(w.points) >= _FEW), None)
        if points and (self._pace is None or self._pace[0] != points[-1]):
            self._pace = points[-1], fit_trend([(at, value) for at, value, _ in points])
        return self._pace[1] if points and self._pace else None

    def verdict(self, floor: int, at: float) -> Fault | None:
        """Announced as `leak`: what will be gone first."""
        found = [window.shrinks for window in self.windows if window.shrinks]
        if not found:
            return None
        worst = min(found, key=lambda one: one.left)
        each = f" ({gib(worst.each)} a request)" if worst.each > 0 else ""
        what = f"memory of {self.node} shrinks by {gib(worst.lost / worst.seconds * 3600)} an hour{each}: "
        what += f"{duration(worst.left)} left until the floor of {gib(floor)}"
        shrunk = f"available {gib(worst.before)} -> {gib(worst.before - worst.lost)} in {duration(worst.seconds)}"
        steady = f"in every third of that time, with a noise of {gib(worst.noise)}"
        return Fault(at, "leak", what, Recovery.NONE, (shrunk, steady))


def shrinking(points: Sequence[Look], terms: Terms) -> Shrinking | None:
    """The leak that a window shows; None without one."""
    # Whether the last third lies so far below the first one that a line may show enough: most windows end here
    values = [value for _, value, _ in points]
    third = len(values) // 3
    fell = median(values[:third]) - median(values[-third:])
    if fell <= 0.5 * max(_HURRIED * (values[0] - terms.floor), _SMALLEST, _NEVER_BACK * terms.back):
        return None
    by_time = [(at, value) for at, value, _ in points]
    # The last look at each count: while nobody asks, nothing leaks, and that is no proof of the contrary.
    by_request = [(one[2], one[1]) for one, after in pairwise([*points, (0.0, 0.0, -1.0)]) if one[2] != after[2]]
    enough = len(by_request) >= _FEW and by_request[-1][0] - by_request[0][0] >= _REQUESTS
    each = -fit_slope(by_request) if enough else 0.0
    for line in (by_time, by_request) if enough else (by_time,):
        found = _of(line, points[-1][0] - points[0][0], terms.floor, each)
        if found and _told(found, len(points), terms):
            return found
    return None


def _of(line: Sequence[Point], seconds: float, floor: int, each: float) -> Shrinking | None:
    """The loss along a line if it is steady and large enough, else None."""
    seen, before, now = fit_trend(line), line[0][1], line[-1][1]
    lost = -seen.rise
    steady = seen.slope < 0 and lost >= _OVER_NOISE * seen.noise and seen.least <= _LEAST * seen.slope
    if not steady or lost < _SMALLEST:
        return None
    return Shrinking(lost, seconds, before, max(now - floor, 0.0) / lost * seconds, each, seen.noise)


def _told(found: Shrinking, points: int, terms: Terms) -> bool:
    """True if points and loss suffice for the time left, and nothing as big has ever come back."""
    least, part = (_FEW, _HURRIED) if found.left <= _URGENT * terms.scale else (_MOST, _PART)
    enough = points >= least and found.lost >= part * (found.before - terms.floor)
    return enough and found.left <= _HORIZON * terms.scale and found.lost >= _NEVER_BACK * terms.back
