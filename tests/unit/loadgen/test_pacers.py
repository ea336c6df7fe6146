"""The times at which requests begin."""

import statistics
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkwright.domain.workload import Arrival, Pace
from sparkwright.loadgen.sessions import starts

RATES = st.floats(0.01, 500)


def open_loop(arrival: Arrival, rate: float, **more) -> Pace:
    return Pace(arrival, 0, rate, **more)


def test_a_closed_loop_has_no_times() -> None:
    """There a request begins when another ends, which nobody knows before."""
    assert starts(Pace(), 10) is None


def test_a_rate_is_needed() -> None:
    """An open loop without a rate would begin all at once or never."""
    with pytest.raises(ValueError, match="rate above 0"):
        starts(open_loop(Arrival.POISSON, 0.0), 10)


def test_constant_is_even() -> None:
    """Two a second are half a second apart."""
    assert starts(open_loop(Arrival.CONSTANT, 2.0), 4) == (0.0, 0.5, 1.0, 1.5)


def test_bursts_begin_together_and_keep_the_mean_rate() -> None:
    """Four at once at two a second: the next four come two seconds later."""
    assert starts(open_loop(Arrival.BURSTS, 2.0, burst=4), 9) == (0.0,) * 4 + (2.0,) * 4 + (4.0,)


@pytest.mark.full
@given(RATES, st.integers(0, 1000))
def test_poisson_has_its_rate_and_its_irregularity(rate: float, seed: int) -> None:
    """The mean gap over many is 1 / rate and gaps scatter as much as they are long, as independent users' do."""
    at = starts(open_loop(Arrival.POISSON, rate), 4000, seed)
    gaps = [after - before for before, after in pairwise(at)]
    assert statistics.mean(gaps) * rate == pytest.approx(1, rel=0.08)
    assert statistics.stdev(gaps) * rate == pytest.approx(1, rel=0.12)


def test_chance_is_the_seed_s() -> None:
    """A run can be repeated, and two repeats differ."""
    pace = open_loop(Arrival.POISSON, 3.0)
    assert starts(pace, 50, 7) == starts(pace, 50, 7) != starts(pace, 50, 8)


@given(st.floats(1, 10), st.floats(1, 10))
def test_a_ramp_begins_and_ends_at_its_rates(first: float, last: float) -> None:
    """The first gaps are those of the first rate, the last gaps those of the last one; the line between is straight."""
    at = starts(open_loop(Arrival.RAMP, first, to_rate=last), 2001)
    whole = at[-1]
    assert 1 / at[1] == pytest.approx(first, rel=0.05)
    assert 1 / (whole - at[-2]) == pytest.approx(last, rel=0.05)
    assert whole * (first + last) / 2 == pytest.approx(2000)
    until_half = sum(time < whole / 2 for time in at)
    assert until_half == pytest.approx((3 * first + last) / 4 * whole / 2, rel=0.01)


@given(st.sampled_from([a for a in Arrival if a is not Arrival.CLOSED]), RATES, RATES, st.integers(0, 200))
def test_times_rise_from_zero(arrival: Arrival, rate: float, to_rate: float, count: int) -> None:
    """Never negative, never backwards, as many as asked for, the first at once."""
    at = starts(open_loop(arrival, rate, burst=3, to_rate=to_rate), count)
    assert len(at) == count
    assert at[:1] in ((), (0.0,))
    assert all(before <= after for before, after in pairwise(at))
