"""The last day: reports condensed into minutes, stored, bounded, read again."""

from dataclasses import replace
from pathlib import Path

import pytest

from sparkwright.adapters.sqlite.database import opened
from sparkwright.adapters.sqlite.samples import keep_minute, minutes_since
from sparkwright.domain.history import KEPT, MINUTE, Minute, NodeMinute
from sparkwright.domain.live import DeploymentState, Live, LiveEngine, LiveNode
from sparkwright.supervisor.core.minutes import Minutes

BEGAN = 1_800_000_000.0  # the beginning of a minute
NODE = LiveNode("spark-1", BEGAN, True, 100, 40, gpu_temperature=50.0, gpu_power=30.0)


def make_live(at: float, tokens: float | None = None, phase: DeploymentState = DeploymentState.READY) -> Live:
    engine = None if tokens is None else LiveEngine(at, running=2.0, kv_usage=0.5, generation_tokens=tokens)
    return Live(at, "chat", phase, BEGAN, nodes=(replace(NODE, at=at),), engine=engine)


def minutes_of(reports: list[Live]) -> list[Minute]:
    made = Minutes()
    return [minute for report in reports if (minute := made.add(report))]


def test_a_minute_has_the_rate_of_its_tokens_and_the_means_of_its_nodes() -> None:
    """Guards figures: 50 tokens a second by the counter, whatever the counter's start; unknown stays unknown."""
    (minute,) = minutes_of([make_live(BEGAN + 2 * n, 1000.0 + 100 * n) for n in range(31)])
    assert (minute.at, minute.state, minute.serving, minute.decode) == (BEGAN, "ready", 1.0, pytest.approx(50.0))
    assert (minute.prefill, minute.running, minute.kv) == (None, 2.0, 0.5)
    assert minute.nodes == (NodeMinute("spark-1", 40.0, 100.0, 50.0, 30.0),)
    (minute,) = minutes_of([make_live(BEGAN), make_live(BEGAN + MINUTE)])
    assert (minute.decode, minute.running, minute.kv) == (None, None, None)


def test_a_short_stall_colours_its_minute() -> None:
    """Guards the strip: two seconds of an outage are seen, and so is the share of the minute that served."""
    reports = [
        make_live(BEGAN + 2 * n, phase=DeploymentState.DRAINING if n == 7 else DeploymentState.READY) for n in range(31)
    ]
    (minute,) = minutes_of(reports)
    assert (minute.state, minute.serving) == ("draining", pytest.approx(29 / 30))


def test_a_counter_that_fell_and_a_gap_make_no_rate() -> None:
    """Guards against speeds that never were: a restart of the engine, a supervisor that was away, a clock set back."""
    fell = [
        make_live(BEGAN, 1000.0),
        make_live(BEGAN + 2, 1100.0),
        make_live(BEGAN + 4, 0.0),
        make_live(BEGAN + 6, 100.0),
    ]
    (minute,) = minutes_of([*fell, make_live(BEGAN + MINUTE)])
    assert minute.decode == pytest.approx(50.0)
    away = [make_live(BEGAN, 0.0), make_live(BEGAN + 50, 90_000.0), make_live(BEGAN + MINUTE)]
    assert minutes_of(away)[0].decode is None
    assert minutes_of([make_live(BEGAN + MINUTE), make_live(BEGAN)]) == []


def test_a_day_is_kept_and_no_more(tmp_path: Path) -> None:
    """Guards the bound: two days of minutes leave one; what was written is read again, gaps stay gaps."""
    store = tmp_path / "store.sqlite"
    assert minutes_since(store, "chat", 0.0) == ()
    connection = opened(store)
    at = int(BEGAN)
    for number in range(0, 2 * 24 * 60, 10):
        if not 200 <= number < 400:
            keep_minute(
                connection, Minute("chat", at + number * MINUTE, "ready", 1.0, nodes=(NodeMinute("spark-1", 4.0),))
            )
    keep_minute(connection, Minute("other", at + 2 * 24 * 3600, "failed", 0.0))
    found = minutes_since(store, "chat", 0.0)
    assert found[-1].nodes == (NodeMinute("spark-1", 4.0),) and found[-1].at - found[0].at <= KEPT
    assert len(found) == KEPT // 600 and minutes_since(store, "other", 0.0)[0].state == "failed"
    assert minutes_since(store, "chat", found[-1].at) == found[-1:]
