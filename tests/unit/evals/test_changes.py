"""Two evaluations compared."""

from sparkwright.domain.evaluation import Evaluation, ProbeOutcome, ProbeState
from sparkwright.domain.run import Run, RunConditions
from sparkwright.domain.workload import Workload
from sparkwright.evals.changes import changes, refused
from sparkwright.evals.score import wilson_score


def run(*outcomes: ProbeOutcome, version: int = 1, seed: int = 1, simulated: bool = False) -> Run:
    work = Workload("eval-probes", "Probes", (), version, seed=seed)
    return Run(
        "r-1", 0.0, work, RunConditions("url", "m", simulated=simulated), evaluation=Evaluation("probes", outcomes)
    )


def test_states_and_scores() -> None:
    """A failure is worse than a pass; what was not judged is unclear; scores differ only beyond their intervals."""
    rows = {
        "a": (ProbeState.PASSED, ProbeState.FAILED, "worse"),
        "b": (ProbeState.BROKEN, ProbeState.PASSED, "better"),
        "c": (ProbeState.PASSED, ProbeState.SKIPPED, "unclear"),
        "d": (ProbeState.FAILED, ProbeState.FAILED, "same"),
    }
    base = run(
        *(ProbeOutcome(name, row[0]) for name, row in rows.items()), ProbeOutcome("only here", ProbeState.PASSED)
    )
    new = run(*(ProbeOutcome(name, row[1]) for name, row in rows.items()))
    assert [one.verdict for one in changes(base, new)] == [row[2] for row in rows.values()]
    for other, verdict in ((52, "same"), (70, "better"), (30, "worse")):
        pair = (run(ProbeOutcome("s", ProbeState.SCORED, score=wilson_score(good, 100))) for good in (50, other))
        assert changes(*pair)[0].verdict == verdict


def test_what_is_not_compared() -> None:
    """Other versions, seeds, benchmarks; simulated with real only on request."""
    base = run()
    assert refused(base, base, False) == ()
    assert "different things" in refused(base, run(version=2), False)[0]
    assert "seeds differ" in refused(base, run(seed=2), False)[0]
    assert "simulated" in refused(base, run(simulated=True), False)[0]
    assert refused(base, run(simulated=True), True) == ()
    benchmark = Run("r-2", 0.0, base.workload, base.conditions)
    assert "r-2 is a benchmark" in refused(base, benchmark, False)[0]
