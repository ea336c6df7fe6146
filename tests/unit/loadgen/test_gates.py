"""Gate files, and runs judged by them."""

from dataclasses import replace

import pytest

from fakes.measured import KNOWN, PLAN, failed, make_level, make_row, run, scrape
from sparkwright.domain.errors import UsageError
from sparkwright.domain.evaluation import Evaluation, ProbeOutcome, ProbeState, Score
from sparkwright.domain.summary import GateResult, RunSummary
from sparkwright.domain.workload import Agent, Length, LevelPlan, Pace, Single, Slo
from sparkwright.loadgen.gate_lines import Gate, possible_values
from sparkwright.loadgen.gates import VALID, judge_gates, judge_runs, parse
from sparkwright.loadgen.stats import summarize
from unit.for_each import for_each

DEEP = replace(PLAN, name="deep", shape=Single(Length(100, 100), Length(4, 4), depth=32768), pace=Pace(concurrency=8))

_EIGHT = (("concurrency", "8"),)


def two_levels(ttft: float = 0.1, deep: float = 3.0, **given: object) -> RunSummary:
    return summarize(run(make_level([make_row(ttft)] * 3), make_level([make_row(deep)] * 3, plan=DEEP), **given))  # type: ignore[arg-type]


def judge_line(line: str, summary: RunSummary, baseline: RunSummary | None = None) -> GateResult:
    (result,) = judge_gates(parse(line), summary, baseline)
    return result


@for_each(
    "line, gate",
    [
        ("ttft.p99 < 2s @ depth=32k", Gate("", "ttft", "p99", "<", 2.0, False, (("depth", "32k"),))),
        ("ttft<=250ms", Gate("", "ttft", "median", "<=", 0.25)),
        ("decode.median >= 0.95 x baseline", Gate("", "decode", "median", ">=", 0.95, True)),
        ("decode > 95% of baseline", Gate("", "decode", "median", ">", 0.95, True)),
        ("ttft.p90 <= baseline", Gate("", "ttft", "p90", "<=", 1.0, True)),
        ("errors == 0", Gate("", "errors", "", "==", 0.0)),
        ("error_share < 1%", Gate("", "error_share", "", "<", 0.01)),
        ("goodput >= 3/s @ level=c8", Gate("", "goodput", "median", ">=", 3.0, False, (("level", "c8"),))),
        ("decode.spread < 5 %", Gate("", "decode", "spread", "<", 0.05)),
        ("itl < 40 ms @ c = 8, turn=3", Gate("", "itl", "median", "<", 0.04, False, (*_EIGHT, ("turn", "3")))),
        ("memory_available > 4 GiB", Gate("", "memory_available", "", ">", 4.0 * 2**30)),
        ("output_rate.least >= 1e3 tokens/s # as asked", Gate("", "output_rate", "least", ">=", 1000.0)),
    ],
)  # fmt: skip
def test_a_line_means_what_it_states(line: str, gate: Gate) -> None:
    """Units become seconds, tokens a second and shares; what follows # is left out."""
    (found,) = parse(line)
    assert found.line == line.partition("#")[0].strip()
    assert replace(found, line="", limit=pytest.approx(gate.limit)) == replace(gate, limit=found.limit)


@for_each(
    "line, why",
    [
        ("ttft < 3", "has the unit none"),
        ("ttft < 3 tokens/s", "has the unit tokens/s"),
        ("ttfs < 3s", "did you mean ttft?"),
        ("ttft.p98 < 3s", "did you mean p99?"),
        ("ttft 3s", "has none of <"),
        ("ttft < soon", "no number"),
        ("ttft < 1s @ deph=4k", "did you mean depth?"),
        ("ttft < 1s @ depth", "not of the form"),
        ("ttft < 1s @ depth=deep", "'deep' is no number"),
        ("ttft < 1s @", "not of the form"),
        ("errors.p99 == 0", "is one number"),
        ("errors == 0%", "it takes none"),
        ("failed_probes <= baseline", "has no baseline"),
        ("failed_probes == 0 @ level=c8", "of a run as a whole"),
        ("errors == 0 @ outcome=strict", "not selected by outcome"),
    ],
)
def test_a_bad_line_is_named_with_its_number(line: str, why: str) -> None:
    """All bad lines at once: nobody fixes a file line by line with a run of CI between."""
    with pytest.raises(UsageError) as error:
        parse(f"errors == 0\n\n{line}\n# fine\n{line}\n", "gates.txt")
    first, second = error.value.message.splitlines()
    assert first.startswith("gates.txt:3: ")
    assert second.startswith("gates.txt:5: ")
    assert why in first


