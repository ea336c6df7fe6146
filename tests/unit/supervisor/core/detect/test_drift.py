"""Acceptance and prefix hits against their own past."""

import random

from sparkwright.supervisor.core.detect.setting import Drift
from unit.supervisor.core.detect.figures import START, engine


def report_kinds(acceptances: list[float], hits: list[float] | None = None) -> list[str]:
    """One window a value: what is reported at each. Accepted tokens a step next to the first one."""
    drift, told = Drift(), []
    drafts = accepted = queried = found = 0.0
    for number, value in enumerate(acceptances):
        drafts, accepted = drafts + 400, accepted + 400 * value
        queried, found = queried + 50_000, found + 50_000 * (hits[number] if hits else 0.0)
        at = START + 10.0 * number
        drift.engine(engine(at, drafts=drafts, accepted_tokens=accepted, prefix_queries=queried, prefix_hits=found))
        verdicts = (drift.acceptance(at), drift.low(at), drift.prefix(at))
        told.append(" ".join(one.kind for one in verdicts if one))
    return told


def varied(count: int, mean: float, spread: float, seed: int = 7) -> list[float]:
    dice = random.Random(seed)
    return [min(max(dice.gauss(mean, spread), 0.0), 2 * mean) for _ in range(count)]


def test_acceptance_that_falls_for_three_windows_is_reported_and_taken_back() -> None:
    """Acceptance falls from 2.9 tokens a step to 2.1: more than the 24 % that came before garbled output."""
    told = report_kinds([*varied(20, 1.9, 0.05), 1.1, 1.1, 1.1, 1.1, 1.9, 1.9, 1.9])
    assert told[:22] == [""] * 22
    assert told[23] == "drift-acceptance"
    assert told[-1] == ""


def test_two_tokens_a_step_under_load_is_low_where_more_is_usual() -> None:
    """A precursor, too; with one drafted token two is all there can be."""
    assert "acceptance-low" in report_kinds([*varied(20, 2.2, 0.05), 0.9, 0.9, 0.9, 0.9])[-1]
    assert set(report_kinds([0.9] * 40)) == {""}


def test_content_makes_acceptance_vary() -> None:
    """Code against prose: within what this start has shown before, nothing is reported."""
    assert set(report_kinds(varied(300, 1.9, 0.3))) == {""}
    assert set(report_kinds([2.6, 2.5, 1.2, 1.3] * 60)) == {""}


def test_prefix_hits_that_vanish_are_reported() -> None:
    """Hits fall from 85 % to nothing for three windows; a project without prefixes has none to lose."""
    told = report_kinds([1.0] * 30, [*varied(25, 0.85, 0.03), 0.02, 0.0, 0.01, 0.0, 0.0])
    assert told[24] == ""
    assert told[-1] == "drift-prefix"
    assert set(report_kinds([1.0] * 60, varied(60, 0.2, 0.1))) == {""}
    assert set(report_kinds([1.0] * 60, [0.9, 0.4, 0.8, 0.3, 0.9, 0.0] * 10)) == {""}


def test_an_engine_that_counts_again_is_followed() -> None:
    """Counters that fall are those of another start."""
    drift = Drift()
    drift.engine(engine(START, drafts=9000.0, accepted_tokens=9000.0))
    drift.engine(engine(START + 1, drafts=10.0, accepted_tokens=5.0))
    drift.engine(engine(START + 2, drafts=410.0, accepted_tokens=805.0))
    assert list(drift._accepted.values) == [3.0]


def test_an_engine_without_these_counters_is_silent() -> None:
    """None is no zero."""
    drift = Drift()
    for number in range(50):
        drift.engine(engine(START + number, generation_tokens=number * 100.0))
    assert (drift.acceptance(1.0), drift.low(1.0), drift.prefix(1.0)) == (None, None, None)
