"""Results of guidellm (`benchmarks.json`), its report versions 1 and 2: one benchmark is one level.

Each distribution stands under the requests' state (`successful`), with mean, median, std_dev, min, max, count and
percentiles; names that end with _ms are milliseconds, request_latency is seconds.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from sparkwright.adapters.run_files.totals import (
    MS,
    fixed_length,
    known_figures,
    number,
    run_of_totals,
    single_figure,
    statement,
)
from sparkwright.domain.run import Level, Run, RunConditions, StatedFigures, Totals
from sparkwright.domain.workload import Arrival, LevelPlan, Pace, Single

TOOL = "guidellm"
_TIMES = (
    ("ttft", "time_to_first_token_ms", MS),
    ("ttft_content", "time_to_first_output_token_ms", MS),
    ("tpot", "inter_token_latency_ms", MS),
    ("end_to_end", "request_latency", 1.0),
)
_RATES = (
    ("output_rate", "output_tokens_per_second"),
    ("total_rate", "tokens_per_second"),
    ("request_rate", "requests_per_second"),
)
Tree = Mapping[str, Any]


def is_guidellm(tree: Tree) -> bool:
    found = tree.get("benchmarks")
    return isinstance(found, list) and bool(found) and all(isinstance(one, dict) and "metrics" in one for one in found)


def read(tree: Tree) -> Run:
    """Raises UsageError, KeyError, TypeError, ValueError, AttributeError."""
    levels, seen = [], dict[str, int]()
    for one in tree["benchmarks"]:
        name, pace = _strategy(one)
        seen[name] = seen.get(name, 0) + 1
        levels.append(_level(one, name if seen[name] == 1 else f"{name} ({seen[name]})", pace))
    version = (tree.get("metadata") or {}).get("guidellm_version", "?")
    began = number((tree["benchmarks"][0].get("scheduler_metrics") or {}).get("start_time")) or 0.0
    conditions = RunConditions("", _model(tree), client=TOOL)
    note = f"version {version}; lengths are means, time per output token is its time between tokens"
    return run_of_totals(levels, TOOL, conditions, note, began)


def _model(tree: Tree) -> str:
    """The model; by the report's version it stands under the backend of the configuration, or under the arguments."""
    config = tree.get("config") or {}
    spec = config.get("spec") or config
    backend = spec.get("backend") or {}
    model = backend.get("model") if isinstance(backend, Mapping) else None
    given, own = tree.get("args") or {}, (tree["benchmarks"][0].get("config") or {}).get("backend") or {}
    model = model or spec.get("model") or given.get("model") or (given.get("backend_kwargs") or {}).get("model")
    return str(model or (own.get("model") if isinstance(own, Mapping) else "") or "")[:200]


def _strategy(one: Tree) -> tuple[str, Pace]:
    config = one.get("config") or {}
    found = config.get("strategy") or (one.get("args") or {}).get("strategy") or {}
    kind = str(found.get("type_") or found.get("type") or found.get("kind") or "?")
    rate, streams = number(found.get("rate")), number(found.get("streams")) or number(found.get("max_concurrency"))
    if kind == "synchronous":
        return "c1", Pace(concurrency=1)
    if kind == "concurrent" and streams:
        return f"c{int(streams)}", Pace(concurrency=int(streams))
    if rate and kind in ("constant", "poisson"):
        return f"{rate:g}/s {kind}", Pace(Arrival(kind), 0, rate)
    return kind, Pace(concurrency=0)


def _level(one: Tree, name: str, pace: Pace) -> Level:
    metrics = one["metrics"]
    counts = metrics.get("request_totals") or {}
    good, failed = int(counts.get("successful") or 0), int(counts.get("errored") or 0)
    cut = int(counts.get("incomplete") or 0)
    prompt, output = (_good(metrics.get(f"{side}_token_count")) for side in ("prompt", "output"))
    shape = Single(fixed_length(number(prompt.get("mean")) or 0.0), fixed_length(number(output.get("mean")) or 0.0))
    tokens = int(number(output.get("total_sum")) or 0)
    kinds = {kind: count for kind, count in (("error", failed), ("time-up", cut)) if count}
    plan = LevelPlan(name, shape, pace, max(good + failed + cut, 1), 0)
    seconds = number(one.get("duration")) or _measured(one.get("scheduler_metrics") or {})
    totals = Totals(good + failed + cut, good, tokens, kinds)
    return Level(plan, 0, 0.0, seconds, stated=known_figures(_stated(metrics, good)), totals=totals)


def _measured(times: Tree) -> float:
    """Seconds between the first and the last measured request, which some reports have instead of a duration."""
    ends = [number(times.get(f"measure_{word}_time")) for word in ("start", "end")]
    return max(ends[1] - ends[0], 0.0) if ends[0] and ends[1] else 0.0


def _good(metric: Any) -> Tree:
    found = (metric or {}).get("successful") or {}
    return found if isinstance(found, Mapping) else {}


def _stated(metrics: Tree, good: int) -> Iterator[StatedFigures | None]:
    for name, word, scale in _TIMES:
        yield statement(name, _statistics(_good(metrics.get(word))), scale, good)
    each = _good(metrics.get("inter_token_latency_ms"))
    if (middle := number(each.get("median"))) and middle > 0:
        yield StatedFigures("decode", median=MS / middle, count=good)
    for name, word in _RATES:
        yield single_figure(name, _good(metrics.get(word)).get("mean"))


def _statistics(found: Tree) -> Tree:
    percentiles = found.get("percentiles") or {}
    told = {"mean": found.get("mean"), "deviation": found.get("std_dev"), "median": found.get("median")}
    ends = {"least": found.get("min"), "most": found.get("max")}
    return {**told, **ends, "p90": percentiles.get("p90"), "p99": percentiles.get("p99")}
