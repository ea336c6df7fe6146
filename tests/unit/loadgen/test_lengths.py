"""Lengths of requests."""

import statistics
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkwright.domain.workload import Length
from sparkwright.loadgen.sessions import sample


def test_fixed_is_fixed() -> None:
    """The ends are the same: every request has that length."""
    assert {sample(Length(512, 512), Random(n)) for n in range(20)} == {512}


def test_uniform_fills_its_range() -> None:
    """Both ends occur, and the middle is in the middle."""
    dice = Random(1)
    found = [sample(Length(10, 20), dice) for _ in range(2000)]
    assert (min(found), max(found)) == (10, 20)
    assert statistics.mean(found) == pytest.approx(15, abs=0.3)


def test_a_median_is_kept_with_a_long_tail() -> None:
    """Half are shorter than the median, the mean is longer, and few are cut at an end."""
    dice = Random(2)
    found = [sample(Length(64, 16384, 1500), dice) for _ in range(4000)]
    assert statistics.median(found) == pytest.approx(1500, rel=0.08)
    assert statistics.mean(found) > 1600
    assert sum(value in (64, 16384) for value in found) < 80


@given(st.integers(1, 5000), st.integers(1, 5000), st.data())
def test_never_outside(one: int, other: int, data: st.DataObject) -> None:
    """No request is shorter or longer than its range reports."""
    low, high = min(one, other), max(one, other)
    median = data.draw(st.sampled_from([0, (low + high) // 2]))
    length = Length(low, high, median if low < median < high else 0)
    assert low <= sample(length, Random(data.draw(st.integers()))) <= high
