"""The requests of a trial and its score."""

from __future__ import annotations

import pytest

from sparkwright.domain.run import Level, Row, Run, RunConditions, Scrape
from sparkwright.domain.tuning import TuneGoal
from sparkwright.tune.score import Short, failures, least_memory, scores


def run(*rows: Row, goal: TuneGoal = TuneGoal.THROUGHPUT) -> Run:
    made = Short(goal, 4096, 0).workload(0, 1)
    scrapes = (Scrape(0.0, {}, {"a": 9, "b": 5}), Scrape(1.0, {}, {"a": 7}))
    return Run(
        "r-1", 0.0, made, RunConditions("", "m"), levels=(Level(made.levels[0], 0, 0.0, rows=rows, scrapes=scrapes),)
    )


@pytest.mark.parametrize("goal", list(TuneGoal))
def test_it_fits_the_context(goal: TuneGoal) -> None:
    """The longest request is no more than half of the recipe's context, whatever it is, and each rung repeats more."""
    for context in (512, 2048, 32768, 1_048_576):
        (level,) = Short(goal, context, 0).workload(0, 1).levels
        assert 0 < level.most_tokens <= context // 2, (goal, context)
    short = Short(goal, 0, 3)
    assert [short.workload(rung, 1).repeats for rung in range(3)] == [1, 1, 2]
    assert short.workload(0, 1).levels[0].pace.concurrency == 3


@pytest.mark.parametrize(
    ("goal", "pace", "requests"),
    [
        (TuneGoal.THROUGHPUT, 2560.0, 80),  # 8 requests of 64 tokens last 0.2 s
        (TuneGoal.THROUGHPUT, 50.0, 8),
        (TuneGoal.LATENCY, 15.0, 30),
        (TuneGoal.AGENTS, 6000.0, 40),  # 4 agents with 5 turns
        (TuneGoal.AGENTS, 1e9, 64),
    ],
)
def test_a_repeat_lasts_some_seconds(goal: TuneGoal, pace: float, requests: int) -> None:
    """A fast server is asked more often, up to 16 times; a slow one as before: its repeats are long enough."""
    assert Short(goal, 1024, 4, pace).workload(0, 1).levels[0].requests == requests


def test_scores() -> None:
    """Output tokens over the whole span, answers a second, turns a minute; failed requests give nothing."""
    rows = (
        Row(0, 0, 0.0, 0.0, first=0.5, end=2.0, output_tokens=100),
        Row(1, 0, 0.0, 2.0, first=0.5, end=2.0, output_tokens=100),
        Row(2, 0, 0.0, 0.0, end=1.0, kind="cut", error="cut"),
        Row(3, 0, 0.0, 0.0, end=90.0, output_tokens=9, warmup=True),
    )
    found = run(*rows)
    assert scores(found, TuneGoal.THROUGHPUT) == (50.0,)
    assert scores(found, TuneGoal.LATENCY) == (0.5,)
    assert scores(found, TuneGoal.AGENTS) == (30.0,)
    assert (failures(found), least_memory(found)) == (1, {"a": 7, "b": 5})


def test_nothing_answered() -> None:
    """No score, not a score of zero."""
    assert scores(run(Row(0, 0, 0.0, 0.0, end=1.0, kind="cut", error="cut")), TuneGoal.THROUGHPUT) == ()
