"""The requests that meet their limits."""

from fakes.measured import failed, make_level, make_row
from sparkwright.domain.run import Row
from sparkwright.domain.workload import Slo
from sparkwright.loadgen.samples import of_repeats
from sparkwright.loadgen.slo import meets_slo, share_in_slo
from unit.for_each import for_each


@for_each(
    "one, limits, met",
    [
        (make_row(0.5), Slo(ttft=0.5), True),
        (make_row(0.51), Slo(ttft=0.5), False),
        (make_row(0.1, 0.05), Slo(tpot=0.05 + 1e-9), True),
        (make_row(0.1, 0.06), Slo(tpot=0.05), False),
        (make_row(0.1, 0.05), Slo(end_to_end=0.2), False),
        (make_row(0.1), Slo(), True),
        (make_row(tokens=1), Slo(tpot=0.01), True),  # nothing came after the first
        (make_row(tokens=1, output_tokens=9), Slo(tpot=0.01), True),  # all nine came at once
        (make_row(output_tokens=None), Slo(tpot=1.0), False),  # not known is not met
        (Row(0, 0, 0.0, 0.0), Slo(ttft=1.0), False),
        (failed(), Slo(), False),
    ],
)
def test_each_limit_binds_by_itself(one: Row, limits: Slo, met: bool) -> None:
    """A limit of 0 binds nothing; a request that failed meets nothing, not even no limit."""
    assert meets_slo(one, limits, open_loop=False) is met


def test_in_an_open_loop_the_wait_before_the_send_counts() -> None:
    """Half a second late and then 0.1 s to the first token are 0.6 s for the user."""
    late = make_row(0.1, sent=1.5, intended=1.0)
    assert not meets_slo(late, Slo(ttft=0.5), open_loop=True)
    assert meets_slo(late, Slo(ttft=0.5), open_loop=False)


def test_the_share_is_of_all_that_were_sent() -> None:
    """Failed ones among them; of none there is no share."""
    assert share_in_slo([make_row(0.1), make_row(0.9), failed(), failed()], Slo(ttft=0.5), False) == 0.25
    assert share_in_slo([], Slo(ttft=0.5), False) is None


def test_without_usage_nobody_met_or_missed_a_time_per_token() -> None:
    """No share is reported, least of all 0 %; a failed request has missed it all the same."""
    silent = make_row(output_tokens=None)
    assert share_in_slo([silent, failed()], Slo(tpot=1.0), False) is None
    assert share_in_slo([silent, failed()], Slo(ttft=1.0), False) == 0.5
    assert share_in_slo([failed()], Slo(tpot=1.0), False) == 0.0
    assert "goodput" not in of_repeats([make_level([silent])], Slo(tpot=1.0))
