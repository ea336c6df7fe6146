"""Speeds that a search can be tried on without an engine: made up by a seed, or drawn from a recorded grid."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import exp
from random import Random
from statistics import fmean
from typing import Any

import numpy as np

from sparkwright.domain.tuning import Point, Trial, Tried, TuneSetting
from sparkwright.tune import search

REPEATS = 4  # of each setting of a grid
SIZES = ((4, 4), (3, 4, 5), (4, 4, 5), (3, 3, 5, 6), (5, 6, 4, 5))


@dataclass(frozen=True, slots=True)
class World:
    """truth: of each point that starts. repeat: (score, seconds) of one. start: seconds of a point's start and stop.

    predicted: by the planner, which orders the design.
    """

    settings: tuple[TuneSetting, ...]
    truth: Mapping[Point, float]
    repeat: Callable[[Point, Random], tuple[float, float]]
    start: Callable[[Point], float]
    whole: float
    predicted: Mapping[Point, float] = field(default_factory=dict)


def recorded(tree: Mapping[str, Any]) -> World:
    """Draws of the recorded repeats, joined until they last as long as those of `tune`."""
    settings = tuple(TuneSetting(one["name"], one["key"], tuple(one["values"])) for one in tree["settings"])
    table = {tuple(one["point"]): one for one in tree["trials"] if one["state"] == "measured"}
    times = max(1, round(2.0 / fmean(table[(0,) * len(settings)]["took"])))

    def repeat(point: Point, dice: Random) -> tuple[float, float]:
        one = table[point]
        drawn = [dice.randrange(len(one["scores"])) for _ in range(times)]
        return fmean(one["scores"][n] for n in drawn), sum(one["took"][n] for n in drawn)

    def start(point: Point) -> float:
        return float(table[point]["seconds"] - sum(table[point]["took"]))

    whole = sum(start(point) + times * sum(one["took"]) for point, one in table.items())
    truth = {point: fmean(one["scores"]) for point, one in table.items()}
    predicted = {point: one.get("predicted", 0.0) for point, one in table.items()}
    return World(settings, truth, repeat, start, whole, predicted)


def halves(tree: Mapping[str, Any]) -> Iterator[tuple[World, float]]:
    """The world of one half of the recorded repeats, its truth by the other half, for each way to take a half.

    Yields with it what the best by the first half has of the best by the other: of settings that are as fast as each
    other the luckiest is the recorded best, and no other has 95 % of its luck.
    """
    full = recorded(tree)
    many = min(len(one["scores"]) for one in tree["trials"] if one["state"] == "measured")
    for chosen in combinations(range(many), many // 2):
        rest = tuple(n for n in range(many) if n not in chosen)
        seen, unseen = (
            recorded({**tree, "trials": [_of(one, which) for one in tree["trials"]]}) for which in (chosen, rest)
        )
        truth, first = unseen.truth, max(seen.truth, key=lambda point: seen.truth[point])
        yield replace(seen, truth=truth, whole=full.whole), truth[first] / max(truth.values())


def _of(trial: Mapping[str, Any], which: Sequence[int]) -> dict[str, Any]:
    """The same trial with these repeats only."""
    if trial["state"] != "measured":
        return dict(trial)
    scores, took = ([trial[name][n] for n in which] for name in ("scores", "took"))
    return {**trial, "scores": scores, "took": took, "seconds": trial["seconds"] - sum(trial["took"]) + sum(took)}


def made_up(levels: Sequence[int], seed: int, rough: tuple[float, float], start: float) -> World:
    """Curves that rise to a limit, have a peak, a step, or no order; a third of the worlds have a ceiling, a third a
    cliff where two settings are both large.

    rough: standard deviations (log) of what two values do together, and of a repeat, which has tails as of Student's t
    with 3 degrees; one of 20 loses 20 to 50 % besides, a start's own is 1 %. start: in repeats of the own settings.
    """
    pairs, noise = rough
    dice = np.random.default_rng([seed, *levels, round(100 * pairs), round(100 * noise), round(start)])
    axes = [np.linspace(0, 1, count) for count in levels]
    speed: Any = sum(np.ix_(*(_curve(axis, dice) for axis in axes)))
    for a, b in combinations(range(len(levels)), 2):
        term = _together(axes[a], axes[b], dice) * pairs
        speed = speed + np.expand_dims(term, [n for n in range(len(levels)) if n not in (a, b)])
    kind = dice.integers(3)
    if kind == 0:
        speed = np.minimum(speed, np.quantile(speed, 0.85))
    if kind == 1:
        far = np.add.outer(axes[0], axes[1]) > 1.4
        speed = speed - np.expand_dims(0.7 * far, list(range(2, len(levels))))
    own = [int(dice.integers(count)) for count in levels]
    places = [[at, *(n for n in range(count) if n != at)] for at, count in zip(own, levels, strict=True)]
    settings = tuple(TuneSetting(f"s{n}", f"flags.s{n}", tuple(2**at for at in row)) for n, row in enumerate(places))
    points = list(search.points(settings, 0))
    truth = {one: exp(float(speed[tuple(row[n] for row, n in zip(places, one, strict=True))])) for one in points}
    base = truth[(0,) * len(levels)]
    shift = {one: exp(float(dice.normal(0, 0.01))) for one in points}

    def repeat(point: Point, luck: Random) -> tuple[float, float]:
        spread = luck.gauss(0, noise) / (luck.gammavariate(1.5, 2) / 3) ** 0.5 / 3**0.5
        lost = luck.uniform(0.5, 0.8) if luck.random() < 0.05 else 1.0
        score = truth[point] * shift[point] * lost * exp(min(max(spread, -1.5), 1.5))
        return score, base / score

    whole = sum(start + REPEATS * base / one for one in truth.values())
    return World(settings, truth, repeat, lambda _: start, whole)


def _curve(axis: Any, dice: Any) -> Any:
    span, kind = abs(dice.normal(0, 0.5)), dice.integers(4)
    if kind == 0:
        rate = dice.uniform(0.1, 0.8)
        curve = span * (1 - np.exp(-axis / rate)) / (1 - np.exp(-1 / rate))
    elif kind == 1:
        curve = -4 * span * (axis - dice.uniform(0, 1)) ** 2
    elif kind == 2:
        curve = span * (axis > dice.uniform(0, 1))
    else:
        curve = dice.normal(0, 0.3, len(axis))
    return curve[::-1] if dice.random() < 0.5 else curve


def _together(one: Any, other: Any, dice: Any) -> Any:
    smooth = 4 * dice.normal() * np.outer(one - dice.uniform(0, 1), other - dice.uniform(0, 1))
    return 0.7 * smooth + 0.7 * dice.normal(0, 1, (len(one), len(other)))


def world_kinds() -> Iterator[tuple[tuple[int, ...], float, float, float]]:
    """The variations: settings, pairs, noise, seconds of a start."""
    for levels in SIZES:
        for pairs, noise, start in ((0.0, 0.03, 15.0), (0.1, 0.03, 15.0), (0.2, 0.03, 15.0), (0.1, 0.1, 1.0)):
            yield levels, pairs, noise, start


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    """The result of a search as a share of the world's best: after a quarter of the grid's time and at its end, and its
    cost.

    starts, time: shares of the grid's.
    """

    quarter: float
    end: float
    starts: float
    time: float


def searched(world: World, seed: int) -> SearchOutcome:
    dice, trials, serving = Random(seed), list[Trial](), None
    settings, known = world.settings, world.truth.__contains__
    design = sorted(search.design(settings, seed, known), key=lambda point: -world.predicted.get(point, 0.0))
    first = ((0,) * len(settings), *design)
    spent, early = 0.0, None
    while then := search.upcoming(settings, first, trials, known):
        rung, point = then
        drawn = [world.repeat(point, dice) for _ in range(search.repeats(rung))]
        took = sum(one[1] for one in drawn) + (0.0 if serving == point else world.start(point))
        if spent + took > world.whole / 4 and early is None and trials:
            early = search.best_point(settings, trials)
        trials.append(Trial(point, rung, Tried.MEASURED, tuple(one[0] for one in drawn), seconds=took))
        spent, serving = spent + took, point
    end, most = search.best_point(settings, trials), max(world.truth.values())
    assert end is not None
    starts = len({one.point for one in trials}) / len(world.truth)
    return SearchOutcome(world.truth[early or end] / most, world.truth[end] / most, starts, spent / world.whole)
