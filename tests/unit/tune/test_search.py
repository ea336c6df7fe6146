"""The search on known landscapes: what it chooses, how little it tries, what each setting is worth."""

from __future__ import annotations

from math import exp
from random import Random

import pytest

from sparkwright.domain.tuning import Point, Trial, Tried, TuneSetting, scored
from sparkwright.tune import search
from sparkwright.tune.effects import effects

SETTINGS = (
    TuneSetting("threads", "flags.threads", (None, 1, 2, 4)),
    TuneSetting("batch", "serving.batched_tokens", (512, 64, 256, 2048)),
    TuneSetting("ubatch", "flags.ubatch-size", (None, 16, 64, 256, 1024)),
)
WORTH = ((0.0, -0.7, 0.0, 0.3), (0.0, -0.3, -0.1, 0.05), (0.0, -0.6, -0.2, 0.1, 0.0))
OWN = (0, 0, 0)


def true_score(point: Point) -> float:
    return 100 * exp(sum(WORTH[n][value] for n, value in enumerate(point)))


def anything(_: Point) -> bool:
    return True


def searched(seed: int, noise: float = 0.03, bad: frozenset[Point] = frozenset(), stop: int = 99) -> list[Trial]:
    """A whole search; points in `bad` do not start."""
    dice, trials = Random(seed), list[Trial]()
    first = (OWN, *search.design(SETTINGS, seed, anything))
    while len(trials) < stop and (then := search.upcoming(SETTINGS, first, trials, anything)):
        rung, point = then
        scores = tuple(true_score(point) * exp(dice.gauss(0, noise)) for _ in range(search.repeats(rung)))
        state = Tried.NOT_STARTED if point in bad else Tried.MEASURED
        trials.append(Trial(point, rung, state, () if point in bad else scores))
    return trials


@pytest.mark.full
def test_it_finds_the_best_with_few_starts() -> None:
    """The search reaches 95 % of the best of 80 settings in 19 of 20 seeds, with a third of the starts or fewer."""
    most = max(map(true_score, search.points(SETTINGS, 0)))
    shares = []
    for seed in range(20):
        trials = searched(seed)
        chosen = search.best_point(SETTINGS, trials)
        assert chosen is not None
        shares.append(true_score(chosen) / most)
        assert len({one.point for one in trials}) <= 80 / 3 and search.space_size(SETTINGS) == 80
    assert sum(share >= 0.95 for share in shares) >= 19, sorted(shares)[:6]


def test_the_next_trial_follows_from_those_before() -> None:
    """A search that is cut off anywhere continues as if it had not been."""
    whole = [(one.rung, one.point) for one in searched(5, noise=0.0)]
    first = (OWN, *search.design(SETTINGS, 5, anything))
    for cut in range(len(whole)):
        assert search.upcoming(SETTINGS, first, searched(5, noise=0.0, stop=cut), anything) == whole[cut]


def test_what_does_not_start_is_out() -> None:
    """It is tried once, never chosen, and another takes its place; with nothing measured there is no best."""
    best = max(search.points(SETTINGS, 0), key=true_score)
    trials = searched(1, bad=frozenset({best}))
    assert sum(one.point == best for one in trials) <= 1 and search.best_point(SETTINGS, trials) != best
    nothing = searched(1, bad=frozenset(search.points(SETTINGS, 0)))
    assert search.best_point(SETTINGS, nothing) is None and effects(SETTINGS, nothing) == ()


def test_what_is_clearly_worse_is_measured_once() -> None:
    """The recipe's own settings are measured fully, one after the other while they serve; half as fast ones once."""
    trials = searched(2)
    assert [one.rung for one in trials[: len(search.REPEATS)]] == [0, 1, 2]
    assert {one.point for one in trials[: len(search.REPEATS)]} == {OWN}
    slow = [point for point in {one.point for one in trials} if true_score(point) < 60]
    assert slow and all(sum(one.point == point for one in trials) == 1 for point in slow)


def test_one_outlier_does_not_decide() -> None:
    """A repeat that lost half its speed changes neither what is best nor that the point is measured on."""
    trials = [Trial(OWN, rung, Tried.MEASURED, (100.0,) * search.repeats(rung)) for rung in range(3)]
    trials += [Trial((3, 0, 0), 0, Tried.MEASURED, (120.0,)), Trial((3, 0, 0), 1, Tried.MEASURED, (60.0,))]
    trials.append(Trial((3, 0, 0), 2, Tried.MEASURED, (121.0, 119.0)))
    assert search.best_point(SETTINGS, trials) == (3, 0, 0)


def test_the_first_trial_only_finds_the_pace() -> None:
    """Its repeat is of another length; it counts only until its point was measured again."""
    first = Trial(OWN, 0, Tried.MEASURED, (50.0,))
    assert scored([first]) == {OWN: [50.0]}
    assert scored([first, Trial(OWN, 1, Tried.MEASURED, (100.0,))]) == {OWN: [100.0]}


def test_a_point_that_was_never_probed_is_not_the_best() -> None:
    """Probes come before the second measurement: a search that ends between them does not choose what has one."""
    trials = [Trial(OWN, rung, Tried.MEASURED, (100.0,) * search.repeats(rung)) for rung in range(3)]
    assert search.best_point(SETTINGS, [*trials, Trial((3, 0, 0), 0, Tried.MEASURED, (200.0,))]) == OWN


def test_the_design_is_balanced_and_safe() -> None:
    """Each value appears in it, refused points never do."""
    points = search.design(SETTINGS, 1, anything)
    for number, setting in enumerate(SETTINGS):
        assert {point[number] for point in points} == set(range(len(setting.values)))
    assert all(point[0] != 3 for point in search.design(SETTINGS, 1, lambda point: point[0] != 3))


@pytest.mark.full
def test_effects_have_their_sign_and_interval() -> None:
    """A setting that halves speed is seen; intervals hold the truth for most of the values, over seeds."""
    inside = total = 0
    for seed in range(5):
        for one in effects(SETTINGS, searched(seed)):
            number = next(n for n, setting in enumerate(SETTINGS) if setting.name == one.setting)
            real = exp(WORTH[number][SETTINGS[number].values.index(one.value)]) - 1
            if (one.setting, one.value) == ("threads", 1):
                assert -0.65 < one.worth < -0.3
            if one.low is not None and one.high is not None:
                inside, total = inside + (one.low - 0.06 <= real <= one.high + 0.06), total + 1
    assert inside / total > 0.8, (inside, total)
