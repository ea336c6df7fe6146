"""The cold and the warm loop, and the sentence that reports what the cache is worth."""

from dataclasses import replace

from fakes.runs import agent_plans
from sparkwright.domain.workload import Pace
from sparkwright.report.agentic import cache_gaps, gap_words, turn_plot, turns_table
from unit.report.made import agent_levels, summary

WARM, COLD = agent_plans()
TTFT = {"1 agent": [1.6, *[0.3] * 9], "1 agent, cold": [1.6, *[0.9 * turn for turn in range(2, 11)]]}


def test_turn_ten_is_described_in_a_sentence() -> None:
    """Cold and warm TTFT, the share that was cached, and how many times as long."""
    told = gap_words([summary(agent_levels([WARM, COLD], TTFT))])
    assert told == (
        "At turn 10 the first token comes after 9.00 s cold and 300 ms with 80 % of the prompt cached: "
        "cold takes 30 times as long."
    )


def test_a_shorter_loop_is_reported_at_its_last_turn() -> None:
    """A cache that does nothing is reported as such."""
    short = {"1 agent": [1.0, 1.0, 1.0], "1 agent, cold": [1.0, 1.0, 1.02]}
    told = gap_words([summary(agent_levels(agent_plans(3), short))])
    assert told.startswith("At turn 3 ") and told.endswith("the cache has no effect.")


def test_without_its_cold_counterpart_a_loop_has_no_gap() -> None:
    """Its curve is drawn, and nothing is claimed."""
    alone = summary(agent_levels([WARM], TTFT))
    assert cache_gaps(alone) == [] and gap_words([alone]) == ""
    plot = turn_plot([alone])
    assert plot and [point.x for point in plot.curves[0].points] == list(range(1, 11))


def test_each_turn_is_a_row() -> None:
    """Both loops, their ratio, and what was cached."""
    table = turns_table(summary(agent_levels([WARM, COLD], TTFT)))
    assert table and table.head == ("turn", "TTFT, 80 % cached", "TTFT, cold", "cold : warm", "cached")
    assert table.rows[9] == ("10", "300 ms (285 to 330 ms)", "9.00 s (8.55 to 9.90 s)", "30.0", "80 %")


def test_with_several_pairs_the_first_is_named() -> None:
    """A sentence of one agent is not taken for one of four."""
    many = [replace(plan, name=f"4 agents {plan.name}", pace=Pace(concurrency=4)) for plan in (WARM, COLD)]
    told = {**TTFT, **{f"4 agents {name}": values for name, values in TTFT.items()}}
    one = summary(agent_levels([WARM, COLD, *many], told))
    assert gap_words([one]).startswith("1 agent: At turn 10 ")
    table = turns_table(one)
    assert table and table.head[-2:] == ("cold : warm, 1 agent", "cached") and len(table.head) == 7


def test_a_run_without_agents_has_neither() -> None:
    """No empty plot, no empty table."""
    assert turn_plot([summary([])]) is None and turns_table(summary([])) is None
