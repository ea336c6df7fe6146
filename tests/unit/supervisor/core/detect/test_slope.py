"""The robust line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkwright.supervisor.core.detect.leak import comeback, fit_slope, fit_trend

FIGURES = st.floats(-1e6, 1e6, allow_nan=False)


@given(slant=st.floats(-100, 100), level=FIGURES, count=st.integers(9, 30))
def test_a_line_is_found_exactly(slant: float, level: float, count: int) -> None:
    """All three thirds go its way."""
    points = [(float(x), level + slant * x) for x in range(count)]
    found = fit_trend(points)
    assert found.slope == pytest.approx(slant, abs=1e-6)
    assert found.noise == pytest.approx(0.0, abs=1e-3)
    assert found.least == pytest.approx(slant, abs=1e-6)


@given(outlier=st.floats(-1e9, 1e9), at=st.integers(0, 20))
def test_one_outlier_changes_little(outlier: float, at: int) -> None:
    """The median of all pairs does not care how far out it is."""
    points = [(float(x), 2.0 * x) for x in range(21)]
    points[at] = (float(at), outlier)
    assert fit_slope(points) == pytest.approx(2.0, abs=0.3)


@given(values=st.lists(FIGURES, min_size=1, max_size=20), same=FIGURES)
def test_it_never_fails(values: list[float], same: float) -> None:
    """It works also if all points have one x, or there is one point."""
    assert fit_slope([(same, value) for value in values]) == 0.0
    fit_trend([(float(x), value) for x, value in enumerate(values)])


def test_a_step_leaves_thirds_flat() -> None:
    """The whole has a slope; two of three parts have none."""
    found = fit_trend([(float(x), 0.0 if x < 15 else -10.0) for x in range(30)])
    assert found.least == 0.0


@pytest.mark.parametrize(
    ("values", "most"), [([], 0.0), ([5, 4, 3], 0.0), ([5, 3, 4, 2, 4.5], 2.5), ([1, 2, 0, 0.5], 1.0)]
)
def test_comeback_is_the_most_that_came_back(values: list[float], most: float) -> None:
    """The comeback is the gain above any earlier value."""
    assert comeback(values) == most
