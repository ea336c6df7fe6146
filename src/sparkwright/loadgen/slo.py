"""Which requests met their limits, and what that makes of a level."""

from collections.abc import Sequence

from sparkwright.domain.traffic import Row
from sparkwright.domain.workload import Slo
from sparkwright.loadgen import figures


def meets(row: Row, slo: Slo, open_loop: bool) -> bool:
    """A request that failed, or that does not tell what a limit is set on, meets nothing.

    An answer of one token has no time per token: that limit does not bind it.
    """
    if row.error:
        return False
    late = figures.waited(row) if open_loop else 0.0
    return (
        _within(figures.ttft(row), slo.ttft, late)
        and _within(figures.end_to_end(row), slo.end_to_end, late)
        and (row.output_tokens == 1 or _within(figures.tpot(row), slo.tpot, 0.0))
    )


def _within(value: float | None, limit: float, late: float) -> bool:
    return not limit or (value is not None and value + late <= limit)


def share(rows: Sequence[Row], slo: Slo, open_loop: bool) -> float | None:
    """Of the requests that were sent; None of none."""
    return sum(meets(row, slo, open_loop) for row in rows) / len(rows) if rows else None
