"""Memory as healthy and as leaking nodes show it, sample by sample."""

import math
import random
from collections.abc import Callable, Sequence

from unit.supervisor.core.detect.figures import GIB

EVERY = 5.0
Trace = Callable[[float], float]


def wander(seed: int, deviation: float, memory: float) -> Trace:
    """Noise that forgets itself within `memory` seconds; deviation in GiB. Called with times in order."""
    dice, kept, level = random.Random(seed), math.exp(-EVERY / memory), 0.0

    def at(time: float) -> float:
        nonlocal level
        level = kept * level + dice.gauss(0, deviation * GIB * math.sqrt(1 - kept * kept))
        return level

    return at


def healthy(seed: int, steps: Sequence[tuple[float, float]] = (), level: float = 12.0) -> Trace:
    """Jitter of a second, of minutes and of hours; from each (time, GiB) on so much more is in use."""
    noises = (wander(seed, 0.05, 1.0), wander(seed + 1, 0.05, 300.0), wander(seed + 2, 0.1, 3600.0))

    def at(time: float) -> float:
        taken = sum(size for begins, size in steps if time >= begins)
        return (level - taken) * GIB + sum(noise(time) for noise in noises)

    return at


def leaking(seed: int, per_hour: float, level: float = 12.0, begins: float = 0.0) -> Trace:
    """A healthy trace that loses `per_hour` GiB an hour."""
    base = healthy(seed, level=level)
    return lambda time: base(time) - max(time - begins, 0.0) / 3600 * per_hour * GIB
