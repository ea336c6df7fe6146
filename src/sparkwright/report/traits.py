"""What distinguishes the levels of a workload: curves are levels that differ in one trait only."""

from collections.abc import Mapping, Sequence

from sparkwright.domain.workload import Agent, Arrival, Length, LevelPlan, Pace, Replay, Single, Text
from sparkwright.report.texts import number, percent

Traits = Mapping[str, str]
DEPTH, LOAD = "depth", "load"


def traits(plan: LevelPlan) -> Traits:
    return {**_shape(plan), LOAD: load_text(plan.pace)}


def load_text(pace: Pace) -> str:
    if pace.arrival is Arrival.CLOSED:
        return f"c{pace.concurrency}"
    if pace.arrival is Arrival.RECORDED:
        return "at recorded times"
    to = f" to {number(pace.to_rate)}" if pace.arrival is Arrival.RAMP else ""
    return f"{number(pace.rate)}{to} requests/s, {pace.arrival}"


def field_name(plan: LevelPlan, part: str = "pp") -> str:
    """As the field writes it: `pp2048 @ d4096 (c2)`; other shapes have their level's name."""
    shape = plan.shape
    if not isinstance(shape, Single):
        return plan.name
    size = shape.prompt if part == "pp" else shape.output
    at = f" @ d{shape.depth}" if shape.depth else ""
    more = [_short_load(plan.pace), "" if shape.text is Text.PROSE else str(shape.text), "cached" if shape.warm else ""]
    told = ", ".join(text for text in more if text)
    return f"{part}{_length(size)}{at}{f' ({told})' if told else ''}"


def _short_load(pace: Pace) -> str:
    if pace.arrival is Arrival.CLOSED:
        return f"c{pace.concurrency}" if pace.concurrency != 1 else ""
    return f"{pace.rate:g}/s" if pace.rate else str(pace.arrival)


def is_cold(plan: LevelPlan) -> bool:
    """Whether nothing of an agent's history is to come from the cache."""
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
