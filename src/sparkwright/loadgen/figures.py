"""Figures of one request, from its row. None where the row does not have it; seconds, tokens, tokens per second."""

from collections.abc import Callable, Mapping

from sparkwright.domain.run import Row
from sparkwright.domain.workload import Arrival, LevelPlan


def is_open(plan: LevelPlan) -> bool:
    """True if requests come by the clock, not when others end: a wait before the send counts as latency then."""
    return plan.pace.arrival is not Arrival.CLOSED


def time_per_token(row: Row) -> float | None:
    """(last token - first token) / tokens after the first read: that read's own tokens came in no time."""
    at, tokens = row.reads.at, row.reads.tokens
    if row.output_tokens is None or len(at) < 2:
        return None
    later = row.output_tokens - tokens[0]
    return (at[-1] - at[0]) / later if later > 0 and at[-1] > at[0] else None


def decode(row: Row) -> float | None:
    each = time_per_token(row)
    return 1.0 / each if each else None


def cached(row: Row) -> int:
    """The cached tokens as the server reported them, else as planned."""
    return row.planned_cached if row.cached_tokens is None else row.cached_tokens


def prefill(row: Row) -> float | None:
    """Prompt tokens that were not cached, over the time to the first token."""
    if row.prompt_tokens is None or not row.first:
        return None
    fresh = row.prompt_tokens - cached(row)
    return fresh / row.first if fresh > 0 else None


def cached_share(row: Row) -> float | None:
    if row.cached_tokens is None or not row.prompt_tokens:
        return None
    return row.cached_tokens / row.prompt_tokens


Figure = Callable[[Row], float | None]
# All from the send: to the first token of any kind, to the first of the answer itself, to the last byte.
_LATENCIES: Mapping[str, Figure] = {
    "ttft": lambda row: row.first,
    "ttft_content": lambda row: row.first_content,
    "end_to_end": lambda row: row.end,
}
_OTHERS: Mapping[str, Figure] = {
    "tpot": time_per_token,
    "decode": decode,
    "prefill": prefill,
    "cached_share": cached_share,
}


def waited(row: Row) -> float:
    """Seconds that it was sent later than intended."""
    return max(0.0, row.sent - row.intended)


def _from_intended(figure: Figure) -> Figure:
    return lambda row: None if (value := figure(row)) is None else value + waited(row)


def per_request(open_loop: bool) -> Mapping[str, Figure]:
    """Metric -> figure. In an open loop latencies count from the intended time; those from the send are separate."""
    if not open_loop:
        return {**_LATENCIES, **_OTHERS}
    since = {name: _from_intended(figure) for name, figure in _LATENCIES.items()}
    sent = {f"{name}_sent": _LATENCIES[name] for name in ("ttft", "end_to_end")}
    return {**since, **_OTHERS, **sent}
