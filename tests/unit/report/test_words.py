"""Figures as readers see them."""

import pytest

from sparkwright.domain.summary import METRICS, Interval
from sparkwright.domain.units import three_digits
from sparkwright.report.texts import TITLES, between, figure, seconds, tokens, with_percent
from unit.for_each import for_each


@for_each(
    "value, text",
    [(1188.4, "1,188"), (45.72, "45.7"), (6.0, "6.00"), (0.6123, "0.612"), (0.0, "0.00"), (0.00266, "0.00266")],
)
def test_numbers_keep_three_digits(value: float, text: str) -> None:
    """Neither false precision nor a figure that rounds to nothing."""
    assert three_digits(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0042, "4.20 ms"), (0.31, "310 ms"), (0.9997, "1.00 s"), (1.24, "1.24 s"), (996, "16 min 36 s")],
)
def test_times_have_the_unit_that_fits(value: float, text: str) -> None:
    """The times go from a client's lag to sixteen minutes of prefill at 980k."""
    assert seconds(value) == text


@for_each("count, text", [(0, "0"), (4096, "4K"), (1_048_576, "1M"), (240_000, "240k"), (1000, "1k"), (300, "300")])
def test_depths_read_as_people_write_them(count: int, text: str) -> None:
    """Powers of two with a large letter, thousands with a small one: they are not the same."""
    assert tokens(count) == text


def test_an_interval_of_one_value_is_none() -> None:
    """One repeat has no spread, and none is claimed."""
    assert between("ttft", Interval(0.31, 0.31, 0.31)) == ""
    assert with_percent("ttft", Interval(0.31, 0.31, 0.31)) == "310 ms"


def test_an_interval_names_its_unit_once_or_both() -> None:
    """`0.31 to 1.2 s` would be wrong where the low end is in milliseconds."""
    assert between("ttft", Interval(1.1, 1.0, 1.2)) == "1.00 to 1.20 s"
    assert between("ttft", Interval(1.1, 0.31, 1.2)) == "310 ms to 1.20 s"
    assert between("decode", Interval(40, 39, 42)) == "39.0 to 42.0"


def test_every_metric_has_a_title() -> None:
    """A metric that is added later cannot fall out of the tables unseen."""
    assert set(TITLES) == set(METRICS)
    assert all(figure(name, 0.5) for name in METRICS)