def test_a_file_without_a_gate_passes_nothing() -> None:
    """It would make CI green for ever."""
    with pytest.raises(UsageError, match="no gate in it"):
        parse("# nothing yet\n")


def test_a_gate_holds_for_every_level() -> None:
    """The worst one decides, and is named."""
    result = judge_line("ttft < 2s", two_levels())
    assert (result.passed, result.observed) == (False, 3.0)
    assert result.why == "at deep: expected < 2 s, found 3 s"


def test_a_gate_for_some_levels_asks_no_others() -> None:
    """32k is 32,768 here, and would be 32,000 where a level has that."""
    summary = two_levels()
    assert judge_line("ttft < 4s @ depth=32k", summary).observed == 3.0
    assert judge_line("ttft < 2s @ depth=0", summary).passed
    assert judge_line("ttft < 4s @ c=8", summary).observed == 3.0
    assert judge_line("ttft < 2s @ level=c1, prompt=100", summary).passed
    assert possible_values("32k") == {32000.0, 32768.0}


def test_a_gate_that_selects_nothing_fails() -> None:
    """A level that was renamed must not pass by being absent; what there is is reported."""
    result = judge_line("ttft < 2s @ level=c9", two_levels())
    assert (result.passed, result.observed) == (False, None)
    assert result.why == "no level has level=c9; levels: c1, deep"


def test_a_metric_that_was_not_measured_fails() -> None:
    """No figure is no good figure."""
    result = judge_line("goodput >= 1/s", two_levels())
    assert (result.passed, result.observed, result.why) == (False, None, "c1 has no goodput")
    assert judge_line("goodput >= 0.1/s", two_levels(slo=Slo(ttft=9.0))).passed


@pytest.mark.parametrize(("factor", "passed"), [("0.9", True), ("1.1", False)])
def test_a_baseline_is_taken_level_by_level(factor: str, passed: bool) -> None:
    """Each level against the same one of the baseline."""
    base, new = two_levels(0.1, 3.0), two_levels(0.1, 3.0)
    assert judge_line(f"prefill >= {factor} x baseline", new, base).passed is passed


def test_a_gate_of_a_baseline_fails_without_one() -> None:
    """The gate also reports what is missing."""
    assert "no baseline" in judge_line("decode >= 0.9 x baseline", two_levels()).why
    shallow = summarize(run(make_level([make_row()])))
    assert "the baseline has no ttft at deep" in judge_line("ttft <= 2 x baseline", two_levels(), shallow).why


def test_failed_requests_count_over_all_levels() -> None:
    """Two here and one there are three; a share is of all that were sent."""
    summary = summarize(
        run(make_level([make_row(), failed(), failed()]), make_level([make_row(), make_row(), failed()], plan=DEEP))
    )
    assert judge_line("errors <= 2", summary).observed == 3.0
    assert judge_line("errors <= 3", summary).passed
    assert judge_line("error_share <= 50%", summary).passed
    assert judge_line("errors <= baseline", summary, summary).passed


def test_turns_and_parts_can_be_asked_for() -> None:
    """The question of the agentic loop: how long does turn 2 take?"""
    plan = LevelPlan("agent", Agent(2, 9, 9, 9, 9, 4), PLAN.pace)
    rows = [make_row(2.0, turn=0), make_row(0.2, turn=1, planned_cached=80)]
    summary = summarize(run(make_level(rows, plan=plan)))
    assert judge_line("ttft < 300ms @ turn=2", summary).passed
    assert judge_line("ttft < 300ms @ part=warm", summary).passed
    assert not judge_line("ttft < 300ms @ turn=1", summary).passed


