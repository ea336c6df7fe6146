"""The results of scripted soaks: each fault is found and nothing else; healthy hours raise nothing."""

from dataclasses import replace

import pytest

from sparkwright.domain.evaluation import Evaluation, Event, ProbeOutcome, ProbeState
from sparkwright.evals.changes import changes
from sparkwright.loadgen.endurance import as_outcomes, endurance, is_soak
from sparkwright.loadgen.gates import judge_gates, parse
from sparkwright.loadgen.stats import summarize
from sparkwright.loadgen.trend import FEWEST, fit_trend, thinned
from sparkwright.loadgen.trend import changes as cuts
from unit.for_each import for_each
from unit.loadgen.soaks import SoakScript, soak

HEALTHY = 200
GIB = 2**30


def finding_kinds(script: SoakScript, *outcomes: ProbeOutcome, events: tuple[Event, ...] = ()) -> list[str]:
    return [one.kind for one in endurance(soak(script, outcomes, events)).findings]


@pytest.mark.full
@for_each(
    "script, expected",
    [
        (SoakScript(), []),
        (SoakScript(step=3.0), []),
        (SoakScript(leak=1.0), ["leak"]),
        (SoakScript(leak=1.0, process=True), ["leak"]),
        (SoakScript(slow=1.4), ["drift", "drift"]),
        (SoakScript(slow=0.6), []),
        (SoakScript(errors=3), ["errors"]),
        (SoakScript(reset=True), ["restart"]),
    ],
)
def test_each_fault_is_found_and_no_other(script: SoakScript, expected: list[str]) -> None:
    """A step of load or a warm-up is no leak, and what becomes faster is no fault."""
    assert finding_kinds(script) == expected


def test_probes_and_events() -> None:
    """A probe that failed is named with how often; incidents, the floor and losses of the server are findings."""
    bad = ProbeOutcome("tool-call", ProbeState.FAILED, "no call", at=600.0)
    events = (Event(5.0, "resumed", ""), Event(9.0, "incident", "rank died"), Event(9.5, "back", ""))
    found = endurance(soak(SoakScript(), (bad, replace(bad, at=1200.0)), events)).findings
    assert [one.kind for one in found] == ["answers", "incident"]
    assert found[0].text == "tool-call failed 2 of 2 times: no call"


def test_the_slope_has_its_interval_and_time_left() -> None:
    """1 GiB an hour from 30 GiB to a floor of 2 takes about 27 hours; each request takes 22 MiB."""
    first, second = endurance(soak(SoakScript(leak=1.0))).memory
    assert first.per_hour.low < 1.1 * GIB and first.per_hour.high > GIB
    assert first.left == pytest.approx(28 / 1.05 * 3600, rel=0.2)
    assert first.per_request and first.per_request.value == pytest.approx(1.05 * GIB * 8 / (8 * 48), rel=0.2)
    assert (second.of, second.leak, second.left) == ("spark-2", False, None)


def test_a_drift_has_its_time() -> None:
    """The change is dated to within a quarter of an hour, with how much slower it became."""
    shifts = endurance(soak(SoakScript(slow=1.4, at=5.0))).shifts
    assert [one.at / 3600 for one in shifts] == [pytest.approx(5.0, abs=0.25)] * 2
    assert [one.change for one in shifts] == [pytest.approx(0.4, abs=0.1)] * 2


def test_unknown_stays_unknown() -> None:
    """There is no slope without samples and no pass of a gate on it; nothing is claimed without answers."""
    bare = soak(SoakScript())
    bare = replace(bare, levels=tuple(replace(one, scrapes=()) for one in bare.levels), evaluation=Evaluation("soak"))
    found = endurance(bare)
    assert (found.memory, len(found.unknown)) == ((), 2)
    assert [one.passed for one in judge_gates(parse("memory_per_hour < 1GiB\nfaults == 0"), summarize(bare))] == [
        False,
        True,
    ]
    assert not is_soak(replace(bare, evaluation=None))
    states = {one.name: one.state for one in as_outcomes(bare).evaluation.outcomes}  # type: ignore[union-attr]
    assert (states["leak"], states["answers"], states["drift"]) == (
        ProbeState.SKIPPED,
        ProbeState.SKIPPED,
        ProbeState.PASSED,
    )


@pytest.mark.full
def test_gates_and_comparison() -> None:
    """A value within noise counts as 0; a fault that the base did not have is worse."""
    lines = parse("memory_per_hour < 100MiB\nlatency_drift < 10%\nfaults == 0")
    assert all(one.passed for one in judge_gates(lines, summarize(soak(SoakScript()))))
    bad = soak(SoakScript(leak=1.0, slow=1.4, errors=2))
    assert not any(one.passed for one in judge_gates(lines, summarize(bad)))
    rows = changes(as_outcomes(soak(SoakScript())), as_outcomes(bad))
    assert {one.name for one in rows if one.verdict == "worse"} == {"leak", "drift", "errors"}


def test_too_little_shows_nothing() -> None:
    """Fewer points than it takes are no trend and no change."""
    few = [(float(n), float(-n)) for n in range(FEWEST - 1)]
    assert fit_trend(few) is None
    assert cuts([y for _, y in few], 0.1) == []
    assert thinned([]) == []
    flat = fit_trend([(float(n), 5.0) for n in range(100)])
    assert flat is not None and not flat.steady


@pytest.mark.full
def test_healthy_soaks_raise_nothing() -> None:
    """200 of eight hours: warm-up, lasting noise, wandering latency, every third a step of load (95 %: < 1.5 %)."""
    assert [
        seed for seed in range(3000, 3000 + HEALTHY) if finding_kinds(SoakScript(seed, step=3.0 * (seed % 3 == 0)))
    ] == []
