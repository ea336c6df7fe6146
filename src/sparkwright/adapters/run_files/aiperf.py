"""Results of NVIDIA's aiperf: `profile_export_aiperf.json`, and its predecessor genai-perf's, which has the same form.

Each metric is a mapping of unit, avg, min, max, std and p1 to p99; the metrics stand at the top, or under `records`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from sparkwright.adapters.run_files.totals import (
    decode_of,
    fixed_length,
    known_figures,
    moment,
    number,
    run_of_totals,
    single_figure,
    statement,
)
from sparkwright.domain.run import Level, Run, RunConditions, StatedFigures, Totals
from sparkwright.domain.workload import Arrival, LevelPlan, Pace, Single

TOOL = "aiperf"
_TIMES = {
    "ttft": ("time_to_first_token", "ttft"),
    "ttft_content": ("time_to_first_output_token",),
    "tpot": ("inter_token_latency",),
    "end_to_end": ("request_latency",),
}
_RATES = {
    "output_rate": "output_token_throughput",
    "total_rate": "total_token_throughput",
    "request_rate": "request_throughput",
    "goodput": "goodput",
}
# Unit -> how many of it are one second.
_UNITS = {"ms": 1e3, "s": 1.0, "sec": 1.0, "us": 1e6, "ns": 1e9}
Tree = Mapping[str, Any]


def is_aiperf(tree: Tree) -> bool:
    metrics = _metrics(tree)
    return isinstance(metrics.get("request_throughput"), Mapping) and "request_latency" in metrics


def read(tree: Tree) -> Run:
    """Raises UsageError, KeyError, TypeError, ValueError, AttributeError."""
    metrics, config = _metrics(tree), tree.get("input_config") or {}
    endpoint, load = config.get("endpoint") or {}, config.get("loadgen") or {}
    names = endpoint.get("model_names") or config.get("model_names") or [config.get("model") or ""]
    model = str(names[0] if isinstance(names, list) and names else names)[:200]
    level = _level(metrics, load or config)
    began = moment(tree.get("start_time"))
    note = f"version {tree.get('aiperf_version', '?')}; lengths are means"
    note += "; the benchmark was cancelled" if tree.get("was_cancelled") else ""
    return run_of_totals([level], TOOL, RunConditions("", model, client=TOOL), note, began)


def _metrics(tree: Tree) -> Tree:
    found = tree.get("records")
    return found if isinstance(found, Mapping) else tree


def _level(metrics: Tree, load: Tree) -> Level:
    places, rate = int(number(load.get("concurrency")) or 0), number(load.get("request_rate"))
    good, failed = _count(metrics, "request_count"), _count(metrics, "error_request_count")
    prompt, output = (_mean(metrics, f"{side}_sequence_length") for side in ("input", "output"))
    name = f"c{places}" if places else f"{rate:g}/s" if rate else "all at once"
    arrival = Arrival.CONSTANT if str(load.get("request_rate_mode")) == "constant" else Arrival.POISSON
    pace = Pace(arrival, places, rate) if rate else Pace(concurrency=places)
    plan = LevelPlan(name, Single(fixed_length(prompt), fixed_length(output)), pace, max(good + failed, 1), 0)
    totals = Totals(good + failed, good, round(output * good), {"error": failed} if failed else {})
    seconds = _mean(metrics, "benchmark_duration")
    return Level(plan, 0, 0.0, seconds, stated=known_figures(_stated(metrics, good)), totals=totals)


def _stated(metrics: Tree, good: int) -> Iterator[StatedFigures | None]:
    for name, words in _TIMES.items():
        one: Tree = next((metrics[word] for word in words if isinstance(metrics.get(word), Mapping)), {})
        scale = _UNITS.get(str(one.get("unit", "ms")), 0.0)
        made = statement(name, _statistics(one), scale, good) if scale else None
        yield made
        if name == "tpot":
            yield decode_of(made)
    for name, word in _RATES.items():
        yield single_figure(name, _mean(metrics, word) or None)


def _statistics(one: Tree) -> Tree:
    words = {"mean": "avg", "deviation": "std", "median": "p50", "p90": "p90", "p99": "p99"}
    return {name: one.get(word) for name, word in {**words, "least": "min", "most": "max"}.items()}


def _mean(metrics: Tree, name: str) -> float:
    one = metrics.get(name)
    return (number(one.get("avg")) or 0.0) if isinstance(one, Mapping) else 0.0


def _count(metrics: Tree, name: str) -> int:
    return int(_mean(metrics, name))
