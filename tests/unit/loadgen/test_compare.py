"""Verdicts on two runs."""

from dataclasses import replace

import numpy as np
import pytest

from fakes.measured import KNOWN, PLAN, failed, make_level, make_row, run
from sparkwright.domain.run import Run, RunConditions
from sparkwright.domain.summary import Interval, MetricComparison
from sparkwright.domain.workload import Length, Single, Slo
from sparkwright.loadgen.comparable import paired_levels
from sparkwright.loadgen.compare import compare, verdict
from sparkwright.loadgen.stats import summarize
from unit.for_each import for_each


def measured(ttft: float, seed: int = 1, noise: float = 0.05, **given: object) -> Run:
    """40 requests in two repeats around this TTFT."""
    rng = np.random.default_rng(seed)
    levels = [make_level([make_row(ttft * rng.lognormal(0, noise)) for _ in range(20)], repeat) for repeat in (0, 1)]
    return run(*levels, **given)  # type: ignore[arg-type]


def compare_metric(base: Run, new: Run, metric: str = "ttft") -> MetricComparison:
    found = compare(summarize(base), summarize(new))
    assert found.refused == ()
    return next(one for one in found.rows if (one.metric, one.statistic) == (metric, "median"))


def refused(base: Run, new: Run, allow_simulated: bool = False) -> tuple[str, ...]:
    return compare(summarize(base), summarize(new), allow_simulated).refused


@pytest.mark.parametrize(("ttft", "wanted"), [(0.2, "worse"), (0.05, "better"), (0.1, "same")])
def test_a_clear_difference_has_a_clear_verdict(ttft: float, wanted: str) -> None:
    """Twice the TTFT is worse, half of it better; the same server measured again is the same."""
    assert compare_metric(measured(0.1, 1, 0.01), measured(ttft, 2, 0.01)).verdict == wanted


def test_more_is_better_where_it_is() -> None:
    """Prefill goes the other way than TTFT."""
    slow, fast = measured(0.2, 1, 0.01), measured(0.1, 2, 0.01)
    assert compare_metric(slow, fast, "prefill").verdict == compare_metric(slow, fast, "ttft").verdict == "better"


def test_noise_is_unclear_not_same() -> None:
    """Few requests that vary by half allow no mention of a 5 % difference."""
    assert compare_metric(measured(0.1, 1, 0.5), measured(0.105, 2, 0.5)).verdict == "unclear"


def test_a_run_against_itself_differs_in_nothing() -> None:
    """Neither better nor worse, whatever chance draws: at most it is not known surely enough that it is the same."""
    noisy, steady = measured(0.1, 1, 0.3), measured(0.1, 1, 0.01)
    assert {one.verdict for one in compare(summarize(noisy), summarize(noisy)).rows} == {"same", "unclear"}
    assert {one.verdict for one in compare(summarize(steady), summarize(steady)).rows} == {"same"}


@for_each(
    "ratio, wanted",
    [
        (Interval(1.02, 1.015, 1.025), "same"),  # surely slower, and by nothing that matters
        (Interval(1.025, 1.01, 1.04), "unclear"),
        (Interval(1.05, 1.01, 1.10), "worse"),
        (Interval(1.05, 0.99, 1.10), "unclear"),
        (Interval(0.90, 0.85, 0.95), "better"),
        (None, "unclear"),
    ],
)
def test_a_verdict_wants_three_percent_and_an_interval_without_one(ratio: Interval | None, wanted: str) -> None:
    """A difference must be larger than what matters to nobody, and than what chance does."""
    assert verdict("ttft", Interval(1.0, 0.9, 1.1), Interval(1.1, 1.0, 1.2), ratio, 10) == wanted


def test_one_value_each_is_no_proof() -> None:
    """A single measurement has no spread to be judged by."""
    assert compare_metric(run(make_level([make_row(0.1)])), run(make_level([make_row(0.2)]))).verdict == "unclear"


def test_a_base_of_zero_has_no_ratio() -> None:
    """Goodput from nothing to something is no number of times more."""
    slo = Slo(ttft=0.05)
    base, new = measured(0.1, slo=slo), measured(0.01, slo=slo)
    goodput = compare_metric(base, new, "goodput")
    assert (goodput.base.value, goodput.ratio, goodput.verdict) == (0.0, None, "unclear")


