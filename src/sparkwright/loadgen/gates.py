"""The judgement of runs by their gates."""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from sparkwright.domain.summary import GateResult, LevelSummary, RunSummary
from sparkwright.domain.units import gib
from sparkwright.domain.workload import Length, LevelPlan, Single
from sparkwright.loadgen import comparable, quality
from sparkwright.loadgen.gate_lines import WHOLE, Gate, parse, possible_values, unit_of

__all__ = ["Gate", "judge_gates", "judge_runs", "parse"]

_SIGNS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
}
_SERVER = {
    "queue": "requests_waiting",
    "preemptions": "preemptions_total",
    "kv_usage": "kv_cache_usage",
    "prefix_hits": "prefix_hit_share",
    "memory_available": "memory_available_least",
}
VALID = "the run is valid"
Judged = tuple[bool, float | None, float | None, str]  # passed, observed, wanted, of which level


def judge_gates(
    gates: Sequence[Gate], summary: RunSummary, baseline: RunSummary | None = None
) -> tuple[GateResult, ...]:
    """A result for each gate, which holds for every level that it selects; that a run is not valid is one more."""
    return judge_runs(gates, [(summary, baseline)])


def judge_runs(gates: Sequence[Gate], runs: Sequence[tuple[RunSummary, RunSummary | None]]) -> tuple[GateResult, ...]:
    """Each gate by every run (with its baseline) that can have its figure. One that none can have fails."""
    results = [_worst(gate, runs) for gate in gates]
    of_levels = any(gate.metric not in WHOLE for gate in gates)
    for summary, _ in runs if of_levels else ():
        if summary.invalid and (summary.run.levels or not summary.run.evaluation):
            name = f"{VALID[:4]}{summary.run.id}{VALID[7:]}" if len(runs) > 1 else VALID
            results.append(GateResult(name, False, None, "valid", "; ".join(summary.invalid)))
    return tuple(results)


def _worst(gate: Gate, runs: Sequence[tuple[RunSummary, RunSummary | None]]) -> GateResult:
    able = [pair for pair in runs if quality.can_have(gate.metric, pair[0].run)]
    if not able:
        asked = _text(gate, None if gate.of_baseline else gate.limit)
        return GateResult(gate.line, False, None, asked, f"{quality.wanted(gate.metric)} has such a figure")
    found = [(summary.run.id, _seen(gate, _judged(gate, summary, baseline))) for summary, baseline in able]
    run, worst = next((one for one in found if not one[1].passed), found[0])
    return replace(worst, why=f"{run}: {worst.why}") if len(able) > 1 and worst.why else worst


def _seen(gate: Gate, result: GateResult) -> GateResult:
    return result if result.observed is None else replace(result, seen=figure(result.observed, gate))


def _judged(gate: Gate, summary: RunSummary, baseline: RunSummary | None) -> GateResult:
    if gate.metric == "best_rate":
        return _best_rate(gate, summary, baseline)
    if gate.metric in WHOLE:
        observed, why = quality.figure(gate.metric, summary.run, dict(gate.where))
        passed = observed is not None and _SIGNS[gate.sign](observed, gate.limit)
        return GateResult(gate.line, passed, observed, _text(gate, gate.limit), why)
    chosen = [level for level in summary.levels if _selected(level, gate)]
    asked = _text(gate, None if gate.of_baseline else gate.limit)
    if not chosen:
        return GateResult(gate.line, False, None, asked, _no_level(gate, summary))
    if gate.of_baseline and baseline is None:
        return GateResult(gate.line, False, None, asked, "there is no baseline to compare with")
    judged = [_level(gate, *pair) for pair in _pairs(gate, chosen, summary, baseline)]
    passed, observed, wanted, where = min(judged, key=lambda one: _rank(one, gate.sign))
    return GateResult(gate.line, passed, observed, _text(gate, wanted), _doubts(chosen, summary) if passed else where)


def _doubts(chosen: Sequence[LevelSummary], summary: RunSummary) -> str:
    """The first reason that the line of an invalid run does not have already."""
    told = {f"{level.name}: {doubt}": doubt for level in chosen for doubt in level.doubts}
    own = [text for text, doubt in told.items() if not any(why.endswith(doubt) for why in summary.invalid)]
    more = f", and {len(own) - 1} more" if len(own) > 1 else ""
    return f"in doubt: {own[0]}{more}" if own else ""


def _best_rate(gate: Gate, summary: RunSummary, baseline: RunSummary | None) -> GateResult:
    """The result of a gate on the run as a whole: the rate that its search found."""
    base = baseline.best_rate if baseline and gate.of_baseline else None
    wanted = gate.limit * (base or 0.0) if gate.of_baseline else gate.limit
    observed, known = summary.best_rate, base is not None or not gate.of_baseline
    passed = observed is not None and known and _SIGNS[gate.sign](observed, wanted)
    why = "no rate was found" if observed is None else "" if known else "the baseline found no rate"
    return GateResult(gate.line, passed, observed, _text(gate, wanted if known else None), why)


