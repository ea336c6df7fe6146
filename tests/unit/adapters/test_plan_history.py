"""Predictions next to what was measured: kept on the disk, scored by node."""

from dataclasses import replace
from pathlib import Path

import pytest

from sparkwright.adapters.plan_history import FilePlanHistory
from sparkwright.app.bench.prediction import compare_with_plan
from sparkwright.app.plan.planning import make_plan
from sparkwright.app.serve.figures import remember_prediction
from sparkwright.cli.plan_history import history_json, history_text
from sparkwright.domain.calibration import Calibration, Conditions
from sparkwright.domain.ledger import KV_POOL, WEIGHTS, LedgerLine, MemoryLedger, Origin
from sparkwright.domain.plan_history import DECODE, START, PredictionError, compared, promised, scores, started
from sparkwright.domain.run import Level, Reads, Row, Run, RunConditions
from sparkwright.domain.units import GIB
from sparkwright.domain.verdict import Estimate, Load, Speed
from sparkwright.domain.workload import Length, LevelPlan, Pace, Single, Workload
from unit.app.plan.test_plan import state_of_nodes
from unit.app.scene import make_scene, request

ROW = PredictionError(
    1.0, "v4", "v4@1m", "vllm 0.33.0", "spark-1", WEIGHTS, 70.0 * GIB, 68.0 * GIB, 72.0 * GIB, 71.0 * GIB
)
UNDER = Conditions("v4@1m", "org/v4", "vllm 0.33.0", "tp 2", "", "", node="spark-1")


def ledger(origin: Origin = Origin.COMPUTED) -> MemoryLedger:
    weights = LedgerLine(WEIGHTS, 70 * GIB, origin, "", low=68 * GIB, high=72 * GIB)
    pool = LedgerLine(KV_POOL, 15 * GIB, origin, "", low=12 * GIB, high=18 * GIB)
    return MemoryLedger("spark-1", LedgerLine("pool", 120 * GIB, Origin.MEASURED, ""), (weights, pool))


def test_what_both_have_is_compared() -> None:
    """A figure that the engine did not print, or that the plan did not know, is no row."""
    logged = Calibration(UNDER, weights=71 * GIB, kv=20 * GIB, at=5.0, source="v4")
    rows = tuple(compared(ledger(), logged))
    assert [(one.quantity, one.inside, one.learned) for one in rows] == [
        (WEIGHTS, True, False),
        (KV_POOL, False, False),
    ]
    assert rows[0].off == pytest.approx(70 / 71 - 1)
    assert [one.quantity for one in compared(ledger(), replace(logged, kv=None))] == [WEIGHTS]
    assert all(one.learned for one in compared(ledger(Origin.CALIBRATED), logged))


def test_the_time_of_a_start_is_compared() -> None:
    """Guards loading times: a start that nobody watched from its beginning says nothing."""
    said, watched = Estimate(120.0, 60.0, 300.0), Calibration(UNDER, at=5.0, phases=(("load", 9.0), ("answer", 200.0)))
    (row,) = started(said, watched)
    assert (row.quantity, row.measured, row.inside, row.learned) == (START, 200.0, True, False)
    assert "3 min 20 s" in history_text((row,)) and "1 of 1" in history_text((row,))
    (again,) = started(replace(said, why=("measured at the start of 2026-11-21",)), watched)
    assert again.learned
    assert not list(started(said, replace(watched, phases=()))) and not list(started(Estimate(0.0), watched))


def test_scores_tell_first_predictions_from_corrected_ones() -> None:
    """Guards a planner that looks good because it repeats what the last start measured."""
    rows = (ROW, replace(ROW, predicted=50.0 * GIB, low=49.0 * GIB, high=51.0 * GIB), replace(ROW, learned=True))
    first, corrected = scores(rows)
    assert (first.learned, first.count, first.inside) == (False, 2, 1) and first.worst > 0.29
    assert (corrected.learned, corrected.count, corrected.inside) == (True, 1, 1)


