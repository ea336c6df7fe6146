"""The limit of a copy next to an engine that serves."""

from sparkwright.remote.programs.push_work import CopyPace

MIB = 1 << 20


def longest_burst(pace: CopyPace, pieces: int, now: float) -> int:
    """Pieces of a MiB that go before the first wait."""
    return next((n for n in range(pieces) if pace.ahead(MIB, now) > 0), pieces)


def test_a_stall_is_not_followed_by_a_burst() -> None:
    """Guards the engine's users: after ten seconds without a byte no more goes at once than before them."""
    pace = CopyPace(500_000_000)
    first = longest_burst(pace, 100, 100.0)
    assert 1 <= first < 12
    assert longest_burst(pace, 100, 110.0) <= first + 1


def test_the_mean_rate_is_the_limit() -> None:
    """A connection that waits as asked sends a MiB each time that the limit has one."""
    pace, now = CopyPace(100 * MIB), 5.0
    for _ in range(1000):
        now += max(0.0, pace.ahead(MIB, now))
    assert 9.9 < now - 5.0 <= 10.0


def test_without_a_limit_nothing_waits() -> None:
    assert longest_burst(CopyPace(0), 1000, 1.0) == 1000
