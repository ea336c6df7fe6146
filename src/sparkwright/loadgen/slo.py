"""Which requests met their limits, and what that makes of a level."""

from collections.abc import Sequence

from sparkwright.domain.run import Row
from sparkwright.domain.workload import Slo
from sparkwright.loadgen import figures


def meets(row: Row, slo: Slo, open_loop: bool) -> bool:
    """A request that failed, or that does not tell what a limit is set on, meets nothing."""
    if row.error:
        return False
    late = figures.waited(row) if open_loop else 0.0
    return (
        _within(figures.ttft(row), slo.ttft, late)
        and _within(figures.end_to_end(row), slo.end_to_end, late)
        and _flows(row, slo.tpot)
    )


def judged(rows: Sequence[Row], slo: Slo) -> bool:
    """Whether it can be said at all who met them: answers without `usage` tell no time per token."""
    well = [row for row in rows if not row.error]
    return not (slo.tpot and well) or any(row.output_tokens is not None for row in well)


def _flows(row: Row, limit: float) -> bool:
    """An answer of one token, or one that came in one read, kept nobody waiting for the next: no limit binds it."""
    at_once = row.output_tokens == 1 or (row.output_tokens is not None and len(row.reads.at) == 1)
    return at_once or _within(figures.tpot(row), limit, 0.0)


def _within(value: float | None, limit: float, late: float) -> bool:
    return not limit or (value is not None and value + late <= limit)


def share(rows: Sequence[Row], slo: Slo, open_loop: bool) -> float | None:
    """Of the requests that were sent; None of none, or where it cannot be said."""
    if not rows or not judged(rows, slo):
        return None
    return sum(meets(row, slo, open_loop) for row in rows) / len(rows)
