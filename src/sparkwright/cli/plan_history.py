"""`sparkwright plan --history`: predictions next to what starts measured on these nodes."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sparkwright.cli.columns import aligned, simulated_mark
from sparkwright.domain.plan_history import DECODE, KV_TOKENS, START, PredictionError, PredictionScore, scores
from sparkwright.domain.units import counted, duration, gib
from sparkwright.domain.values import asdict

_SHOWN = 12  # latest figures


def history_text(rows: Sequence[PredictionError]) -> str:
    """The planner's accuracy here, by node and quantity, then the latest figures."""
    if not rows:
        return "nothing to compare yet: `sparkwright up` adds its start and what the engine prints, a bench its speed"
    head = ("node", "quantity", "predictions", "figures", "median error", "worst", "inside the range")
    table = aligned([head, *map(_score, scores(rows))])
    latest = ("when", "recipe", "node", "quantity", "predicted", "range", "measured", "error")
    more = aligned([latest, *(_row(one) for one in reversed(rows[-_SHOWN:]))])
    return f"{table}\n\nlatest of {counted(len(rows), 'figure')}\n{more}"


def history_json(rows: Sequence[PredictionError]) -> dict[str, Any]:
    """`scores` and `rows`; bytes, tokens, seconds and tokens/s, errors as shares."""
    told = [asdict(one) | {"off": one.off, "inside": one.inside} for one in rows]
    return {"scores": [asdict(one) for one in scores(rows)], "rows": told}


def _score(one: PredictionScore) -> tuple[str, ...]:
    kind = "corrected" if one.learned else "first"
    inside = f"{one.inside} of {one.count}"
    return one.node, one.quantity, kind, str(one.count), f"{one.median:.1%}", f"{one.worst:.1%}", inside


def _row(one: PredictionError) -> tuple[str, ...]:
    when = datetime.fromtimestamp(one.at, UTC).strftime("%Y-%m-%d %H:%M") if one.at else "-"
    low, high = _figure(one, one.low), _figure(one, one.high)
    end = "" if one.inside else ", outside"
    return (
        when, f"{simulated_mark(one.simulated)}{one.recipe}", one.node, one.quantity, _figure(one, one.predicted),
        f"{low} to {high}", _figure(one, one.measured), f"{one.off:+.1%}{end}",
    )  # fmt: skip


def _figure(one: PredictionError, value: float) -> str:
    if one.quantity == START:
        return duration(value)
    if one.quantity == DECODE:
        return f"{value:,.1f} tokens/s"
    return f"{value:,.0f}" if one.quantity == KV_TOKENS else gib(int(value))
