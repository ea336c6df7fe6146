"""The end of a benchmark: what it exits with, and what its gates report."""

from dataclasses import replace

from fakes.measured import level, row, run
from sparkwright.cli.bench_text import BenchResult, done_json, done_text, exit_code
from sparkwright.domain.run import Run
from sparkwright.loadgen.gates import parse

GATES = parse("ttft <= 1.5 x baseline\nttft < 1s")


def measured(ttft: float, name: str = "r-new", model: str = "") -> Run:
    made = replace(run(level([row(ttft)] * 3)), id=name)
    return replace(made, conditions=replace(made.conditions, model=model)) if model else made


def test_a_gate_of_a_baseline_decides_the_exit_code() -> None:
    """The gate works like `gate RUN FILE --baseline`, in one go; times are written as people write them."""
    slow = BenchResult([measured(0.2)], GATES, baseline=measured(0.1, "r-old"))
    assert exit_code(slow) == 1
    assert "FAIL  ttft <= 1.5 x baseline: found 200 ms, expected <= 150 ms (1.5 x baseline)" in done_text(slow)
    assert "pass  ttft < 1s: found 200 ms, expected < 1 s" in done_text(slow)
    assert exit_code(BenchResult([measured(0.12)], GATES, baseline=measured(0.1, "r-old"))) == 0


def test_a_run_of_another_model_is_no_baseline() -> None:
    """The gate fails, and why is above it."""
    done = BenchResult([measured(0.1)], GATES, baseline=measured(0.1, "r-old", "another"))
    assert exit_code(done) == 1
    assert "no baseline: the models differ" in done_text(done)
    assert done_json(done)["no_baseline"][0][0].startswith("the models differ")
