"""When requests begin: seconds after a level's start, by a seeded random where there is chance in it."""

import math
from random import Random

from sparkwright.domain.workload import Arrival, Pace


def starts(pace: Pace, count: int, seed: str | int = 0) -> tuple[float, ...] | None:
    """`count` rising times, the first at 0; None in a closed loop, where a request begins when one ends."""
    dice = Random(f"pace/{seed}")
    if pace.arrival is Arrival.CLOSED:
        return None
    if pace.rate <= 0:
        raise ValueError(f"an open loop needs a rate above 0, observed {pace.rate:g}")
    if pace.arrival is Arrival.POISSON:
        return _poisson(pace.rate, count, dice)
    if pace.arrival is Arrival.BURSTS:
        return _bursts(pace.rate, max(pace.burst, 1), count)
    if pace.arrival is Arrival.RAMP:
        return _ramp(pace.rate, pace.to_rate or pace.rate, count)
    return tuple(n / pace.rate for n in range(count))


def _poisson(rate: float, count: int, dice: Random) -> tuple[float, ...]:
    """Gaps are exponential and independent: users who do not know of each other."""
    at, found = 0.0, []
    for _ in range(count):
        found.append(at)
        at += dice.expovariate(rate)
    return tuple(found)


def _bursts(rate: float, burst: int, count: int) -> tuple[float, ...]:
    """`burst` at the same moment, then nothing until the mean rate is kept."""
    return tuple((n // burst) * burst / rate for n in range(count))


def _ramp(first: float, last: float, count: int) -> tuple[float, ...]:
    """The rate goes from `first` to `last` in a straight line over time.

    By then count - 1 have begun after the first one: the line's area, (first + last) / 2 * whole. The n-th begins
    where the area up to it is n: first * t + (last - first) / (2 * whole) * t^2 = n, the root that is positive.
    """
    whole = 2 * max(count - 1, 1) / (first + last)
    bend = (last - first) / whole
    return tuple(2 * n / (first + math.sqrt(first * first + 2 * bend * n)) if n else 0.0 for n in range(count))
