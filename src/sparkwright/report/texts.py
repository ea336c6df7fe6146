"""Figures, units and names as readers of a report see them."""

import shlex
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from sparkwright.domain.run import Run, RunConditions
from sparkwright.domain.summary import METRICS, Interval
from sparkwright.domain.units import duration, percent, three_digits
from sparkwright.domain.workload import Agent, Arrival, Length, LevelPlan, Pace, Replay, Single, Slo, Text

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


def letter(run: int) -> str:
    """The letter of a run in plots: A for the first."""
    return "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[run % 26]


def engine_text(known: RunConditions) -> str:
    """`vllm 0.21.1`; a version that is part of the name is not repeated."""
    version = "" if known.engine_version in known.engine else known.engine_version
    return f"{known.engine} {version}".strip()


def seconds(value: float) -> str:
    """`4.20 ms`, `310 ms`, `1.24 s`, `16 min 36 s`."""
    if abs(value) < 0.9995:
        return f"{three_digits(value * 1000)} ms"
    return f"{three_digits(value)} s" if abs(value) < 100 else duration(value)


def limit_text(limit: float) -> str:
    """The limit as somebody set it: `2 s`, `50 ms`."""
    return f"{limit * 1000:g} ms" if limit < 1 else f"{limit:g} s"


def figure(metric: str, value: float) -> str:
    """A metric's value with its unit, as a cell of a table; rates have none, it is in their heads."""
    if metric == "cached_share":
        return percent(value)
    return seconds(value) if METRICS[metric][0] == "s" else three_digits(value)


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


_WIDE = 0.1  # of the value: from here on both ends are told


def with_percent(metric: str, interval: Interval) -> str:
    """`41.2 ±1.4 %`: narrow, for the terminal; a wide interval reads `892 (300 to 3,500)`."""
    half = (interval.high - interval.low) / 2
    value = figure(metric, interval.value)
    if not half or not interval.value:
        return value
    share = half / abs(interval.value)
    return f"{value} ±{share * 100:.1f} %" if share <= _WIDE else with_interval(metric, interval)


def tokens(count: int) -> str:
    """`512`, `4K`, `1M` for powers of two, `240k` for thousands, else all digits."""
    if count and count % (1024 * 1024) == 0:
        return f"{count // (1024 * 1024)}M"
    if count and count % 1024 == 0:
        return f"{count // 1024}K"
    return f"{count // 1000}k" if count and count % 1000 == 0 else f"{count:,}"


def column_head(metric: str) -> str:
    """The head of a column: `decode, tokens/s`."""
    unit = METRICS[metric][0]
    if metric == "request_rate":
        return unit
    return f"{TITLES[metric]}, {unit}" if unit not in ("", "s") else TITLES[metric]


def ratio_times(ratio: float) -> str:
    """The ratio as text: `27 times`, `1.3 times`."""
    return f"{ratio:,.0f} times" if ratio >= 10 else f"{ratio:.1f} times"


def moment(at: float) -> str:
    """The time in UTC: a report is read in any zone."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


Traits = Mapping[str, str]
DEPTH, LOAD = "depth", "load"


def traits(plan: LevelPlan) -> Traits:
    return {**_shape(plan), LOAD: load_text(plan.pace)}


def load_text(pace: Pace) -> str:
    if pace.arrival is Arrival.CLOSED:
        return f"c{pace.concurrency}"
    if pace.arrival is Arrival.RECORDED:
        return "at recorded times"
    to = f" to {three_digits(pace.to_rate)}" if pace.arrival is Arrival.RAMP else ""
    return f"{three_digits(pace.rate)}{to} requests/s, {pace.arrival}"


def field_name(plan: LevelPlan, part: str = "pp") -> str:
    """The name in the field's form: `pp2048 @ d4096 (c2)`; other shapes have their level's name."""
    shape = plan.shape
    if not isinstance(shape, Single):
        return plan.name
    size = shape.prompt if part == "pp" else shape.output
    at = f" @ d{shape.depth}" if shape.depth else ""
    pace = plan.pace
    load = f"{pace.rate:g}/s" if pace.rate else str(pace.arrival)
    if pace.arrival is Arrival.CLOSED:
        load = f"c{pace.concurrency}" if pace.concurrency != 1 else ""
    more = (load, "" if shape.text is Text.PROSE else str(shape.text), "cached" if shape.warm else "")
    text = ", ".join(filter(None, more))
    return f"{part}{_length(size)}{at}{f' ({text})' if text else ''}"


def is_cold(plan: LevelPlan) -> bool:
    """True if nothing of an agent's history is to come from the cache."""
    return isinstance(plan.shape, Agent) and plan.shape.cold