def _pairs(
    gate: Gate, chosen: Sequence[LevelSummary], summary: RunSummary, baseline: RunSummary | None
) -> list[tuple[LevelSummary, LevelSummary | None]]:
    """Each level with the baseline's; failed requests count over all levels together."""
    names = {theirs: ours for ours, theirs in comparable.paired_levels(baseline.run, summary.run)} if baseline else {}
    there = {(level.plan.name, level.part): level for level in baseline.levels} if baseline else {}
    partners = [there.get((names.get(level.plan.name, ""), level.part)) for level in chosen]
    if gate.metric not in ("errors", "error_share"):
        return list(zip(chosen, partners, strict=True))
    known = [one for one in partners if one]
    return [(_together(chosen), _together(known) if known else None)]


def _no_level(gate: Gate, summary: RunSummary) -> str:
    there = ", ".join(dict.fromkeys(level.plan.name for level in summary.levels)) or "none"
    asked = ", ".join(f"{key}={value}" for key, value in gate.where)
    return f"no level has {asked}; levels: {there}" if asked else "the run has no level"


def _rank(judged: Judged, sign: str) -> tuple[bool, bool, float]:
    """The worst first: failed, without a figure, farthest on the wrong side."""
    passed, observed, wanted, _ = judged
    if observed is None or wanted is None:
        return passed, False, 0.0
    off = observed - wanted
    return passed, True, -abs(off) if sign == "==" else -off if sign.startswith("<") else off


def _level(gate: Gate, level: LevelSummary, partner: LevelSummary | None) -> Judged:
    observed, wanted, name = _value(gate, level), gate.limit, level.name
    if spoiled := next((one for one in (level, partner) if one and gate.metric in one.spoiled), None):
        return False, observed, None, f"{gate.metric} at {name} is not valid: {next(iter(spoiled.doubts), '')}"
    if gate.of_baseline:
        base = _value(gate, partner) if partner else None
        if base is None:
            return False, observed, None, f"the baseline has no {gate.metric} at {name}"
        wanted *= base
    if observed is None:
        return False, None, wanted, f"{name} has no {gate.metric}"
    text = f"at {name}: expected {_text(gate, wanted)}, found {figure(observed, gate)}"
    return _SIGNS[gate.sign](observed, wanted), observed, wanted, text


def _together(levels: Sequence[LevelSummary]) -> LevelSummary:
    """The levels as one, as far as failed requests go."""
    first, failed = levels[0], {"": sum(_failed(level) for level in levels)}
    sent = sum(level.sent for level in levels)
    return LevelSummary(first.plan, first.part, first.repeats, sent, sent - failed[""], 0, 0.0, {}, failed)


def _value(gate: Gate, level: LevelSummary) -> float | None:
    if gate.metric in _SERVER:
        return level.server.get(_SERVER[gate.metric])
    if gate.metric == "met":
        return level.met
    if gate.metric in ("errors", "error_share"):
        failed = float(_failed(level))
        return failed if gate.metric == "errors" else failed / level.sent if level.sent else None
    metric = level.metrics.get(gate.metric)
    if metric is None:
        return None
    value = getattr(metric, gate.statistic)
    return None if value is None else float(getattr(value, "value", value))


def _failed(level: LevelSummary) -> int:
    """Requests; what the end of a level by its own clock cut off is no failure, where others were answered."""
    cut = level.errors.get("time-up", 0) if level.good and level.plan.seconds else 0
    return sum(level.errors.values()) - cut


def _selected(level: LevelSummary, gate: Gate) -> bool:
    keys = dict(gate.where)
    part = f"turn {keys['turn']}" if "turn" in keys else keys.get("part", "")
    named = level.part == part and all(value == level.plan.name for key, value in gate.where if key == "level")
    numbers = ((key, value) for key, value in gate.where if key not in ("part", "turn", "level"))
    return named and all(possible_values(value) & set(_numbers(level.plan, key)) for key, value in numbers)


def _numbers(plan: LevelPlan, key: str) -> Iterable[float]:
    if key in ("concurrency", "rate"):
        return (float(getattr(plan.pace, key)),)
    if not isinstance(plan.shape, Single):
        return ()
    value: Length | int = getattr(plan.shape, key)
    return (float(value.median or value.low), float(value.high)) if isinstance(value, Length) else (float(value),)


def _text(gate: Gate, wanted: float | None) -> str:
    of = f"{gate.limit:g} x baseline" if gate.of_baseline else ""
    if wanted is None:
        return f"{gate.sign} {of}"
    return f"{gate.sign} {figure(wanted, gate)}{f' ({of})' if of else ''}"


def figure(value: float, gate: Gate) -> str:
    """The value as people write it."""
    unit = unit_of(gate.metric, gate.statistic)
    if unit == "share":
        return f"{value:.1%}"
    if unit == "bytes":
        return gib(value)
    if unit == "s":
        return f"{value * 1000:.4g} ms" if value < 1 else f"{value:.4g} s"
    return f"{value:.4g} {unit}".rstrip()
