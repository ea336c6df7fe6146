"""The conditions under which figures are not to be believed."""

from dataclasses import replace

import pytest

from fakes.measured import KNOWN, PLAN, failed, make_level, make_row, run, scrape
from sparkwright.domain.run import Lag, Level
from sparkwright.domain.summary import RunSummary
from sparkwright.domain.workload import Arrival, Pace
from sparkwright.loadgen.compare import compare
from sparkwright.loadgen.gates import judge_gates, parse
from sparkwright.loadgen.stats import summarize
from sparkwright.loadgen.validity import by_level, client_delays, doubts, figure_notes, invalid
from sparkwright.report.tables import levels_table


def open_loop(rows: list[object], concurrency: int = 0) -> Level:
    plan = replace(PLAN, pace=Pace(Arrival.POISSON, concurrency, rate=10.0))
    return make_level(rows, plan=plan)  # type: ignore[arg-type]


def late_of(one: Level) -> tuple[str, ...]:
    return client_delays([one])


def test_a_run_in_order_is_valid() -> None:
    """A client in time, prompts as planned, no error: nothing to report."""
    one = make_level([make_row(), make_row()], lag=Lag(p99=0.0005, cores=0.3))
    assert (invalid(run(one)), doubts(one), figure_notes(run(one), [one])) == ((), (), ())


def test_a_client_that_was_behind_makes_the_run_invalid() -> None:
    """Its own delay would be reported as the server's; the level is named."""
    slow = make_level([make_row(0.5, 0.5)], 1, lag=Lag(p99=0.011))
    assert invalid(run(slow)) == ("c1: the client was 11.0 ms behind at p99 (allowed: 10.0 ms, whatever is measured)",)


def slow_answers(gap: float, name: str = "r-1", lag: float = 0.0248) -> RunSummary:
    """64 tokens of which each takes 0.2 s, the first after 15 ms, by a client that is 24.8 ms behind."""
    rows = [make_row(0.015, gap, 64, sent=10.0 * n) for n in range(4)]
    return summarize(run(*(make_level(rows, n, lag=Lag(p99=lag)) for n in range(2)), name=name))


def test_validity_is_judged_per_metric() -> None:
    """Guards a decode figure that a late client cannot have changed, and that the first token is not believed."""
    summary = slow_answers(0.2)
    (one,) = summary.levels
    assert summary.invalid == () and "24.8 ms behind" in one.doubts[0]
    assert {"ttft", "prefill", "itl", "end_to_end", "output_rate"} <= set(one.spoiled)
    assert not {"decode", "tpot"} & set(one.spoiled)
    decode, ttft = judge_gates(parse("decode > 4\nttft < 1s"), summary)
    assert decode.passed and not ttft.passed and "ttft at c1 is not valid: the client was 24.8 ms" in ttft.why
    shown = levels_table(summary)
    cells = dict(zip(shown.head, shown.rows[0], strict=True))
    assert cells["TTFT"].startswith("not valid: 15.0 ms") and cells["decode, tokens/s"].startswith("5.00")


def test_what_is_valid_is_compared() -> None:
    """Guards `compare` of two slow servers: decode is known to half a percent, and nothing else is claimed."""
    found = compare(slow_answers(0.204), slow_answers(0.262, "r-2"))
    assert found.refused == () and {row.metric for row in found.rows} == {"decode"}
    assert found.rows[0].verdict == "worse" and "not compared, as a client was behind: ttft" in found.notes[-1]
    assert slow_answers(0.002).invalid, "answers that are over in a moment"
    assert slow_answers(0.2, lag=0.1).invalid, "a lag of more than half a percent of an answer"


def test_one_level_in_doubt_leaves_the_others_valid() -> None:
    """Guards a first run that would end in failure for a client that was late at one of three levels."""
    slow, well = (
        make_level([make_row(0.5, 0.5)], lag=Lag(p99=0.011)),
        make_level([make_row(0.5, 0.5)], lag=Lag(p99=0.0)),
    )
    other = replace(well, plan=replace(PLAN, name="another"))
    assert invalid(run(slow, other)) == ()
    assert "11.0 ms behind" in late_of(slow)[0], "the level itself reports it"


def test_a_repeat_in_which_the_client_was_behind_is_left_out() -> None:
    """Such a repeat is left out if half of them were measured in time, for a reason that is not the server's; it is
    noted."""
    good, bad = (make_level([make_row(0.5, 0.5)], n, lag=Lag(p99=lag)) for n, lag in enumerate((0.0, 0.05)))
    one = run(good, bad)
    assert (by_level(one), invalid(one)) == ([(good,)], ())
    assert figure_notes(one, by_level(one)[0]) == (
        "repeat 2 is left out: the client was 50.0 ms behind at p99 (allowed: 10.0 ms, whatever is measured)",
    )


def test_where_most_repeats_were_behind_all_count_and_the_run_is_invalid() -> None:
    """One line for the level, with its worst, however many repeats there are."""
    levels = [make_level([make_row(0.5, 0.5)], n, lag=Lag(p99=lag)) for n, lag in enumerate((0.02, 0.0, 0.05))]
    assert by_level(run(*levels)) == [tuple(levels)]
    assert invalid(run(*levels)) == (
        "c1: the client was 50.0 ms behind at p99 (allowed: 10.0 ms, whatever is measured), in 2 of 3 repeats",
    )


