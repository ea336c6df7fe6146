"""The few figures that a run is known by."""

from collections.abc import Callable
from dataclasses import dataclass

from sparkwright.domain.summary import METRICS, LevelSummary, RunSummary
from sparkwright.domain.workload import Single
from sparkwright.report.agentic import gap_at, gaps
from sparkwright.report.tables import whole
from sparkwright.report.traits import field_name, load_text
from sparkwright.report.words import between, figure, number, seconds, times


@dataclass(frozen=True, slots=True)
class Headline:
    """value without its unit; spread: the interval; where: at which level."""

    name: str
    value: str
    unit: str
    spread: str
    where: str


def headlines(summary: RunSummary) -> list[Headline]:
    """Speed of one user where the context is least and where it is deepest, of all users, and of a warm turn."""
    levels = _single(whole(summary))
    told = [
        _metric("Decode", levels, "decode", min),
        _deepest(levels),
        _metric("Prefill", levels, "prefill", min),
        _metric("First token", levels, "ttft", min),
        _most(levels),
        _best_rate(summary),
        _warm(summary),
    ]
    return [one for one in told if one]


def _single(levels: list[LevelSummary]) -> list[LevelSummary]:
    """Independent requests tell an engine's speed best; other shapes only where there are no others."""
    return [level for level in levels if isinstance(level.plan.shape, Single)] or levels


def _metric(name: str, levels: list[LevelSummary], metric: str, pick: Callable[..., LevelSummary]) -> Headline | None:
    """At the level that is least (or most) loaded and deep."""
    found = [level for level in levels if metric in level.metrics and level.metrics[metric].count]
    return _headline(name, pick(found, key=_heaviness), metric) if found else None


def _deepest(levels: list[LevelSummary]) -> Headline | None:
    one_user = [level for level in levels if level.plan.pace.concurrency <= 1 and _depth(level)]
    return _metric("Decode, deep", one_user, "decode", max)


def _most(levels: list[LevelSummary]) -> Headline | None:
    found = [level for level in levels if "output_rate" in level.metrics and level.plan.pace.concurrency != 1]
    best = max(found, key=lambda level: level.metrics["output_rate"].median.value, default=None)
    return _headline("All users", best, "output_rate") if best else None


def _best_rate(summary: RunSummary) -> Headline | None:
    if summary.best_rate is None:
        return None
    return Headline("Goodput", number(summary.best_rate), "requests/s", "", "the highest rate within the limits")


def _warm(summary: RunSummary) -> Headline | None:
    gap = gap_at(gaps(summary))
    if gap is None:
        return None
    value, _, unit = seconds(gap.warm.value).rpartition(" ")
    where = f"cold {seconds(gap.cold.value)}" + (f": {times(gap.ratio)} as long" if gap.ratio else "")
    return Headline(f"Turn {gap.turn}, warm", value, unit, between("ttft", gap.warm), where)


def _headline(name: str, level: LevelSummary, metric: str) -> Headline:
    interval = level.metrics[metric].median
    unit = METRICS[metric][0]
    value = figure(metric, interval.value)
    if unit == "s":
        value, _, unit = value.rpartition(" ")
    part = "tg" if metric in ("decode", "output_rate") else "pp"
    where = field_name(level.plan, part)
    return Headline(
        name, value, unit, between(metric, interval), where if isinstance(level.plan.shape, Single) else _load(level)
    )


def _load(level: LevelSummary) -> str:
    return f"{level.plan.name}, {load_text(level.plan.pace)}"


def _depth(level: LevelSummary) -> int:
    return level.plan.shape.depth if isinstance(level.plan.shape, Single) else 0


def _heaviness(level: LevelSummary) -> tuple[int, int]:
    """Concurrency without a limit counts as the most."""
    return level.plan.pace.concurrency or 1_000_000, _depth(level)
