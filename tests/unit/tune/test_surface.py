"""The expectation for points that were not measured, and its certainty."""

from __future__ import annotations

from math import exp, log

import pytest

from sparkwright.domain.tuning import Point, TuneSetting
from sparkwright.tune.surface import MeasuredPoint, measured_points, surface

BATCH = TuneSetting("batch", "serving.batched_tokens", (512, 64, 256, 1024, 2048))
KIND = TuneSetting("kind", "flags.kind", (None, "a", "b"))


def test_neighbours_are_alike_in_the_order_of_values() -> None:
    """A speed rises with the batch: 256, listed before 1024, is expected below it; 2048 above 512."""
    points = {(0, 0): 0.0, (1, 0): -1.0, (3, 0): 0.4}
    found = surface((BATCH, KIND), {point: MeasuredPoint(value, 1e-4) for point, value in points.items()})
    means = found.means([(0, 0), (2, 0), (4, 0)])
    assert means[(2, 0)] < means[(0, 0)] < means[(4, 0)]


def test_a_value_carries_over_to_other_points() -> None:
    """A kind's worth with one batch is expected of it with another; words have no order to carry it further."""
    known = {(0, 0): 0.0, (0, 1): 0.5, (1, 0): 0.0}
    found = surface((BATCH, KIND), {point: MeasuredPoint(value, 1e-4) for point, value in known.items()})
    means = found.means([(1, 0), (1, 1), (1, 2)])
    assert means[(1, 1)] > means[(1, 0)] + 0.2
    assert means[(1, 1)] > means[(1, 2)]


def test_what_was_measured_promises_less_than_what_was_not() -> None:
    """Expected improvement: little where a point is known well, more where nothing was measured."""
    known: dict[Point, MeasuredPoint] = {(0, 0): MeasuredPoint(0.0, 1e-6), (1, 0): MeasuredPoint(-1.0, 1e-6)}
    gains = surface((BATCH, KIND), known).gains([(0, 0), (1, 0), (4, 0)])
    assert gains[(1, 0)] < 1e-6 and gains[(0, 0)] < 0.01 < gains[(4, 0)]


def test_repeats_are_taken_by_their_median() -> None:
    """One repeat that lost half of its speed moves nothing; more repeats are surer; one alone is doubted the most."""
    found = measured_points({(0,): [100.0, 101.0, 50.0, 99.0, 100.0], (1,): [100.0, 100.0, 101.0], (2,): [100.0]})
    assert exp(found[(0,)].value) == pytest.approx(100.0)
    assert found[(0,)].variance < found[(1,)].variance < found[(2,)].variance
    assert found[(2,)].value == log(100.0)
