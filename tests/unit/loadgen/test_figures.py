"""Figures of one request."""

import pytest

from fakes.measured import PLAN, make_row
from sparkwright.domain.run import Reads
from sparkwright.domain.workload import Arrival, Pace
from sparkwright.loadgen import figures
from unit.for_each import for_each


def test_tokens_of_the_first_read_took_no_time() -> None:
    """Five later tokens share the 0.5 s after a first read of 3."""
    one = make_row(output_tokens=8, reads=Reads((0.2, 0.4, 0.7), (3, 2, 3)))
    assert figures.time_per_token(one) == pytest.approx(0.1)
    assert figures.decode(one) == pytest.approx(10.0)


def test_one_token_has_no_time_per_token() -> None:
    """Neither has an answer that came in one read, nor one without usage; nothing is zero in its place."""
    assert figures.time_per_token(make_row(tokens=1)) is None
    assert figures.time_per_token(make_row(output_tokens=4, reads=Reads((0.1,), (4,)))) is None
    assert figures.decode(make_row(output_tokens=None)) is None


def test_prefill_counts_what_was_not_cached() -> None:
    """1,000 prompt tokens of which 800 were cached, 0.5 s to the first token: 400 a second."""
    assert figures.prefill(make_row(0.5, prompt_tokens=1000, cached_tokens=800)) == pytest.approx(400.0)


def test_what_the_server_reports_of_its_cache_goes_before_the_plan() -> None:
    """The plan is in only where the server reports nothing."""
    assert figures.prefill(make_row(0.5, prompt_tokens=1000, cached_tokens=0, planned_cached=800)) == pytest.approx(
        2000.0
    )
    assert figures.prefill(make_row(0.5, prompt_tokens=1000, planned_cached=800)) == pytest.approx(400.0)
    assert figures.cached_share(make_row(prompt_tokens=1000, planned_cached=800)) is None


def test_a_whole_prompt_in_the_cache_has_no_prefill_rate() -> None:
    """Nothing was prefilled: the rate is not zero, it is not there."""
    assert figures.prefill(make_row(prompt_tokens=100, cached_tokens=100)) is None


def test_an_open_loop_counts_from_the_intended_time() -> None:
    """A request that the client sent 2 s late made its user wait for these 2 s, too."""
    late = make_row(0.1, sent=5.0, intended=3.0)
    told = {name: figure(late) for name, figure in figures.per_request(True).items()}
    assert (told["ttft"], told["ttft_sent"]) == (pytest.approx(2.1), pytest.approx(0.1))
    assert told["end_to_end"] == pytest.approx(2.16)
    assert told["end_to_end_sent"] == pytest.approx(0.16)
    assert told["decode"] == pytest.approx(50.0)


def test_a_closed_loop_counts_from_the_send() -> None:
    """There a request waits for no clock, and figures from the send have no name of their own."""
    told = figures.per_request(False)
    assert told["ttft"](make_row(0.1, sent=5.0, intended=3.0)) == pytest.approx(0.1)
    assert "ttft_sent" not in told


@for_each("arrival", list(Arrival))
def test_every_arrival_by_the_clock_is_an_open_loop(arrival: Arrival) -> None:
    """Only one kind waits until others have ended."""
    plan = type(PLAN)("x", PLAN.shape, Pace(arrival, rate=1.0))
    assert figures.is_open(plan) is (arrival is not Arrival.CLOSED)
