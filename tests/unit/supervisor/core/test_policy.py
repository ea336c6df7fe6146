"""Patience, scaled."""

from dataclasses import fields

from sparkwright.supervisor.core.state import Policy


def test_drills_scale_every_time_and_no_count() -> None:
    """A drill in a hundredth of the time gives up after as many launches as the real thing."""
    plain, scaled = Policy(allow_reboot=True), Policy(allow_reboot=True).scaled(0.01)
    for field in fields(Policy):
        before, after = getattr(plain, field.name), getattr(scaled, field.name)
        if isinstance(before, float) and field.name != "canary_limit":
            assert after == before * 0.01, field.name
    assert (scaled.canary_limit, plain.scaled(0.8).canary_limit) == (5.0, 8.0)  # an answer takes no less in a drill
    assert scaled.backoffs == (0.05, 0.3, 1.2, 6.0)
    assert scaled.windows == ((3, 18.0), (6, 216.0)) and scaled.allow_reboot


def test_the_defaults_are_those_that_are_promised() -> None:
    """5 s, 30 s, 2 min, 10 min; 3 in 30 min and 6 in 6 h; no reboot without the user's word."""
    policy = Policy()
    assert policy.backoffs == (5.0, 30.0, 120.0, 600.0)
    assert policy.windows == ((3, 1800.0), (6, 21600.0))
    assert policy.allow_reboot is False
