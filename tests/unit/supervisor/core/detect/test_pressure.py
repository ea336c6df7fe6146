"""Stalls and swap: what counts is activity that lasts."""

import pytest

from sparkwright.domain.unknown import Unknown
from sparkwright.supervisor.core.detect.memory import Pressure
from unit.supervisor.core.detect.figures import START, sample


def stalls(values: list[float]) -> list[bool]:
    pressure, told = Pressure("spark-1"), []
    for number, value in enumerate(values):
        pressure.sample(sample(START + 5 * number, stall_full=value))
        told.append(pressure.stalls(0.0) is not None)
    return told


def swap_reports(pages: list[int]) -> list[bool]:
    pressure, told = Pressure("spark-1"), []
    for number, value in enumerate(pages):
        pressure.sample(sample(START + 5 * number, swap_pages=value))
        told.append(pressure.swaps(0.0) is not None)
    return told


def test_stalls_count_when_they_last() -> None:
    """Three samples above 1 %, and over only when it is idle."""
    assert stalls([5.0, 0.0, 5.0, 5.0, 0.0]) == [False] * 5
    assert stalls([2.0, 2.0, 2.0, 0.5, 0.05]) == [False, False, True, True, False]


def test_swap_that_is_full_and_still_is_no_trouble() -> None:
    """4.8 GB swapped out and nobody asks for them (PUL); a burst of writing out is none either."""
    assert swap_reports([1_200_000] * 10) == [False] * 10
    assert swap_reports([0, 50_000, 50_100, 50_200, 50_300]) == [False] * 5


def test_swap_in_use_is() -> None:
    """More than 256 pages a second three times in a row."""
    assert swap_reports([0, 2000, 4000, 6000, 6100]) == [False, False, False, True, False]


def test_a_restarted_node_begins_at_zero() -> None:
    """Counters that fall are no activity."""
    assert swap_reports([9_000_000, 0, 10, 20]) == [False] * 4


@pytest.mark.parametrize("unknown", [Unknown("", "this kernel does not tell it")])
def test_what_cannot_be_read_is_no_trouble(unknown: Unknown) -> None:
    """An unreadable value is no excuse to guess, either."""
    pressure = Pressure("spark-1")
    for number in range(5):
        pressure.sample(sample(START + number, stall_full=unknown, swap_pages=unknown))
    assert (pressure.stalls(0.0), pressure.swaps(0.0), pressure.rate) == (None, None, None)
