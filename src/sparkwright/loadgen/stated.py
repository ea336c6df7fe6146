"""Figures that another tool printed, next to those computed from requests."""

from collections.abc import Mapping, Sequence

from sparkwright.domain.run import Level, StatedFigures
from sparkwright.domain.summary import METRICS, Interval, Metric


def metrics(repeats: Sequence[Level], found: Mapping[str, Metric], part: str) -> Mapping[str, Metric]:
    """All metrics of a level in the order of METRICS. found: computed from requests, which come first."""
    stated = {} if part else of_level(repeats)
    return {name: found.get(name) or stated[name] for name in METRICS if name in found or name in stated}


def of_level(repeats: Sequence[Level]) -> Mapping[str, Metric]:
    """Metric -> what the tool stated of it, of a level that has no requests."""
    told = [level.stated for level in repeats if level.stated and not level.rows]
    # One statement a level: two repeats of totals cannot be made into one median.
    return {one.name: _metric(one) for one in (told[0] if len(told) == 1 else ()) if one.name in METRICS}


def _metric(one: StatedFigures) -> Metric:
    mean, median, p90, p99 = map(_alone, (one.mean, one.median, one.p90, one.p99))
    return Metric(one.name, one.count, mean, median, p90, p99, one.least, one.most, stated=True)


def _alone(value: float | None) -> Interval | None:
    return None if value is None else Interval(value, value, value)


def missing(levels: Sequence[Level]) -> bool:
    """Return True if a level has statements instead of requests."""
    return any(level.stated and not level.rows for level in levels)
