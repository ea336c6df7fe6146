"""Curves: what belongs on one, and what is reported of it."""

from dataclasses import replace

from fakes.runs import depth_plans, rate_plans, user_plans
from sparkwright.domain.workload import Single, Text
from sparkwright.report.series import depth_plots, load_plots
from unit.report.made import level_summary, summary

DEPTHS = depth_plans((0, 4096, 32768))


def test_a_curve_holds_the_summarys_own_figures() -> None:
    """x, value and interval, unrounded."""
    plot = depth_plots([summary([level_summary(plan, decode=40.0 - n) for n, plan in enumerate(DEPTHS)])])[0]
    points = plot.curves[0].points
    assert [(p.x, p.y.value, p.y.low) for p in points] == [(0, 40.0, 38.0), (4096, 39.0, 37.05), (32768, 38.0, 36.1)]
    assert plot.says == "40.0 tokens/s without context, 38.0 at 32K: 5 % less."


def test_levels_that_differ_in_more_than_depth_are_curves_of_their_own() -> None:
    """Code and prose next to each other, not one zigzag; each is named by what differs."""
    code = [replace(plan, name=f"code {plan.name}", shape=_as_code(plan.shape)) for plan in DEPTHS]
    levels = [level_summary(plan, decode=40.0) for plan in DEPTHS] + [level_summary(plan, decode=80.0) for plan in code]
    curves = depth_plots([summary(levels)])[0].curves
    assert [curve.name for curve in curves] == ["decode", "code"] and [curve.style for curve in curves] == [0, 1]


def _as_code(shape: object) -> Single:
    assert isinstance(shape, Single)
    return replace(shape, text=Text.CODE)


def test_a_single_depth_is_no_curve() -> None:
    """It is in the table; a plot of one point reports nothing."""
    assert depth_plots([summary([level_summary(DEPTHS[0], decode=40.0)])]) == []


def test_a_level_without_the_figure_leaves_a_gap_not_a_zero() -> None:
    """The curve goes on at the next level that has it."""
    levels = [
        level_summary(DEPTHS[0], decode=40.0),
        level_summary(DEPTHS[1], ttft=1.0),
        level_summary(DEPTHS[2], decode=30.0),
    ]
    assert [point.x for point in depth_plots([summary(levels)])[0].curves[0].points] == [0, 32768]


def test_latency_is_drawn_with_its_tail_and_its_limit() -> None:
    """Median and p99, the SLO as a line, and up to where it holds."""
    levels = [
        level_summary(plan, ttft=0.4 * users) for plan, users in zip(user_plans((1, 2, 4)), (1, 2, 4), strict=True)
    ]
    plot = next(plot for plot in load_plots([summary(levels)]) if plot.id == "ttft-concurrency")
    assert [curve.name for curve in plot.curves] == ["median", "p99"]
    assert plot.limits == (("SLO 4 s", 4.0),)
    assert plot.says == "p99 stays within SLO 4 s up to 2 requests at a time."


def test_a_limit_that_never_holds_is_reported_as_broken_at_once() -> None:
    """A limit that always holds names the most that was asked."""
    slow = [level_summary(plan, ttft=9.0) for plan in rate_plans((0.5, 1.0))]
    fast = [level_summary(plan, ttft=0.2) for plan in rate_plans((0.5, 1.0))]
    told = [load_plots([summary(levels)])[0].says for levels in (slow, fast)]
    assert told[0] == "p99 is above SLO 4 s from the first level on."
    assert told[1] == "p99 stays within SLO 4 s up to 1 requests/s offered, the most that was asked."


def test_several_runs_share_a_plot() -> None:
    """Each curve knows its run, and each run has its sentence."""
    slow = summary([level_summary(plan, decode=20.0) for plan in DEPTHS], "r-2")
    plot = depth_plots([summary([level_summary(plan, decode=40.0) for plan in DEPTHS]), slow])[0]
    assert [curve.run for curve in plot.curves] == [0, 1]
    assert plot.says.startswith("A: 40.0 tokens/s") and "B: 20.0 tokens/s" in plot.says
