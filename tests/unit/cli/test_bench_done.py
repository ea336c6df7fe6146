"""The end of a benchmark: what it exits with, and what its gates report."""

from dataclasses import replace

from fakes.measured import make_level, make_row, run
from sparkwright.cli.bench_text import bench_outcome
from sparkwright.domain.run import Run
from sparkwright.loadgen.gates import parse

GATES = parse("ttft <= 1.5 x baseline\nttft < 1s")


def measured(ttft: float, name: str = "r-new", model: str = "") -> Run:
    made = replace(run(make_level([make_row(ttft)] * 3)), id=name)
    return replace(made, conditions=replace(made.conditions, model=model)) if model else made


def test_a_gate_of_a_baseline_decides_the_exit_code() -> None:
    """The gate works like `gate RUN FILE --baseline`, in one go; times are written as people write them."""
    _, text, code = bench_outcome([measured(0.2)], GATES, baseline=measured(0.1, "r-old"))
    assert code == 1
    assert "FAIL  ttft <= 1.5 x baseline: found 200 ms, expected <= 150 ms (1.5 x baseline)" in text
    assert "pass  ttft < 1s: found 200 ms, expected < 1 s" in text
    assert bench_outcome([measured(0.12)], GATES, baseline=measured(0.1, "r-old"))[2] == 0


def test_a_run_of_another_model_is_no_baseline() -> None:
    """The gate fails, and why is above it."""
    document, text, code = bench_outcome([measured(0.1)], GATES, baseline=measured(0.1, "r-old", "another"))
    assert code == 1
    assert "no baseline: the models differ" in text
    assert document["no_baseline"][0][0].startswith("the models differ")
