"""Leaks are announced when a tenth of the headroom is gone, and nothing else is."""

import pytest

from sparkwright.supervisor.core.detect.leak import Leak
from sparkwright.supervisor.core.events import Fault
from unit.supervisor.core.detect.figures import GIB, MIB
from unit.supervisor.core.detect.traces import EVERY, Trace, healthy, leaking

FLOOR = 4 * GIB


def announced(trace: Trace, hours: float, a_request: float = 0.0, every: float = EVERY) -> tuple[float, Fault] | None:
    """The seconds until the leak is announced, and the fault. a_request: seconds between two finished requests."""
    leak, time = Leak("spark-1", every / EVERY), 0.0
    while time < hours * 3600:
        finished = time // a_request if a_request else None
        leak.sample(int(trace(time)), finished, FLOOR, 1e9 + time)
        if fault := leak.verdict(FLOOR, 1e9 + time):
            return time, fault
        time += every
    return None


@pytest.mark.full
@pytest.mark.parametrize(("per_hour", "within_part"), [(13.3, 0.3), (40.0, 0.3), (4.0, 0.3), (1.0, 0.35)])
def test_a_leak_is_announced_early(per_hour: float, within_part: float) -> None:
    """UCX's 10 -> 6 GB in 18 minutes, one three times as fast, and slow ones: much of the headroom is left."""
    found = announced(leaking(1, per_hour), 8)
    assert found is not None
    after, fault = found
    gone = after / 3600 * per_hour / 8
    assert 0.05 < gone < within_part
    assert (1 - gone) * 8 / per_hour * 60 > 5
    assert "left until the floor of 4.0 GiB" in fault.what


def test_a_clean_leak_is_announced_when_a_tenth_is_gone() -> None:
    """A leak without noise is announced just when it is the tenth."""
    found = announced(lambda time: 12 * GIB - time / 3600 * 8 * GIB, 1)
    assert found is not None
    assert 0.09 <= found[0] / 3600 < 0.105


@pytest.mark.parametrize("per_hour", [30.0, 40.0])
def test_a_leak_that_hurries_is_announced_before_a_tenth_is_gone(per_hour: float) -> None:
    """A quarter of an hour is left: a minute and a half of it are enough to be sure, noise or not."""
    for seed in range(3):
        found = announced(leaking(seed, per_hour), 1)
        assert found is not None
        assert found[0] <= 90


def test_a_leak_of_14_mb_a_request_is_measured_by_request() -> None:
    """Report 004's figure, five requests in three seconds."""
    found = announced(lambda time: 12 * GIB - time // 0.6 * 14 * MIB, 1, a_request=0.6)
    assert found is not None
    assert "(14.0 MiB a request)" in found[1].what


def test_a_leak_that_begins_after_hours_is_found() -> None:
    """A window knows nothing of what was hours before."""
    found = announced(leaking(3, 10.0, begins=1.5 * 3600), 3)
    assert found is not None
    assert 1.5 * 3600 < found[0] < 1.5 * 3600 + 1500


def test_a_leak_with_pauses_is_found_by_its_requests() -> None:
    """Traffic for two minutes, then three without: by the clock it is a staircase, by requests it is a line."""

    def asked(time: float) -> float:
        return time // 300 * 120 + min(time % 300, 120)

    leak = Leak("spark-1")
    for look in range(1440):
        time = look * EVERY
        leak.sample(int(12 * GIB - asked(time) * 14 * MIB / 4), asked(time), FLOOR, 1e9 + time)
        if fault := leak.verdict(FLOOR, 1e9 + time):
            break
    assert fault is not None
    assert "3.5 MiB a request" in fault.what


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4))
def test_hours_of_healthy_noise_are_silent(seed: int) -> None:
    """Six hours at a time with jitter on every scale."""
    assert announced(healthy(seed * 10), 6, every=20.0) is None


@pytest.mark.full
@pytest.mark.parametrize("seed", range(3))
def test_steps_of_load_are_silent(seed: int) -> None:
    """Lazily allocated buffers, a second model's cache, a bigger batch: each takes up to 2 GiB once and for good."""
    steps = ((600.0 + 100 * seed, 2.0), (2400.0, 0.7), (2500.0 + 500 * seed, 1.2), (9000.0, 1.5))
    assert announced(healthy(seed, steps, level=16.0), 4, every=20.0) is None


def test_what_levels_off_is_no_leak() -> None:
    """An allocator's warm-up takes less and less."""
    assert announced(lambda time: (12 + 2 * 2 ** (-time / 40)) * GIB, 3, every=20.0) is None
    assert announced(lambda time: (12 + 0.9 * 2 ** (-time / 400)) * GIB, 3, every=20.0) is None


def test_load_that_comes_and_goes_is_no_leak() -> None:
    """Ten minutes of work take 2 GiB and give them back."""
    assert announced(lambda time: (12 - 2 * (time % 1200 < 600)) * GIB, 4, every=20.0) is None
    assert announced(lambda time: (12 - abs(time % 1200 - 600) / 400) * GIB, 4, every=20.0) is None


@pytest.mark.full
def test_a_slow_drift_with_days_left_is_not_announced() -> None:
    """0.1 GiB an hour from 12 GiB: days are left when a tenth is gone (time runs six times as fast here)."""
    assert announced(lambda time: 12 * GIB - time / 3600 * 0.1 * GIB, 24, every=30.0) is None


@pytest.mark.full
def test_it_is_over_when_it_stops() -> None:
    """A leak whose cause has gone is taken back after a while."""
    leak, held = Leak("spark-1"), []
    for look in range(2000):
        time = look * EVERY
        leak.sample(int(12 * GIB - min(time, 1000.0) / 3600 * 12 * GIB), None, FLOOR, 1e9 + time)
        held.append(leak.verdict(FLOOR, 1e9 + time) is not None)
    assert any(held)
    assert not held[-1]