def test_kept_on_the_disk(tmp_path: Path) -> None:
    """Rows come back as they were; a line that is cut costs itself only, and the file has a bound."""
    history = FilePlanHistory(tmp_path / "state" / "plan-history.jsonl")
    assert history.all() == () and history.add((ROW,)) == ""
    with (tmp_path / "state" / "plan-history.jsonl").open("a") as file:
        file.write('{"at": 1, "depl')
    assert history.all() == (ROW,)
    assert history.add((replace(ROW, at=2.0),)) == "" and [one.at for one in history.all()] == [1.0, 2.0]
    assert history.add((ROW,) * 3000) == "" and len(history.all()) == 2000


def test_the_screen() -> None:
    """The screen has node and quantity first, then the latest figures with their ranges."""
    shown = history_text((ROW, replace(ROW, measured=80.0 * GIB)))
    assert "spark-1  weights" in shown and "1 of 2" in shown and "-12.5%, outside" in shown
    assert "nothing to compare yet" in history_text(())
    assert history_json((ROW,))["rows"][0]["inside"] is True


def test_a_start_keeps_the_plan_next_to_the_engines_figures(tmp_path: Path) -> None:
    """Each node that has one rank of its own; what several ranks share cannot be told apart."""
    history = FilePlanHistory(tmp_path / "plan-history.jsonl")
    there = replace(make_scene().services, history=history)
    plan = replace(make_plan(there, request(), state_of_nodes("spark-1", "spark-2")), ledgers=(ledger(),))
    figures = Calibration(UNDER, weights=71 * GIB, kv=14 * GIB, at=5.0, source="v4")
    remember_prediction(there, plan, figures, ("spark-1", "spark-1"))
    assert history.all() == ()
    remember_prediction(there, plan, figures, ("spark-1", "spark-2"))
    assert [(one.quantity, one.inside) for one in history.all()] == [(WEIGHTS, True), (KV_POOL, True)]
    load = Estimate(120.0, 60.0, 300.0)
    timed = replace(plan, speeds=(Speed(Load(), Estimate(40.0, 30.0, 50.0), *[Estimate(0.0)] * 3, load),))
    remember_prediction(there, timed, replace(figures, phases=(("server", 100.0),)), ("spark-1", "spark-2"))
    assert [one.quantity for one in history.all()][2:] == [WEIGHTS, KV_POOL, START, DECODE]


def bench_run(concurrency: int = 1, prompt: int = 2048, ours: bool = True) -> Run:
    """Three requests of one user that wrote 20 tokens in a second."""
    reads = Reads((0.0, 1.0), (1, 20))
    rows = tuple(Row(n, 0, 0.0, 0.0, reads=reads, prompt_tokens=prompt, output_tokens=21) for n in range(3))
    plan = LevelPlan("one", Single(prompt=Length(prompt, prompt), output=Length(21, 21)), Pace(concurrency=concurrency))
    conditions = RunConditions("v4", "org/v4", ours=ours, deployment="v4")
    return Run("r-1", 9.0, Workload("quick", "quick", (plan,)), conditions, levels=(Level(plan, 1, 9.0, rows=rows),))


def test_a_bench_is_compared_with_what_the_plan_promised(tmp_path: Path) -> None:
    """Guards self-measurement of speed: only one user's short prompts, on our own deployment, count."""
    history = FilePlanHistory(tmp_path / "plan-history.jsonl")
    assert compare_with_plan(history, bench_run()) is None
    promise = next(promised(Estimate(25.0, 22.0, 30.0), Calibration(UNDER, at=5.0, source="v4")))
    assert history.add((promise,)) == "" and not list(promised(Estimate(0.0), Calibration(UNDER)))
    for other in (bench_run(4), bench_run(prompt=60_000), bench_run(ours=False)):
        assert compare_with_plan(history, other) is None
    found = compare_with_plan(history, bench_run())
    assert found and (found.measured, found.inside) == (20.0, False) and history.all()[-1] == found
    assert "20.0 tokens/s" in history_text((found,)) and "+25.0%, outside" in history_text((found,))