def test_the_servers_own_figures_can_be_asked_for() -> None:
    """A queue that grew is a level that was too much."""
    scrapes = (scrape(0), scrape(1, requests_waiting=9.0, kv_cache_usage=0.5), scrape(2))
    summary = summarize(run(make_level([make_row()], scrapes=scrapes)))
    assert judge_line("queue <= 8", summary).observed == 9.0
    assert judge_line("kv_usage <= 50%", summary).passed
    assert judge_line("preemptions == 0", summary).why == "c1 has no preemptions"


def test_the_rate_that_a_search_found_can_be_asked_for() -> None:
    """It is the run's, not a level's; a run that searched for nothing has none."""
    found = replace(two_levels(), best_rate=4.0)
    assert judge_line("best_rate >= 4/s", found).passed
    assert not judge_line("best_rate > 4/s", found).passed
    assert judge_line("best_rate >= 0.5 x baseline", found, replace(found, best_rate=8.0)).passed
    assert judge_line("best_rate >= 1/s", two_levels()).why == "no rate was found"
    assert judge_line("best_rate >= baseline", found, two_levels()).why == "the baseline found no rate"


def test_an_invalid_run_passes_no_file() -> None:
    """Good figures of a client that was not in time are none."""
    bad = run(make_level([make_row()]), conditions=replace(KNOWN, model=""))
    results = judge_gates(parse("errors == 0"), summarize(bad))
    assert [(result.line, result.passed) for result in results] == [("errors == 0", True), (VALID, False)]
    assert "model" in results[1].why


def test_a_level_in_doubt_passes_with_the_doubt() -> None:
    """Anyone who reads the log of CI sees it."""
    result = judge_line("ttft < 2s", summarize(run(make_level([make_row(prompt_tokens=200)]))))
    assert result.passed
    assert result.why == "in doubt: c1: prompts have 200% of the planned tokens: is the tokenizer the model's?"


def evaluated(*outcomes: ProbeOutcome, state: str = "done") -> RunSummary:
    return summarize(replace(run(), id="r-eval", evaluation=Evaluation("probes", outcomes), state=state))


def test_quality_is_judged_by_what_was_asked() -> None:
    """Failed and unanswered probes count; where nothing was judged, or it was stopped, there is no figure to pass."""
    good, bad = ProbeOutcome("stop", ProbeState.PASSED), ProbeOutcome("tool-call", ProbeState.FAILED, "no call")
    gone, unable = ProbeOutcome("usage", ProbeState.BROKEN), ProbeOutcome("messages", ProbeState.UNSUPPORTED)
    assert judge_line("failed_probes == 0", evaluated(good, unable)).passed
    failing = judge_line("failed_probes == 0", evaluated(good, bad, gone))
    assert (failing.passed, failing.observed) == (False, 2.0)
    assert failing.why.startswith("tool-call: no call")
    assert judge_line("failed_probes == 0", evaluated(unable)).observed is None
    assert not judge_line("failed_probes == 0", evaluated(good, state="stopped")).passed


def test_a_score_is_selected_by_its_outcome() -> None:
    """The first is that of whole prompts; one that is not there fails with the names of those that are."""
    named = {"prompts, strict": 0.5, "instructions, loose": 0.9}
    scores = [
        ProbeOutcome(name, ProbeState.SCORED, score=Score(int(100 * v), 100, v - 0.1, v)) for name, v in named.items()
    ]
    summary = evaluated(*scores)
    assert judge_line("score >= 50%", summary).passed
    assert judge_line("score >= 90% @ outcome=instructions-loose", summary).passed
    assert "prompts-strict, instructions-loose" in judge_line("score >= 1% @ outcome=loose", summary).why


def test_one_file_judges_several_runs() -> None:
    """Each line goes to the runs that can have its figure and holds for all of them; one that none can have fails."""
    slow = replace(two_levels(ttft=5.0), run=replace(two_levels().run, id="r-slow"))
    pairs = [(two_levels(), None), (slow, None), (evaluated(ProbeOutcome("stop", ProbeState.PASSED)), None)]
    results = judge_runs(parse("ttft < 4s\nfailed_probes == 0\nerrors == 0\nscore > 1%"), pairs)
    assert [result.passed for result in results] == [False, True, True, False]
    assert results[0].why.startswith("r-slow: at c1")
    assert "no evaluation" in results[3].why
    assert not judge_gates(parse("ttft < 4s"), evaluated(ProbeOutcome("stop", ProbeState.PASSED)))[0].passed
