"""Tables: nothing is made up, nothing is hidden."""

from dataclasses import replace

from fakes.runs import depth_plans, user_plans
from sparkwright.report.tables import (
    comparison_table,
    doubts,
    errors_table,
    levels_table,
    matrix_table,
    run_labels,
    verdict,
)
from unit.report.made import compared, level_summary, summary

D0, D4K = depth_plans((0, 4096))


def test_a_figure_that_was_not_measured_is_an_empty_cell() -> None:
    """Never a zero: a server without usage has no decode speed, which is not the same as none."""
    table = levels_table(summary([level_summary(D0, ttft=0.3), level_summary(D4K, ttft=0.4, decode=40.0)]))
    assert table.head[:3] == ("level", "decode, tokens/s", "TTFT")
    assert table.rows[0][:2] == ("d0", "") and table.rows[1][1] == "40.0 (38.0 to 44.0)"


def test_columns_without_any_figure_are_left_out() -> None:
    """A run of TTFT only does not show ten empty columns."""
    assert levels_table(summary([level_summary(D0, ttft=0.3)])).head == ("level", "TTFT", "TTFT p99", "requests")


def test_failed_requests_are_counted_where_everybody_looks() -> None:
    """The failures are in the row of their level and in a table by kind."""
    failing = replace(level_summary(D0, ttft=0.3), sent=12, good=9, errors={"http-429": 2, "cut": 1}, met=0.5)
    assert levels_table(summary([failing])).rows[0][-1] == "9 of 12, 50 % in SLO"
    table = errors_table(summary([failing]))
    assert table and table.rows == (("d0", "http-429", "2"), ("d0", "cut", "1"))
    assert errors_table(summary([level_summary(D0, ttft=0.3)])) is None


def test_a_doubt_of_all_levels_is_reported_once() -> None:
    """A doubt of some levels names them."""
    both = [replace(level_summary(plan, ttft=0.3), doubts=("restarted",)) for plan in (D0, D4K)]
    both[0] = replace(both[0], doubts=("restarted", "too long"))
    assert doubts(replace(summary(both), invalid=("no recipe hash",))) == [
        "no recipe hash",
        "restarted",
        "d0: too long",
    ]


def test_the_verdict_is_the_worst_that_holds() -> None:
    """Invalid before unfinished before doubtful before valid."""
    good = summary([level_summary(D0, ttft=0.3)])
    doubtful = replace(good, levels=(replace(good.levels[0], doubts=("x",)),))
    stopped = replace(doubtful, run=replace(good.run, state="stopped"))
    invalid = replace(stopped, invalid=("the client could not keep up",))
    assert [verdict(one) for one in (good, doubtful, stopped, invalid)] == [
        "valid",
        "valid, with doubts",
        "unfinished",
        "not valid",
    ]


def test_runs_of_the_same_engine_are_distinguished_by_their_ids() -> None:
    """Two lines of the same name would be no legend."""
    one, two = summary([level_summary(D0, ttft=0.3)]), summary([level_summary(D0, ttft=0.3)], "r-2")
    assert run_labels([one, two]) == [
        "deepseek-v4-flash, vllm 0.21.1 (r-20261122-7f3a)",
        "deepseek-v4-flash, vllm 0.21.1 (r-2)",
    ]
    other = summary([level_summary(D0, ttft=0.3)], "r-2", engine="sglang", engine_version="0.5.23")
    assert run_labels([one, other])[1] == "deepseek-v4-flash, sglang 0.5.23"


def test_a_ratio_of_nothing_is_no_ratio() -> None:
    """The verdict is alone if the base is zero."""
    comparison = compared()
    row = replace(comparison.rows[0], ratio=None)
    assert comparison_table(replace(comparison, rows=(row,))).rows[0][4:] == ("", "worse")
    assert matrix_table(replace(comparison, rows=(row,))).rows == (("d0", "worse"),)
    assert matrix_table(comparison).rows == (("d0", "0.75 worse"),)


def test_levels_of_users_have_their_throughput() -> None:
    """The machine's total for all users is next to each one's share."""
    table = levels_table(summary([level_summary(user_plans((8,))[0], decode=20.0, output_rate=135.0)]))
    assert "output, tokens/s" in table.head
