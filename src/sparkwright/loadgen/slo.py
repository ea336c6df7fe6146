"""Requests that met their limits, and the verdict on a level."""

from collections.abc import Iterable, Sequence
from math import sqrt

from sparkwright.domain.run import Row
from sparkwright.domain.values import dataclass
from sparkwright.domain.workload import RateSearch, Slo
from sparkwright.loadgen import figures


def meets_slo(row: Row, slo: Slo, open_loop: bool) -> bool:
    """A request that failed, or that lacks what a limit is set on, meets nothing."""
    if row.error:
        return False
    late = figures.waited(row) if open_loop else 0.0
    return _within(row.first, slo.ttft, late) and _within(row.end, slo.end_to_end, late) and _flows(row, slo.tpot)


def judged(rows: Sequence[Row], slo: Slo) -> bool:
    """True if the limits can be judged at all: answers without `usage` have no time per token."""
    well = [row for row in rows if not row.error]
    return not (slo.tpot and well) or any(row.output_tokens is not None for row in well)


def _flows(row: Row, limit: float) -> bool:
    """An answer of one token, or one that came in one read, kept nobody waiting for the next: no limit binds it."""
    at_once = row.output_tokens == 1 or (row.output_tokens is not None and len(row.reads.at) == 1)
    return at_once or _within(figures.time_per_token(row), limit, 0.0)


def _within(value: float | None, limit: float, late: float) -> bool:
    return not limit or (value is not None and value + late <= limit)


def share_in_slo(rows: Sequence[Row], slo: Slo, open_loop: bool) -> float | None:
    """The share of sent requests that met the limits; None if none was sent, or it is unknown."""
    if not rows or not judged(rows, slo):
        return None
    return sum(meets_slo(row, slo, open_loop) for row in rows) / len(rows)


Point = tuple[float, bool]  # rate, whether the SLO was met


@dataclass(frozen=True, slots=True)
class Next:
    """The rate to measure next."""

    rate: float


@dataclass(frozen=True, slots=True)
class BestRate:
    """rate: the highest that was seen to meet the SLO; None when not even the lowest did. why: what ended it."""

    rate: float | None
    why: str


def next_rate(search: RateSearch, points: Iterable[Point]) -> Next | BestRate:
    """Doubles from the lowest rate until one fails, then halves the ratio between the last good and the first bad.

    It overloads the server once or twice only, and needs about log2 of (high / low) and of 1 / precision steps.
    """
    measured = list(points)
    best_rate, failed = highest_rate(measured), _lowest_failed(measured)
    if failed is None:
        return _upwards(search, best_rate)
    if failed <= search.low or (best_rate is None and any(rate <= search.low for rate, _ in measured)):
        return BestRate(None, f"the lowest rate, {search.low:g}/s, does not meet the SLO")
    if best_rate is None:
        return Next(search.low)
    if failed / best_rate - 1.0 <= search.precision:
        return BestRate(best_rate, f"{failed:g}/s does not meet the SLO")
    return Next(sqrt(best_rate * failed))


def _upwards(search: RateSearch, best_rate: float | None) -> Next | BestRate:
    if best_rate is None:
        return Next(search.low)
    if best_rate >= search.high:
        return BestRate(best_rate, f"the highest rate that was asked for, {search.high:g}/s, still meets the SLO")
    return Next(min(2.0 * best_rate, search.high))


def highest_rate(points: Iterable[Point]) -> float | None:
    """The highest rate that met the SLO below every one that did not: luck above a failure does not count."""
    measured: Sequence[Point] = list(points)
    failed = _lowest_failed(measured)
    return max((rate for rate, met in measured if met and (failed is None or rate < failed)), default=None)


def _lowest_failed(points: Sequence[Point]) -> float | None:
    return min((rate for rate, met in points if not met), default=None)
