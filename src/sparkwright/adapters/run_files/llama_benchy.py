"""The JSON of llama-benchy, read and written.

Names and meanings as its version 0.4.0 writes them: ttfr, est_ppt and e2e_ttft in ms, `values` one for each request
(of `*_throughput` with several at once: one for each batch); est_ppt is ttfr less the measured network latency.
Each value becomes a request; the tool's own figures stay next to them, so that an export repeats them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import orjson

from sparkwright import __version__
from sparkwright.adapters.run_files.batches import CONTEXT, WORDS, Batch, batches_of
from sparkwright.domain.errors import UsageError
from sparkwright.domain.run import Level, Reads, Row, Run, RunConditions, StatedFigures
from sparkwright.domain.workload import Length, LevelPlan, Pace, Single, Workload
from sparkwright.loadgen.samples import TOTALS_ONLY, seconds_spanned

TOOL = TOTALS_ONLY[0]
_DATE = "%Y-%m-%d %H:%M:%SZ"


def is_llama_benchy(tree: Mapping[str, Any]) -> bool:
    found = tree.get("benchmarks")
    return isinstance(found, list) and all(isinstance(one, dict) and "context_size" in one for one in found)


def read(tree: Mapping[str, Any]) -> Run:
    """Each value becomes the request that it was measured of. Raises UsageError."""
    caching = bool(tree.get("prefix_caching_enabled"))
    levels = tuple(level for entry in tree["benchmarks"] for level in _levels(entry, caching))
    if not levels:
        raise UsageError("the file has no measured value")
    note = f"version {tree.get('version', '?')}, latency {tree.get('latency_ms', 0.0):.1f} ms left out of est_ppt"
    found = imported_run(levels, str(tree.get("model") or ""), TOOL, note, _at(tree.get("timestamp")))
    return marked(found, bool(tree.get("simulated")))


def imported_run(levels: Sequence[Level], model: str, tool: str, note: str, began: float = 0.0) -> Run:
    plans = {level.plan.name: level.plan for level in levels}
    workload = Workload(tool, tool, tuple(plans.values()), repeats=max(level.repeat for level in levels) + 1)
    terms = RunConditions("", model, client=tool)
    return Run("", began, workload, terms, "done", began, tuple(levels), note=note, imported=tool)


def marked(run: Run, simulated: bool) -> Run:
    """The run with its simulated mark kept."""
    return replace(run, conditions=replace(run.conditions, simulated=simulated))


def _at(text: Any) -> float:
    try:
        return datetime.strptime(str(text), _DATE).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return 0.0


def _levels(entry: Mapping[str, Any], caching: bool) -> Iterator[Level]:
    """A batch is a repeat; the tool's own figures stand with the first one."""
    places, rows = int(entry["concurrency"]), list(_rows(entry, caching))
    if not 0 < places < 100_000:
        raise ValueError(f"concurrency {places}")
    for repeat, start in enumerate(range(0, len(rows), places)):
        batch = tuple(rows[start : start + places])
        own = () if repeat else tuple(_stated(entry))
        yield Level(plan_of(entry, caching), repeat, 0.0, seconds_spanned(batch), batch, stated=own)


def _stated(entry: Mapping[str, Any]) -> Iterator[StatedFigures]:
    for name in WORDS:
        metric = entry.get(name)
        if metric:
            values = tuple(map(float, metric.get("values", ())))
            yield StatedFigures(name, float(metric["mean"]), float(metric["std"]), count=len(values), values=values)


def plan_of(entry: Mapping[str, Any], caching: bool) -> LevelPlan:
    """The plan in the words of its tables: `pp2048 tg32 @ d4096 (c2)`; loading the context is a level of its own."""
    depth, places = int(entry["context_size"]), int(entry["concurrency"])
    prompt, output = int(entry["prompt_size"]), int(entry["response_size"])
    end = f" (c{places})" if places > 1 else ""
    if entry.get("is_context_prefill_phase"):
        shape = Single(Length(depth, depth), Length(output, output))
        return LevelPlan(f"{CONTEXT}d{depth}{end}", shape, Pace(concurrency=places), places, 0)
    shape = Single(Length(prompt, prompt), Length(output, output), depth, warm=caching and depth > 0)
    at = f" @ d{depth}" if depth else ""
    return LevelPlan(f"pp{prompt} tg{output}{at}{end}", shape, Pace(concurrency=places), places, 0)


def _rows(entry: Mapping[str, Any], caching: bool) -> Iterator[Row]:
    first = _values(entry, "e2e_ttft")
    speeds = _values(entry, "tg_req_throughput") or _values(entry, "tg_throughput")
    plan = plan_of(entry, caching)
    for place, ttft in enumerate(first):
        yield made_up_row(plan, place, ttft / 1000, speeds[place] if place < len(speeds) else 0.0)


def made_up_row(plan: LevelPlan, place: int, first: float, speed: float) -> Row:
    """first: seconds until the first token; speed: tokens per second after it, 0 where it is not known."""
    shape = plan.shape
    assert isinstance(shape, Single)
    output = shape.output.high
    prompt = shape.prompt.high + shape.depth
    end = first + (output - 1) / speed if speed > 0 else first
    whole = speed > 0 and output > 1
    reads = Reads((first, end), (1, output - 1), exact=False) if whole else Reads((first,), (output,))
    cached = shape.depth if shape.warm else 0
    return Row(
        session=place,
        turn=0,
        intended=0.0,
        sent=0.0,
        first=first,
        end=end,
        reads=reads,
        prompt_tokens=prompt,
        output_tokens=output,
        planned_prompt=prompt,
        planned_output=output,
        planned_cached=cached,
    )


def _values(entry: Mapping[str, Any], name: str) -> list[float]:
    metric = entry.get(name) or {}
    return [float(value) for value in metric.get("values", ())]


def write(run: Run) -> bytes:
    """Raises UsageError where no level is of its kind."""
    found = batches_of(run)
    when = datetime.fromtimestamp(run.began, UTC).strftime(_DATE)
    head = {"version": f"sparkwright {__version__}", "timestamp": when, "latency_mode": "none", "latency_ms": 0.0}
    caching = any(batch.shape.warm for batch in found)
    more = {"model": run.conditions.model, "prefix_caching_enabled": caching}
    most = max(batch.places for batch in found)
    tree = {**head, **more, "max_concurrency": most, "benchmarks": [_entry(batch) for batch in found]}
    told = {**tree, "simulated": True} if run.conditions.simulated else tree
    return orjson.dumps(told, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _entry(batch: Batch) -> dict[str, Any]:
    depth, prompt = batch.shape.depth, batch.shape.prompt.high
    sizes = {
        "concurrency": batch.places,
        "context_size": prompt if batch.context else depth,
        "prompt_size": prompt,
        "response_size": batch.shape.output.high,
        "is_context_prefill_phase": batch.context,
    }
    found = batch.figures()
    series = {"throughput_over_time": None, "requests_throughput_over_time": None}
    return {**sizes, **{name: _metric(found.get(name)) for name in WORDS}, **series}


def _metric(one: StatedFigures | None) -> dict[str, Any] | None:
    return {"mean": one.mean, "std": one.deviation or 0.0, "values": list(one.values)} if one else None
