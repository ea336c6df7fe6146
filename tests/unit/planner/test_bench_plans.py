"""The plans that `make bench` times: whole plans of shipped recipes, which ask nobody."""

import pytest
from bench_plans import BUSY, IDLE, fitting, shipped


@pytest.mark.full
def test_the_plans_that_are_timed_can_be_made() -> None:
    """Guards that `make bench` times whole plans of many recipes."""
    recipes = shipped()
    assert len(recipes) > 20
    first = next(one for one in recipes if fitting(one, IDLE))
    assert isinstance(fitting(first, BUSY), bool)
