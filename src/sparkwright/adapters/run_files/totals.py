"""Helpers for results of other tools that hold figures and no requests."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sparkwright.domain.errors import UsageError
from sparkwright.domain.run import Level, Run, RunConditions, StatedFigures
from sparkwright.domain.workload import Length, Single, Workload

MS = 1000.0
_MOST_LEVELS = 2000
_MOST_COUNT, _MOST_FIGURE = 10**12, 1e12  # tokens, requests, seconds: above, a file is damaged or made up


def number(value: Any) -> float | None:
    """A finite number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def statement(name: str, found: Mapping[str, Any], scale: float = 1.0, count: int = 0) -> StatedFigures | None:
    """Return None if neither mean nor median is stated.

    found: mean, deviation, median, p90, p99, least, most as far as they are stated; scale: units of it in one of ours.
    """
    told: dict[str, Any] = {key: value / scale for key, one in found.items() if (value := number(one)) is not None}
    return StatedFigures(name, **told, count=count) if {"mean", "median"} & set(told) else None


def single_figure(name: str, value: Any) -> StatedFigures | None:
    """One value of a whole level."""
    found = number(value)
    return None if found is None else StatedFigures(name, found, median=found, count=1)


def decode_of(tpot: StatedFigures | None) -> StatedFigures | None:
    """Decode speed by time per token. Only the median turns around: a mean of rates is no rate of means."""
    if tpot is None or not tpot.median or tpot.median <= 0:
        return None
    return StatedFigures("decode", median=1.0 / tpot.median, count=tpot.count)


def known_figures(found: Iterable[StatedFigures | None]) -> tuple[StatedFigures, ...]:
    return tuple(one for one in found if one)


def fixed_length(tokens: float) -> Length:
    """A length of which the mean is known."""
    return Length(round(tokens), round(tokens))


def moment(text: Any, form: str = "") -> float:
    """Seconds since the epoch of a tool's own local time; 0.0 for what is none."""
    try:
        found = datetime.strptime(str(text), form) if form else datetime.fromisoformat(str(text))
        return found.timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0


def run_of_totals(
    levels: Sequence[Level], tool: str, conditions: RunConditions, note: str = "", began: float = 0.0
) -> Run:
    """Raises UsageError where no level has a figure."""
    kept = [level for level in levels[:_MOST_LEVELS] if level.stated or level.rows]
    if not kept:
        raise UsageError("the file has no figure that is known here")
    plans = {level.plan.name: level.plan for level in kept}
    workload = Workload(tool, tool, tuple(plans.values()), repeats=max(level.repeat for level in kept) + 1)
    return Run("", began, workload, conditions, "done", began, tuple(kept), note=note, imported=tool)


def in_range(run: Run) -> Run:
    """The run itself. Raises ValueError for a count or figure that no benchmark can have."""
    for level in run.levels:
        _check(level.plan.name, _counts(level), _MOST_COUNT)
        _check(level.plan.name, _figures(level), _MOST_FIGURE)
    return run


def _check(where: str, values: Iterable[Any], most: float) -> None:
    for value in values:
        if not isinstance(value, int | float) or not -most <= value <= most:
            raise ValueError(f"{where[:60]}: {str(value)[:30]} is out of range")


def _counts(level: Level) -> Iterator[Any]:
    shape, plan, total = level.plan.shape, level.plan, level.totals
    yield from (plan.requests, plan.pace.concurrency, plan.pace.rate)
    if isinstance(shape, Single):
        yield from (shape.prompt.low, shape.prompt.high, shape.output.low, shape.output.high, shape.depth)
    if total:
        yield from (total.sent, total.good, total.output_tokens, *total.failed.values())
    for row in level.rows:
        yield from (row.prompt_tokens or 0, row.output_tokens or 0, row.planned_prompt, row.planned_output)


def _figures(level: Level) -> Iterator[Any]:
    yield level.seconds
    for row in level.rows:
        yield from (row.sent, row.first or 0.0, row.end or 0.0)
    for one in level.stated:
        told = (one.mean, one.deviation, one.median, one.p90, one.p99, one.least, one.most)
        yield from (value for value in told if value is not None)
        yield from one.values
