"""The names of levels."""

from dataclasses import replace

from fakes.runs import agent_plans, depth_plans, rate_plans, user_plans
from sparkwright.domain.workload import Agent, Arrival, Length, LevelPlan, Pace, Replay, Single, Text
from sparkwright.report.texts import curve_names, field_name, traits
from unit.for_each import for_each

DEEP = depth_plans((4096,))[0]
SHAPE = Single(Length(2048, 2048), Length(128, 128), 4096)


@for_each(
    "plan, name",
    [
        (DEEP, "tg128 @ d4096"),
        (user_plans((4,))[0], "tg128 (c4)"),
        (rate_plans((0.5,))[0], "tg128 (0.5/s)"),
        (replace(DEEP, shape=replace(SHAPE, text=Text.CODE, warm=True)), "tg128 @ d4096 (code, cached)"),
        (LevelPlan("x", Single(Length(10, 20, 12), Length(1, 9))), "tg1-9"),
        (agent_plans()[0], "1 agent"),
    ],
)
def test_levels_that_differ_have_names_that_differ(plan: LevelPlan, name: str) -> None:
    """The names are the field's, with everything that a reader needs to distinguish them."""
    assert field_name(plan, "tg") == name


def test_every_shape_and_pace_has_traits() -> None:
    """None is without words, whatever the workload."""
    shapes = (SHAPE, Agent(3, 10, 10, 10, 10, 10), Replay("chat.jsonl"))
    for shape in shapes:
        for arrival in Arrival:
            told = traits(LevelPlan("x", shape, Pace(arrival, 2, rate=1.0, to_rate=2.0)))
            assert told["load"] and len(told) > 1


def test_curves_are_named_by_what_they_differ_in() -> None:
    """The names contain nothing that curves share; one alone has no name."""
    code = replace(DEEP, shape=replace(SHAPE, text=Text.CODE))
    assert curve_names([traits(DEEP), traits(code)]) == ["", "code"]
    assert curve_names([traits(DEEP)]) == [""]
