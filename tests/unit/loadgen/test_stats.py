"""A run's figures, against what is computed by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.measured import PLAN, failed, make_level, make_row, run, scrape
from sparkwright.domain.run import Reads
from sparkwright.domain.summary import LevelSummary, Metric
from sparkwright.domain.workload import Agent, Arrival, LevelPlan, Pace, RateSearch, Slo
from sparkwright.loadgen.stats import summarize

TIMES = st.lists(st.floats(0.001, 10.0), min_size=1, max_size=40)


def first_level(*levels: object, **given: object) -> LevelSummary:
    return summarize(run(*levels, **given)).levels[0]  # type: ignore[arg-type]


def metric(name: str, *levels: object, **given: object) -> Metric:
    return first_level(*levels, **given).metrics[name]


def test_the_figures_of_three_requests_are_those_by_hand() -> None:
    """TTFT 0.1, 0.2, 0.6 s one after the other, 4 tokens 20 ms apart."""
    rows = [make_row(0.1), make_row(0.2, sent=1.0), make_row(0.6, sent=2.0)]
    found = first_level(make_level(rows))
    ttft = found.metrics["ttft"]
    assert (ttft.count, ttft.median.value, ttft.least, ttft.most) == (3, 0.2, 0.1, 0.6)
    assert ttft.mean.value == pytest.approx(0.3)
    assert ttft.p90.value == pytest.approx(0.52)
    assert found.metrics["tpot"].median.value == pytest.approx(0.02)
    assert found.metrics["decode"].median.value == pytest.approx(50.0)
    assert found.metrics["prefill"].median.value == pytest.approx(500.0)
    # The last one ends at 2.66 s: 12 tokens, 312 with prompts.
    assert found.metrics["output_rate"].median.value == pytest.approx(12 / 2.66)
    assert found.metrics["total_rate"].median.value == pytest.approx(312 / 2.66)
    assert found.metrics["request_rate"].median.value == pytest.approx(3 / 2.66)
    assert (found.sent, found.good, found.tokens) == (3, 3, 12)


def test_a_read_of_several_tokens_counts_for_each_of_them() -> None:
    """4 tokens 80 ms after the one before are four times 20 ms, not one of 80; the first read has no time between."""
    one = make_row(output_tokens=7, reads=Reads((0.1, 0.18, 0.22), (2, 4, 1)))
    itl = metric("itl", make_level([one]))
    assert (itl.count, itl.least, itl.most) == (5, pytest.approx(0.02), pytest.approx(0.04))
    assert itl.mean.value == pytest.approx((4 * 0.02 + 0.04) / 5)


def test_reads_of_several_answers_are_not_mixed() -> None:
    """The gap from the end of one answer to the start of the next is nobody's."""
    itl = metric("itl", make_level([make_row(0.1, 0.02), make_row(0.5, 0.03), make_row(0.1, tokens=1)]))
    assert (itl.count, itl.least, itl.most) == (6, pytest.approx(0.02), pytest.approx(0.03))


def test_failed_requests_are_counted_and_measured_by_nothing() -> None:
    """A quick refusal is no fast answer."""
    found = first_level(make_level([make_row(0.1), failed("http-429"), failed("http-429"), failed("cut")]))
    assert (found.sent, found.good, found.errors) == (4, 1, {"http-429": 2, "cut": 1})
    assert found.metrics["ttft"].count == 1


def test_warm_up_and_noise_are_left_out() -> None:
    """Their rows are kept, and no figure is of them."""
    found = first_level(
        make_level([make_row(9.0, warmup=True), make_row(8.0, counted=False), make_row(0.1), failed(warmup=True)])
    )
    assert (found.sent, found.errors, found.metrics["ttft"].most) == (1, {}, 0.1)


def test_without_usage_there_is_no_figure_of_tokens() -> None:
    """TTFT and end to end stay; the rest is absent, never zero, and it is reported why."""
    silent = make_row(kind="no-usage", output_tokens=None, prompt_tokens=None, reads=Reads())
    found = first_level(make_level([silent, silent]))
    assert set(found.metrics) == {"ttft", "end_to_end", "request_rate"}
    assert "without usage" in found.notes[0]


def test_nothing_went_well_and_nothing_is_made_up() -> None:
    """No figure but the count of what failed; and the run is not valid."""
    summary = summarize(run(make_level([failed()])))
    assert dict(summary.levels[0].metrics) == {}
    assert summary.invalid == ("no request went well",)


def test_an_empty_run_has_no_levels() -> None:
    """It was killed before the first."""
    summary = summarize(run())
    assert (summary.levels, summary.invalid) == ((), ("no request went well",))


def test_repeats_are_taken_together_and_their_spread_is_reported() -> None:
    """Medians of 0.1, 0.2 and 0.3 s around 0.2: a spread of 100 %."""
    levels = [
        make_level([make_row(ttft), make_row(ttft), make_row(ttft)], repeat)
        for repeat, ttft in enumerate((0.1, 0.2, 0.3))
    ]
    found = first_level(*levels)
    assert (found.repeats, found.metrics["ttft"].count) == (3, 9)
    assert found.metrics["ttft"].spread == pytest.approx(1.0)
    assert metric("ttft", levels[0]).spread == 0.0


