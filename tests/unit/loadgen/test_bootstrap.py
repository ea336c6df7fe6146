"""Intervals: exact where they can be checked by hand, and about as often right as they state."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkwright.loadgen import bootstrap
from sparkwright.loadgen.bootstrap import RepeatSample

FEW = st.lists(st.floats(0.001, 1000.0), min_size=1, max_size=60)


def sample(values: list[float]) -> RepeatSample:
    return RepeatSample(np.array(values), np.arange(len(values)))


def interval(values: list[float], sizes: list[int], place: int = 1) -> tuple[float, float]:
    drawn = bootstrap.weights(sizes, 1).requests
    value = bootstrap.statistics(np.array(values))[place]
    return bootstrap.interval(float(value), bootstrap.resampled(sample(values), drawn)[:, place])


def test_a_resample_is_as_large_as_what_it_is_drawn_from() -> None:
    """Requests are drawn from a single repeat; each line counts as many as there are."""
    drawn = bootstrap.weights([7], 1)
    assert drawn.requests.shape == (1000, 7)
    assert set(drawn.requests.sum(axis=1)) == {7.0}
    assert set(drawn.repeats.sum(axis=1)) == {1.0}


def test_repeats_are_drawn_first_then_their_requests() -> None:
    """A repeat that was not drawn gives no request; one that was drawn twice gives twice as many."""
    drawn = bootstrap.weights([3, 5], 1)
    of_first, of_second = drawn.requests[:, :3].sum(axis=1), drawn.requests[:, 3:].sum(axis=1)
    assert np.array_equal(of_first, 3 * drawn.repeats[:, 0])
    assert np.array_equal(of_second, 5 * drawn.repeats[:, 1])
    assert set(drawn.repeats[:, 0]) == {0.0, 1.0, 2.0}


def test_an_empty_repeat_does_no_harm() -> None:
    """All of its requests failed: what is drawn of it is nothing."""
    drawn = bootstrap.weights([0, 2], 1)
    resamples = bootstrap.resampled(sample([1.0, 3.0]), drawn.requests)
    assert 0 < len(resamples) < 1000  # those that drew the empty one twice are left out
    assert bootstrap.weights([0], 1).requests.shape == (1000, 0)


@settings(deadline=None)
@given(FEW, st.integers(0, 1000))
def test_a_weighted_statistic_is_that_of_the_values_written_out(values: list[float], seed: int) -> None:
    """Counting how often each value was drawn is the same as making the list."""
    counts = np.random.default_rng(seed).integers(0, 4, len(values)).astype(np.float32)
    if not counts.any():
        counts[0] = 1
    written = np.repeat(np.array(values), counts.astype(int))
    told = bootstrap.resampled(sample(values), counts[None, :])[0]
    assert told == pytest.approx(bootstrap.statistics(written), rel=1e-9)


def test_the_same_values_have_the_same_interval() -> None:
    """Chance comes from a fixed seed: a run reports the same whenever it is read."""
    values = [1.0, 2.0, 4.0, 8.0, 9.0]
    assert interval(values, [5]) == interval(values, [5])


def test_one_value_has_no_width() -> None:
    """Nothing is known of how it would vary, and no width is made up."""
    assert interval([2.5], [1]) == (2.5, 2.5)


@settings(deadline=None, max_examples=25)
@given(FEW)
def test_an_interval_holds_its_value(values: list[float]) -> None:
    """The interval holds its value, whatever the values are."""
    for place in range(4):
        low, high = interval(values, [len(values)], place)
        assert low <= bootstrap.statistics(np.array(values))[place] <= high


def test_repeats_that_differ_widen_the_interval() -> None:
    """A thousand requests of three repeats, each at its own speed, are three inspects the server, not a thousand."""
    rng = np.random.default_rng(3)
    apart = np.concatenate([rng.normal(middle, 0.01, 300) for middle in (1.0, 1.1, 1.2)])
    together = rng.permutation(apart)
    wide, narrow = (interval(list(values), [300, 300, 300]) for values in (apart, together))
    assert wide[1] - wide[0] > 3 * (narrow[1] - narrow[0])


def test_bins_agree_with_exact_counting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million token times are gathered in bins: the statistics of a resample move by less than half a percent."""
    rng = np.random.default_rng(5)
    many = RepeatSample(rng.lognormal(-4.0, 0.4, 30_000), np.sort(rng.integers(0, 300, 30_000)))
    drawn = bootstrap.weights([300], 1).requests[:40]
    binned = bootstrap.resampled(many, drawn)
    monkeypatch.setattr(bootstrap, "_EXACT", 10**9)
    assert binned == pytest.approx(bootstrap.resampled(many, drawn), rel=0.005)


def test_bins_of_one_value_a_request_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shorter way for values that are one for each request."""
    rng = np.random.default_rng(6)
    values = list(rng.lognormal(-2.0, 0.5, 3_000))
    drawn = bootstrap.weights([3_000], 1).requests[:40]
    binned = bootstrap.resampled(sample(values), drawn)
    monkeypatch.setattr(bootstrap, "_EXACT", 10**9)
    assert binned == pytest.approx(bootstrap.resampled(sample(values), drawn), rel=0.02)


@pytest.mark.full
def test_about_95_of_100_intervals_hold_the_truth() -> None:
    """The truth is the median of 0.1 s of a log-normal time to first token, 60 requests at a time."""
    rng = np.random.default_rng(7)
    runs = [rng.lognormal(np.log(0.1), 0.3, 60) for _ in range(120)]
    held = sum(low <= 0.1 <= high for low, high in (interval(list(values), [60]) for values in runs))
    assert 0.88 <= held / len(runs) <= 1.0