@pytest.mark.parametrize(("lag", "gap", "fine"), [(0.003, 0.02, False), (0.0015, 0.02, True), (0.0009, 0.002, True)])
def test_a_tenth_of_what_is_measured_is_the_most_a_client_may_lag(lag: float, gap: float, fine: bool) -> None:
    """3 ms are much next to 20 ms between tokens; under 2 ms is what any shared machine does."""
    assert (late_of(make_level([make_row(0.5, gap)], lag=Lag(p99=lag))) == ()) is fine


def test_a_client_at_the_end_of_its_core_is_not_believed() -> None:
    """The client's limit at the end of its core cannot be distinguished from the server's."""
    (told,) = late_of(make_level([make_row()], lag=Lag(cores=0.95)))
    assert "95% of a core" in told


def test_requests_delayed_by_the_client_make_an_open_loop_invalid() -> None:
    """80 ms late with nothing in the way: the load was not the one that was asked for."""
    (told,) = late_of(open_loop([make_row(sent=1.08, intended=1.0)]))
    assert "80.0 ms late" in told


def test_requests_delayed_by_a_full_server_do_not() -> None:
    """All places were taken when its time came; the wait counts as its latency."""
    first, second = make_row(0.5, 0.5, sent=0.0), make_row(sent=2.0, intended=1.0, session=1)  # the first until 2.0
    assert late_of(open_loop([first, second], concurrency=1)) == ()
    assert late_of(open_loop([first, second], concurrency=2)) != ()


def test_an_agent_that_thinks_keeps_its_place() -> None:
    """Nothing is in flight between its turns, and the next agent waits for it all the same."""
    turns = [make_row(sent=0.0), make_row(sent=5.0, turn=1)]
    assert late_of(open_loop([*turns, make_row(sent=5.2, intended=1.0, session=1)], concurrency=1)) == ()


def test_a_closed_loop_is_never_late() -> None:
    """It sends when a place is free: there is no intended time to miss."""
    assert late_of(make_level([make_row(sent=3.0, intended=1.0)])) == ()


def test_our_own_deployment_wants_its_whole_provenance() -> None:
    """Figures of an unknown recipe help nobody; of somebody else's server the model is enough."""
    ours = replace(KNOWN, ours=True, recipe_hash="1a2b", engine="vllm", engine_version="0.21.0", nodes=("spark-1",))
    assert invalid(run(make_level([make_row()]), conditions=ours)) == (
        "provenance is incomplete: flags of our own deployment is not known",
    )
    assert invalid(run(make_level([make_row()]), conditions=replace(ours, flags=("--port",)))) == ()


def test_more_than_a_tenth_of_errors_is_a_doubt() -> None:
    """The requests that went well may be the easy ones; one in ten is still data."""
    assert doubts(make_level([make_row()] * 9 + [failed()])) == ()
    assert doubts(make_level([make_row()] * 8 + [failed()] * 2)) == ("2 of 10 requests failed",)


def test_prompts_of_another_length_than_planned_are_a_doubt() -> None:
    """A wrong tokenizer once shifted a whole published series."""
    (told,) = doubts(make_level([make_row(prompt_tokens=150)]))
    assert told == "prompts have 150% of the planned tokens: is the tokenizer the model's?"
    assert doubts(make_level([make_row(prompt_tokens=105)])) == ()


def test_answers_that_end_early_are_a_doubt() -> None:
    """`ignore_eos` was not heard: lengths differ from run to run."""
    (told,) = doubts(make_level([make_row(tokens=4, planned_output=128)]))
    assert told.startswith("answers have 3% of the planned tokens")


def test_a_prompt_that_was_to_be_new_and_was_cached_is_a_doubt() -> None:
    """The trap that makes prefill look ten times as fast."""
    rows = [make_row(cached_tokens=90), make_row(cached_tokens=0), make_row(cached_tokens=90, planned_cached=90)]
    assert doubts(make_level(rows)) == ("1 of 2 prompts that were to be new came from the cache",)


def test_a_server_that_was_restarted_is_a_doubt() -> None:
    """Its caches were empty again in the middle of the level."""
    scrapes = tuple(scrape(at, drafts_total=total) for at, total in enumerate((5.0, 1.0)))
    assert "restarted" in doubts(make_level([make_row()], scrapes=scrapes))[0]


def test_the_models_own_beginning_of_each_prompt_may_be_cached() -> None:
    """A chat template's first 48 tokens are a quarter of a short prompt, and nothing was sent before."""
    assert doubts(make_level([make_row(cached_tokens=48)])) == ()


def test_shared_out_totals_are_noted() -> None:
    """Times between tokens are approximate then, and it is reported of how many answers."""
    shared = replace(make_row(), reads=replace(make_row().reads, exact=False))
    one = make_level([shared, make_row()])
    assert figure_notes(run(one), [one]) == (
        "1 of 2 answers have the total of tokens only: it was shared out over the reads",
    )
