"""Figures, units and names as readers of a report see them."""

from datetime import UTC, datetime

from sparkwright.domain.run import Conditions
from sparkwright.domain.summary import METRICS, Interval
from sparkwright.domain.units import duration

TITLES = {
    "ttft": "TTFT",
    "ttft_content": "TTFT, no reasoning",
    "tpot": "TPOT",
    "itl": "ITL",
    "end_to_end": "end to end",
    "ttft_sent": "TTFT from the send",
    "end_to_end_sent": "end to end from the send",
    "decode": "decode",
    "prefill": "prefill",
    "output_rate": "output",
    "total_rate": "prompt and output",
    "request_rate": "rate",
    "goodput": "goodput",
    "cached_share": "cached",
    "acceptance": "accepted a step",
}


def number(value: float) -> str:
    """Three digits that count: `1,188`, `45.7`, `0.612`."""
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 0.9995 or not size else f"{value:.3g}"


def letter(run: int) -> str:
    """What a run is called in plots: A for the first."""
    return "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[run % 26]


def engine_text(known: Conditions) -> str:
    """`vllm 0.21.1`; a version that is part of the name is not repeated."""
    version = "" if known.engine_version in known.engine else known.engine_version
    return f"{known.engine} {version}".strip()


def percent(value: float) -> str:
    return f"{value * 100:.0f} %"


def seconds(value: float) -> str:
    """`4.20 ms`, `310 ms`, `1.24 s`, `16 min 36 s`."""
    if abs(value) < 0.9995:
        return f"{number(value * 1000)} ms"
    return f"{number(value)} s" if abs(value) < 100 else duration(value)


def limit_text(limit: float) -> str:
    """As somebody set it: `2 s`, `50 ms`."""
    return f"{limit * 1000:g} ms" if limit < 1 else f"{limit:g} s"


def figure(metric: str, value: float) -> str:
    """A metric's value with its unit, as a cell of a table; rates have none, it is in their heads."""
    if metric == "cached_share":
        return percent(value)
    return seconds(value) if METRICS[metric][0] == "s" else number(value)


def between(metric: str, interval: Interval) -> str:
    """`40.8 to 41.9`; '' where there is one value only."""
    if interval.low == interval.high:
        return ""
    low, high = figure(metric, interval.low), figure(metric, interval.high)
    unit = low.rpartition(" ")[2]
    return f"{low.removesuffix(' ' + unit) if high.endswith(' ' + unit) else low} to {high}"


def with_interval(metric: str, interval: Interval) -> str:
    """`41.2 (40.8 to 41.9)`."""
    spread = between(metric, interval)
    return f"{figure(metric, interval.value)} ({spread})" if spread else figure(metric, interval.value)


def with_percent(metric: str, interval: Interval) -> str:
    """`41.2 ±1.4 %`: narrow, for the terminal."""
    half = (interval.high - interval.low) / 2
    value = figure(metric, interval.value)
    return f"{value} ±{half / abs(interval.value) * 100:.1f} %" if half and interval.value else value


def tokens(count: int) -> str:
    """`512`, `4K`, `1M` for powers of two, `240k` for thousands, else all digits."""
    if count and count % (1024 * 1024) == 0:
        return f"{count // (1024 * 1024)}M"
    if count and count % 1024 == 0:
        return f"{count // 1024}K"
    return f"{count // 1000}k" if count and count % 1000 == 0 else f"{count:,}"


def head(metric: str) -> str:
    """Of a column: `decode, tokens/s`."""
    unit = METRICS[metric][0]
    if metric == "request_rate":
        return unit
    return f"{TITLES[metric]}, {unit}" if unit not in ("", "s") else TITLES[metric]


def times(ratio: float) -> str:
    """How many times as much: `27 times`, `1.3 times`."""
    return f"{ratio:,.0f} times" if ratio >= 10 else f"{ratio:.1f} times"


def moment(at: float) -> str:
    """In UTC: a report is read in any zone."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