@pytest.mark.full
def test_tails_are_compared_where_there_are_enough_values() -> None:
    """The 99th percentile of 40 requests is their slowest one."""
    few = summarize(measured(0.1))
    assert "p99" not in {one.statistic for one in compare(few, few).rows if one.metric == "ttft"}
    many = [make_level([make_row(0.1 + 0.001 * n) for n in range(60)], repeat) for repeat in (0, 1)]
    found = compare(summarize(run(*many)), summarize(run(*many)))
    assert "p99" in {one.statistic for one in found.rows if one.metric == "ttft"}


@for_each(
    "other, why",
    [
        (run(make_level([make_row()]), version=2), "the workloads differ: check@1 and check@2"),
        (
            run(make_level([make_row()], plan=replace(PLAN, shape=Single(Length(9, 9), Length(4, 4))))),
            "level c1 asks for",
        ),
        (run(make_level([make_row()]), thinking=True), "thinking differs: False and True"),
        (run(make_level([make_row()]), conditions=replace(KNOWN, model="acme/other")), "the models differ"),
        (run(make_level([make_row()]), conditions=replace(KNOWN, tokenizer="estimate")), "different tokenizers"),
        (run(make_level([make_row()]), conditions=replace(KNOWN, simulated=True)), "is simulated and r-1 is measured"),
        (run(make_level([failed()])), "is not valid: no request went well"),
        (run(make_level([make_row()], plan=replace(PLAN, name="c2"))), "no level in common"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_the_reason(other: Run, why: str) -> None:
    """No table, so that nobody copies a number out of it."""
    found = compare(summarize(run(make_level([make_row()]))), summarize(replace(other, id="r-2")))
    assert found.rows == ()
    assert why in " ".join(found.refused)


def test_simulated_compared_with_measured_must_be_allowed() -> None:
    """It is compared when asked, and reported again in the notes."""
    real, simulator = (
        run(make_level([make_row()])),
        run(make_level([make_row()]), conditions=replace(KNOWN, simulated=True)),
    )
    assert refused(real, simulator)
    assert refused(real, simulator, allow_simulated=True) == ()
    assert any("made up" in note for note in compare(summarize(real), summarize(simulator), True).notes)


def test_estimates_of_prompts_are_one_way_of_counting() -> None:
    """The measured correction is never the same twice; that they are estimates is noted at each level."""
    one, two = (
        run(make_level([make_row()]), conditions=replace(KNOWN, tokenizer=f"estimate, {ratio} characters a token"))
        for ratio in ("3.90", "3.91")
    )
    assert refused(one, two) == ()
    assert summarize(one).levels[0].notes == ("lengths of prompts are estimates: estimate, 3.90 characters a token",)


def test_a_model_with_and_without_its_publisher_is_the_same() -> None:
    """Servers give either; what differs in the case of letters is no other model."""
    assert (
        refused(run(make_level([make_row()])), run(make_level([make_row()]), conditions=replace(KNOWN, model="Model")))
        == ()
    )


def test_what_may_differ_is_reported() -> None:
    """Engine, version and flags are what is compared; a reader must see them."""
    one = replace(KNOWN, engine="vllm", engine_version="0.21.0", flags=("--a", "--b"))
    two = replace(KNOWN, engine="vllm", engine_version="0.22.0", flags=("--b", "--c"))
    notes = compare(*(summarize(run(make_level([make_row()]), conditions=each)) for each in (one, two))).notes
    assert notes == ("engine_version: 0.21.0 -> 0.22.0", "flags: --a -> --c")


def test_goodput_under_other_limits_is_left_out() -> None:
    """The rest can be compared all the same."""
    base, new = measured(0.1, slo=Slo(ttft=1.0)), measured(0.1, slo=Slo(ttft=2.0))
    found = compare(summarize(base), summarize(new))
    assert "goodput" not in {one.metric for one in found.rows}
    assert any("SLO" in note for note in found.notes)


def test_another_tools_levels_are_matched_by_what_they_ask_for() -> None:
    """Names, tokenizer and workload are its own; 100 tokens in and 4 out at once are the same."""
    theirs = run(
        make_level([make_row()], plan=replace(PLAN, name="pp100 tg4")),
        make_level([make_row()], plan=replace(PLAN, name="pp9 tg4", shape=Single(Length(9, 9), Length(4, 4)))),
        conditions=RunConditions("", "Model"),
        imported="llama-benchy",
    )
    ours = run(make_level([make_row()]))
    assert paired_levels(ours, theirs) == (("c1", "pp100 tg4"),)
    assert refused(ours, theirs) == ()
