"""The search for the highest rate, against servers that fail above a known one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkwright.domain.workload import RateSearch
from sparkwright.loadgen.slo import BestRate, Next, highest_rate, next_rate


def searched(search: RateSearch, limit: float) -> tuple[BestRate, list[float]]:
    """The search on a server that meets the SLO up to `limit`."""
    points: list[tuple[float, bool]] = []
    while isinstance(told := next_rate(search, points), Next):
        points.append((told.rate, told.rate <= limit))
        assert len(points) < 50
    return told, [rate for rate, _ in points]


@given(st.floats(1.0, 64.0), st.floats(0.02, 0.5))
def test_what_is_found_holds_and_a_little_more_does_not(limit: float, precision: float) -> None:
    """The found rate is within the wanted precision, whatever the server can do."""
    told, rates = searched(RateSearch(1.0, 128.0, precision), limit)
    assert told.rate is not None
    assert told.rate <= limit < told.rate * (1.0 + precision) * (1.0 + 1e-9)
    assert len(set(rates)) == len(rates)


def test_it_goes_up_by_doubling_and_overloads_the_server_late() -> None:
    """1, 2, 4, then between 4 and the first failure at 8."""
    _, rates = searched(RateSearch(1.0, 64.0, 0.1), 5.0)
    assert rates[:4] == [1.0, 2.0, 4.0, 8.0]
    assert all(4.0 < rate < 8.0 for rate in rates[4:])


def test_a_server_that_fails_at_the_lowest_rate_has_no_goodput() -> None:
    """None, with the reason; not the lowest rate."""
    told, rates = searched(RateSearch(2.0, 64.0), 1.0)
    assert told.rate is None
    assert "2/s" in told.why
    assert rates == [2.0]


def test_a_server_that_never_fails_is_measured_to_the_end() -> None:
    """The answer reports that there may be more."""
    told, rates = searched(RateSearch(1.0, 6.0), 100.0)
    assert (told.rate, rates) == (6.0, [1.0, 2.0, 4.0, 6.0])
    assert "highest rate" in told.why


def test_luck_above_a_failure_does_not_count() -> None:
    """It failed at 4: that it held at 6 once proves nothing."""
    assert highest_rate([(2.0, True), (4.0, False), (6.0, True)]) == 2.0
    assert highest_rate([]) is None


@pytest.mark.parametrize("points", [[(8.0, False)], [(4.0, False), (8.0, True)]])
def test_a_search_that_begins_with_a_failure_goes_down(points: list[tuple[float, bool]]) -> None:
    """A run that is resumed may know a high rate only."""
    assert next_rate(RateSearch(1.0, 64.0), points) == Next(1.0)
