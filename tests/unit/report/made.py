"""Summaries with figures of our choice: no rows, no statistics."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fakes.runs import BEGAN, CONDITIONS, SLO, workload
from sparkwright.domain.run import Run
from sparkwright.domain.summary import Comparison, Interval, LevelSummary, Metric, MetricComparison, RunSummary
from sparkwright.domain.workload import LevelPlan


def interval(value: float) -> Interval:
    return Interval(value, value * 0.95, value * 1.1)


def metric(name: str, median: float) -> Metric:
    """p90 and p99 are twice and three times the median."""
    one = interval(median)
    return Metric(name, 12, one, one, interval(2 * median), interval(3 * median), median / 2, median * 3)


def level_summary(plan: LevelPlan, part: str = "", **figures: float) -> LevelSummary:
    metrics = {name: metric(name, value) for name, value in figures.items()}
    return LevelSummary(plan, part, 3, 12, 12, 1536, 10.0, metrics)


def summary(levels: Sequence[LevelSummary], name: str = "r-20261122-7f3a", **conditions: object) -> RunSummary:
    known = replace(CONDITIONS, **conditions)  # type: ignore[arg-type]
    work = workload(list(dict.fromkeys(one.plan for one in levels)))
    return RunSummary(Run(name, BEGAN, work, known, "done", BEGAN + 60), tuple(levels))


def agent_levels(plans: Sequence[LevelPlan], ttft: Mapping[str, Sequence[float]]) -> list[LevelSummary]:
    """Agents' levels with their turns: plan's name -> TTFT by turn; 80 % are cached from the second turn on."""
    made = []
    for plan in plans:
        made.append(level_summary(plan, ttft=ttft[plan.name][0]))
        for turn, value in enumerate(ttft[plan.name], 1):
            share = 0.8 if turn > 1 and "cold" not in plan.name else 0.0
            made.append(level_summary(plan, f"turn {turn}", ttft=value, cached_share=share))
    return made


def compared(verdict: str = "worse", **more: object) -> Comparison:
    row = MetricComparison("d0", "", "decode", "median", interval(40.0), interval(30.0), interval(0.75), verdict)
    return replace(Comparison("r-1", "r-2", (row,)), **more)  # type: ignore[arg-type]


__all__ = ["SLO", "agent_levels", "compared", "interval", "level_summary", "metric", "summary"]