def test_a_rate_is_one_value_of_each_repeat() -> None:
    """Its interval is over the repeats: with a single one it has no width."""
    two = [make_level([make_row(0.44)], 0), make_level([make_row(0.94)], 1)]
    rate = metric("request_rate", *two)
    assert (rate.count, rate.least, rate.most) == (2, pytest.approx(1.0), pytest.approx(2.0))
    assert rate.median.low < rate.median.high
    alone = metric("request_rate", two[0])
    assert alone.median.low == alone.median.high == pytest.approx(2.0)


def test_cold_and_warm_requests_are_apart() -> None:
    """The first turn pays for its whole prompt, the others for what is new: one median of both reports nothing."""
    plan = LevelPlan("agent", Agent(3, 10, 10, 10, 10, 4), PLAN.pace)
    turns = [make_row(1.0, turn=0), make_row(0.1, turn=1, planned_cached=80), make_row(0.2, turn=2, planned_cached=90)]
    parts = {one.part: one for one in summarize(run(make_level(turns, plan=plan))).levels}
    assert list(parts) == ["", "cold", "warm", "turn 1", "turn 2", "turn 3"]
    medians = {part: one.metrics["ttft"].median.value for part, one in parts.items()}
    assert medians["cold"] == medians["turn 1"] == 1.0
    assert medians["warm"] == pytest.approx(0.15)
    assert medians["turn 3"] == 0.2
    assert "request_rate" not in parts["warm"].metrics


def test_independent_requests_have_no_parts() -> None:
    """All of them are alike."""
    assert [one.part for one in summarize(run(make_level([make_row(), make_row()]))).levels] == [""]


def test_an_open_loop_reports_both_latencies() -> None:
    """The latencies are from the intended time, which users feel, and from the send, which the server answers for."""
    plan = replace(PLAN, pace=Pace(Arrival.POISSON, rate=1.0))
    found = first_level(make_level([make_row(0.1, sent=1.5, intended=1.0)], plan=plan))
    assert found.metrics["ttft"].median.value == pytest.approx(0.6)
    assert found.metrics["ttft_sent"].median.value == pytest.approx(0.1)


def test_goodput_is_of_requests_that_met_their_limits() -> None:
    """Two of four in two seconds were in time: one a second, and half of them met the SLO. A failed one met none."""
    rows = [make_row(0.1), make_row(0.1, sent=1.84), make_row(0.9, sent=0.1), failed()]
    found = first_level(make_level(rows), slo=Slo(ttft=0.5))
    assert found.met == 0.5
    assert found.metrics["goodput"].median.value == pytest.approx(1.0)
    assert first_level(make_level(rows)).met is None


def test_a_repeat_that_was_cut_short_counts_only_where_there_is_no_whole_one() -> None:
    """The short requests end first: half a repeat flatters."""
    whole, cut = make_level([make_row(0.5)], 0), make_level([make_row(0.1)], 1, complete=False)
    assert metric("ttft", whole, cut).most == 0.5
    alone = first_level(cut)
    assert alone.metrics["ttft"].count == 1
    assert "cut short" in alone.doubts[0]


def test_accepted_tokens_come_from_the_servers_counters() -> None:
    """300 accepted in 100 drafts: 4 tokens a step."""
    scrapes = (
        scrape(0.0, accepted_tokens_total=50.0, drafts_total=10.0),
        scrape(9.0, accepted_tokens_total=350.0, drafts_total=110.0),
    )
    found = first_level(make_level([make_row()], scrapes=scrapes))
    assert found.metrics["acceptance"].median.value == found.server["acceptance"] == 4.0


def test_token_times_of_a_tool_that_has_none_are_not_made_up() -> None:
    """llama-benchy reports a first and a last token: no time between tokens comes of that."""
    found = first_level(make_level([make_row(reads=Reads((0.1, 0.16), (1, 3), exact=False))]), imported="llama-benchy")
    assert "itl" not in found.metrics
    assert found.metrics["decode"].median.value == pytest.approx(50.0)


def test_a_search_ends_with_its_best_rate() -> None:
    """The highest that met the SLO below the lowest that did not."""
    rates = [(1.0, 0.1), (2.0, 0.2), (4.0, 3.0)]
    plans = [replace(PLAN, name=f"rate {rate:g}", pace=Pace(Arrival.POISSON, rate=rate)) for rate, _ in rates]
    levels = [make_level([make_row(ttft)] * 4, plan=plan) for plan, (_, ttft) in zip(plans, rates, strict=True)]
    summary = summarize(run(*levels, slo=Slo(ttft=1.0), search=RateSearch(1.0, 8.0)))
    assert summary.best_rate == 2.0


@settings(deadline=None, max_examples=25)
@given(TIMES)
def test_statistics_are_in_order(times: list[float]) -> None:
    """Least, median, p90, p99, most; and each interval holds its value."""
    found = metric("ttft", make_level([make_row(ttft) for ttft in times]))
    values = [found.least, found.median.value, found.p90.value, found.p99.value, found.most]
    assert all(np.diff(values) >= -1e-12)
    for one in (found.mean, found.median, found.p90, found.p99):
        assert one.low <= one.value <= one.high


@settings(deadline=None, max_examples=25)
@given(TIMES, st.floats(0.0, 5.0))
def test_slower_requests_never_make_the_tail_faster(times: list[float], more: float) -> None:
    """Adding one that is at least as slow as all others lowers no percentile."""
    before = metric("ttft", make_level([make_row(ttft) for ttft in times]))
    after = metric("ttft", make_level([make_row(ttft) for ttft in [*times, max(times) + more]]))
    for name in ("median", "p90", "p99"):
        assert getattr(after, name).value >= getattr(before, name).value - 1e-12
