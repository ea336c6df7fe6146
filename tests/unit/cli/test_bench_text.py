"""The last screen of a benchmark."""

from dataclasses import replace

from fakes import measured
from fakes.runs import agent_plans, depth_plans, run
from sparkwright.cli.bench_text import comparison_text, fitting, next_text, summary_text
from sparkwright.domain.run import Lag
from sparkwright.loadgen.stats import summarize
from sparkwright.report.tables import levels_table
from unit.report.made import agent_levels, compared, level_summary, summary
from unit.report.test_agentic import TTFT


def test_simulated_comes_first_and_doubts_are_below() -> None:
    """Run, model, engine, verdict in one line; why figures may not count after them."""
    one = replace(level_summary(depth_plans((0,))[0], decode=40.0), doubts=("5 of 48 requests failed",))
    text = summary_text(summary([one]))
    assert text.startswith("SIMULATED  r-20261122-7f3a  deepseek-v4-flash on vllm 0.21.1: valid, with doubts\n")
    assert text.index("40.0 ±7.5 %") < text.index("doubt: 5 of 48 requests failed")


def test_a_client_that_was_behind_everywhere_is_shown_what_to_do() -> None:
    """Guards a first run on a busy laptop: the figures are shown, and the way to ones that count."""
    late = measured.run(measured.make_level([measured.make_row()], lag=Lag(p99=0.011)))
    assert "hint:  the client was short of CPU time" in summary_text(summarize(late))
    assert "hint:" not in summary_text(summarize(measured.run(measured.make_level([measured.make_row()]))))


def test_agents_turns_and_their_sentence_are_shown() -> None:
    """The answer to the question is in the text."""
    assert "cold takes 30 times as long." in summary_text(summary(agent_levels(agent_plans(), TTFT)))


def test_a_narrow_terminal_gets_fewer_columns() -> None:
    """The columns that are missed least go first; speed, latency and failures stay."""
    table = levels_table(
        summary([level_summary(depth_plans((0,))[0], decode=40.0, ttft=0.3, tpot=0.02, prefill=1900.0)])
    )
    narrow = fitting(table, 60)
    assert "TPOT" in table.head and "TPOT" not in narrow.head and len(narrow.rows[0]) == len(narrow.head)
    assert {"decode, tokens/s", "TTFT", "requests"} <= set(narrow.head)
    assert fitting(table, 0) == table


def test_next_commands_name_the_run() -> None:
    """The commands are ready to be copied; console and gateway only for a measured deployment, the latter at its
    engine."""
    made = run(depth_plans((0,)), "r-2")
    elsewhere = replace(made, conditions=replace(made.conditions, ours=False))
    assert "sparkwright report r-2 -o report.html" in next_text(elsewhere)
    assert "--gateway" not in next_text(elsewhere) and "--console" not in next_text(elsewhere)
    ours = replace(elsewhere, conditions=replace(elsewhere.conditions, ours=True, deployment="chat"))
    assert "sparkwright bench chat --gateway" in next_text(ours) and "report r-2 --console" in next_text(ours)


def test_a_refused_comparison_reports_why() -> None:
    """The refusal shows no table of nothing."""
    text = comparison_text(compared(rows=(), refused=("the models differ: a and b",)))
    assert text == "not comparable: the models differ: a and b"