def curve_names(curves: Sequence[Traits]) -> list[str]:
    """Each curve by what the curves differ in; '' for a single one."""
    keys = list(dict.fromkeys(key for curve in curves for key in curve))
    differing = [key for key in keys if len({curve.get(key) for curve in curves}) > 1]
    return [", ".join(curve[key] for key in differing if curve.get(key)) for curve in curves]


def _shape(plan: LevelPlan) -> dict[str, str]:
    shape = plan.shape
    if isinstance(shape, Agent):
        cached = "cold" if is_cold(plan) else "warm" if shape.cached is None else f"{percent(shape.cached)} cached"
        noise = f"{shape.noise} other agents" if shape.noise else ""
        return {"kind": f"agent of {shape.turns} turns", "cached": cached, "noise": noise}
    if isinstance(shape, Replay):
        return {"kind": f"replay of {shape.path}"}
    return {
        "prompt": f"pp{_length(shape.prompt)}",
        "output": f"tg{_length(shape.output)}",
        DEPTH: f"d{shape.depth}",
        "cached": "depth cached" if shape.warm else "",
        "text": "" if shape.text is Text.PROSE else str(shape.text),
    }


def _length(length: Length) -> str:
    if length.low == length.high:
        return str(length.low)
    return f"{length.low}-{length.high}" + (f"~{length.median}" if length.median else "")


UNKNOWN = "not known"


def conditions(run: Run) -> list[tuple[str, str]]:
    """Every line that a stranger needs to repeat it; what is missing and should be there is marked as missing."""
    known, work = run.conditions, run.workload
    missing = dict.fromkeys(known.missing, UNKNOWN)
    thinking = {None: "the server's default", True: "on", False: "off"}[work.thinking]
    took = f", {duration(run.ended - run.began)}" if run.ended > run.began else ""
    found = (
        ("model", known.model or UNKNOWN),
        ("engine", engine_text(known) or missing.get("engine")),
        ("image", known.image),
        ("recipe", " ".join(filter(None, (known.recipe, known.recipe_hash)))),
        ("deployment", known.deployment),
        ("nodes", "\n".join(known.nodes) or missing.get("nodes")),
        ("endpoint", known.endpoint),
        ("context limit", f"{tokens(known.max_context)} tokens" if known.max_context else ""),
        ("engine's flags", shlex.join(known.flags) or missing.get("flags")),
        ("workload", f"{work.name}@{work.version}: {work.title}"),
        ("repeats", str(work.repeats)),
        ("seed", str(work.seed)),
        ("thinking", thinking),
        ("sampling", f"temperature {work.temperature:g}{', end of text ignored' if work.ignore_eos else ''}"),
        ("limits (SLO)", slo_text(work.slo) if work.slo else ""),
        ("tokenizer", known.tokenizer or UNKNOWN),
        ("run", f"{run.id}{', ' + run.state if run.state != 'done' else ''}"),
        ("imported from", run.imported),
        ("began", moment(run.began) + took),
        ("client", " on ".join(filter(None, (known.client, known.client_host)))),
        ("clock", known.clock),
        ("tags", ", ".join(run.tags)),
        ("note", run.note),
    )
    return [(name, text) for name, text in found if text]


def slo_text(slo: Slo) -> str:
    """`TTFT 2 s, TPOT 50 ms, for 90 % of requests`."""
    limits = (("TTFT", slo.ttft), ("TPOT", slo.tpot), ("end to end", slo.end_to_end))
    told = [f"{name} {limit_text(limit)}" for name, limit in limits if limit]
    return f"{', '.join(told)}, for {percent(slo.share)} of requests" if told else ""
