"""Rates and shares over the last minutes."""

from sparkwright.domain.live import LiveEngine
from sparkwright.report.rates import SPAN, EngineHistory, Rate


def test_a_rate_is_of_the_last_seconds_and_survives_a_restart() -> None:
    """Guards that a counter that begins again at 0 is never a negative rate, nor a huge one."""
    rate = Rate()
    assert rate.value is None
    for at, total in ((0.0, 100.0), (2.0, 300.0), (4.0, 500.0)):
        rate.add(at, total)
    assert rate.value == 100.0
    rate.add(6.0, 10.0)
    assert rate.value == 100.0
    rate.add(8.0, 50.0)
    assert rate.value == 20.0
    rate.add(8.0, 90.0)
    rate.add(9.0, None)
    assert len(rate.points) == 3


def test_points_are_kept_for_the_span_only() -> None:
    """Guards that a console that runs for weeks does not grow."""
    rate = Rate()
    for at in range(0, 4000, 2):
        rate.add(float(at), at * 5.0)
    assert len(rate.points) <= SPAN / 2 + 1 and rate.value == 5.0


def test_what_an_engine_does_not_count_stays_unknown() -> None:
    """Guards that an engine without a drafter or a prefix cache shows no share, not 0."""
    history = EngineHistory()
    for at in (1.0, 3.0):
        history.add(LiveEngine(at, generation_tokens=at * 10))
    history.add(None)
    assert history.decode.value == 10.0 and history.prefill.value is None
    assert history.hits.value is history.accepted.value is None
