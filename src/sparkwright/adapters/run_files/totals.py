"""Helpers for results of other tools that hold figures and no requests."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sparkwright.domain.errors import UsageError
from sparkwright.domain.run import Conditions, Level, Run, Stated
from sparkwright.domain.workload import Length, Workload

MS = 1000.0
_MOST_LEVELS = 2000


def number(value: Any) -> float | None:
    """A finite number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def statement(name: str, found: Mapping[str, Any], scale: float = 1.0, count: int = 0) -> Stated | None:
    """Return None if neither mean nor median is stated.

    found: mean, deviation, median, p90, p99, least, most as far as they are stated; scale: units of it in one of ours.
    """
    told: dict[str, Any] = {key: value / scale for key, one in found.items() if (value := number(one)) is not None}
    return Stated(name, **told, count=count) if {"mean", "median"} & set(told) else None


def alone(name: str, value: Any) -> Stated | None:
    """One value of a whole level."""
    found = number(value)
    return None if found is None else Stated(name, found, median=found, count=1)


def decode_of(tpot: Stated | None) -> Stated | None:
    """Decode speed by time per token. Only the median turns around: a mean of rates is no rate of means."""
    if tpot is None or not tpot.median or tpot.median <= 0:
        return None
    return Stated("decode", median=1.0 / tpot.median, count=tpot.count)


def known(found: Iterable[Stated | None]) -> tuple[Stated, ...]:
    return tuple(one for one in found if one)


def about(tokens: float) -> Length:
    """A length of which the mean is known."""
    return Length(round(tokens), round(tokens))


def moment(text: Any, form: str = "") -> float:
    """Seconds since the epoch of a tool's own local time; 0.0 for what is none."""
    try:
        found = datetime.strptime(str(text), form) if form else datetime.fromisoformat(str(text))
        return found.timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0


def run_of(levels: Sequence[Level], tool: str, conditions: Conditions, note: str = "", began: float = 0.0) -> Run:
    """Raises UsageError where no level has a figure."""
    kept = [level for level in levels[:_MOST_LEVELS] if level.stated or level.rows]
    if not kept:
        raise UsageError("the file has no figure that is known here")
    plans = {level.plan.name: level.plan for level in kept}
    workload = Workload(tool, tool, tuple(plans.values()), repeats=max(level.repeat for level in kept) + 1)
    return Run("", began, workload, conditions, "done", began, tuple(kept), note=note, imported=tool)
