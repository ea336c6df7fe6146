"""Markdown for a post: the field's form, and no name that breaks it."""

from dataclasses import replace

from fakes.runs import agent_plans, depth_plans, user_plans
from sparkwright.report.markdown import escaped, markdown
from unit.for_each import for_each
from unit.report.made import agent_levels, compared, level_summary, summary
from unit.report.test_agentic import TTFT


def test_speeds_have_the_form_of_the_field() -> None:
    """A line for prefill and one for decode, with depth and concurrency in the test's name."""
    deep, many = depth_plans((4096,))[0], user_plans((4,))[0]
    text = markdown(
        [
            summary(
                [
                    level_summary(deep, decode=40.0, prefill=1900.0, ttft=3.2, tpot=0.025),
                    level_summary(many, decode=20.0),
                ]
            )
        ]
    )
    assert text.startswith("## deepseek-v4-flash on vllm 0.21.1\n")
    assert "| model | test | t/s | TTFT (ms) | TPOT (ms) |\n| :--- | ---: | ---: | ---: | ---: |" in text
    assert "| deepseek-v4-flash | pp2048 @ d4096 | 1900.00 ± 142.50 | 3200.00 ± 240.00 |  |" in text
    assert "| deepseek-v4-flash | tg128 @ d4096 | 40.00 ± 3.00 |  | 25.00 ± 1.88 |" in text
    assert "| deepseek-v4-flash | tg128 (c4) | 20.00 ± 1.50 |  |  |" in text


def test_a_level_without_a_figure_stays_in_the_tables() -> None:
    """All of its requests failed: that is a result, and no reason to leave it out."""
    good, lost = (level_summary(plan, decode=40.0) for plan in user_plans((1, 4)))
    text = markdown([summary([good, replace(lost, metrics={}, good=0)])])
    assert "tg128" in text and f"| {lost.plan.name} |" in text and f"0 of {lost.sent}" in text


def test_simulated_and_doubtful_figures_report_it_first() -> None:
    """Anyone who copies the table copies the line above it."""
    one = replace(summary([level_summary(depth_plans((0,))[0], decode=40.0)]), invalid=("the client was behind",))
    text = markdown([one])
    assert (
        text.index("**SIMULATED")
        < text.index("not valid")
        < text.index("the client was behind")
        < text.index("| model |")
    )


def test_agents_and_comparisons_follow() -> None:
    """The sentence on turn 10, the turns, and both runs side by side."""
    text = markdown([summary(agent_levels(agent_plans(), TTFT))], [compared()])
    assert "cold takes 30 times as long." in text and "| turn | TTFT, 80 % cached |" in text
    assert "| d0 | decode | 40.0 (38.0 to 44.0) | 30.0 (28.5 to 33.0) | 0.75 (0.71 to 0.83) | worse |" in text


@for_each(
    "name, text",
    [
        ("a|b", "a\\|b"),
        ("a\nb", "a b"),
        ("<img src=x>", "\\<img src=x\\>"),
        ("@everyone pp2 @ d4", "\\@everyone pp2 @ d4"),
        ("gpt_oss", "gpt\\_oss"),
        ("[x](http://y)", "\\[x\\](http://y)"),
    ],
)
def test_no_name_can_break_the_table(name: str, text: str) -> None:
    """A name does not open a tag, call a user or become a link, either."""
    assert escaped(name) == text
