"""The JSON and the Markdown table of llama-benchy, read and written.

Names and meanings as its version 0.4.0 writes them: ttfr, est_ppt and e2e_ttft in ms, `values` one for each request
(of `*_throughput` with several at once: one for each batch); est_ppt is ttfr less the measured network latency.

A cell of the table is `mean ± standard deviation`. Reading makes two requests of it, one deviation below and one above:
their mean and deviation are those of the cell, and no more can be known of what was measured.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import orjson

from sparkwright import __version__
from sparkwright.adapters.run_files.batches import Batch, batches_of
from sparkwright.domain.errors import UsageError
from sparkwright.domain.run import Conditions, Level, Reads, Row, Run
from sparkwright.domain.workload import Length, LevelPlan, Pace, Single, Workload
from sparkwright.loadgen.samples import TOTALS_ONLY, span

TOOL = TOTALS_ONLY[0]
_DATE = "%Y-%m-%d %H:%M:%SZ"


def is_it(tree: Mapping[str, Any]) -> bool:
    return isinstance(tree.get("benchmarks"), list)


def read(tree: Mapping[str, Any]) -> Run:
    """Each value becomes the request that it was measured of. Raises UsageError."""
    caching = bool(tree.get("prefix_caching_enabled"))
    levels = tuple(level for entry in tree["benchmarks"] for level in _levels(entry, caching))
    if not levels:
        raise UsageError("the file has no measured value")
    note = f"version {tree.get('version', '?')}, latency {tree.get('latency_ms', 0.0):.1f} ms left out of est_ppt"
    found = run_of(levels, str(tree.get("model") or ""), TOOL, note, _at(tree.get("timestamp")))
    return marked(found, bool(tree.get("simulated")))


def run_of(levels: Sequence[Level], model: str, tool: str, note: str, began: float = 0.0) -> Run:
    plans = {level.plan.name: level.plan for level in levels}
    workload = Workload(tool, tool, tuple(plans.values()), repeats=max(level.repeat for level in levels) + 1)
    terms = Conditions("", model, client=tool)
    return Run("", began, workload, terms, "done", began, tuple(levels), note=note, imported=tool)


def marked(run: Run, simulated: bool) -> Run:
    """What was written of a simulated run stays one."""
    return replace(run, conditions=replace(run.conditions, simulated=simulated))


def _at(text: Any) -> float:
    try:
        return datetime.strptime(str(text), _DATE).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return 0.0


def _levels(entry: Mapping[str, Any], caching: bool) -> Iterator[Level]:
    """A batch is a repeat."""
    places, rows = int(entry["concurrency"]), list(_rows(entry, caching))
    for repeat, start in enumerate(range(0, len(rows), places)):
        batch = tuple(rows[start : start + places])
        yield Level(plan_of(entry, caching), repeat, 0.0, span(batch), batch)


def plan_of(entry: Mapping[str, Any], caching: bool) -> LevelPlan:
    """In the words of its tables: `pp2048 tg32 @ d4096 (c2)`; loading the context is a level of its own."""
    depth, places = int(entry["context_size"]), int(entry["concurrency"])
    prompt, output = int(entry["prompt_size"]), int(entry["response_size"])
    end = f" (c{places})" if places > 1 else ""
    if entry.get("is_context_prefill_phase"):
        shape = Single(Length(depth, depth), Length(output, output))
        return LevelPlan(f"ctx @ d{depth}{end}", shape, Pace(concurrency=places), places, 0)
    shape = Single(Length(prompt, prompt), Length(output, output), depth, warm=caching and depth > 0)
    at = f" @ d{depth}" if depth else ""
    return LevelPlan(f"pp{prompt} tg{output}{at}{end}", shape, Pace(concurrency=places), places, 0)


def _rows(entry: Mapping[str, Any], caching: bool) -> Iterator[Row]:
    first = _values(entry, "e2e_ttft")
    speeds = _values(entry, "tg_req_throughput") or _values(entry, "tg_throughput")
    plan = plan_of(entry, caching)
    for place, ttft in enumerate(first):
        yield row_of(plan, place, ttft / 1000, speeds[place] if place < len(speeds) else 0.0)


def row_of(plan: LevelPlan, place: int, first: float, speed: float) -> Row:
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
    sizes = {"concurrency": batch.places, "context_size": batch.shape.depth, "prompt_size": batch.shape.prompt.high}
    metrics = {name: _metric(values) for name, values in batch.values().items()}
    series = {"throughput_over_time": None, "requests_throughput_over_time": None}
    return {**sizes, "response_size": batch.shape.output.high, "is_context_prefill_phase": False, **metrics, **series}


def _metric(values: Sequence[float]) -> dict[str, Any] | None:
    if not values:
        return None
    return {"mean": float(np.mean(values)), "std": float(np.std(values)), "values": list(values)}


TABLE_TOOL = TOTALS_ONLY[1]
TABLE_NOTE = "from a table: two made-up requests for each `mean ± deviation`"
_MADE_UP = "simulated: these figures are made up"
_TEST = re.compile(r"(?P<ctx>ctx_)?(?P<what>pp|tg)(?P<size>\d+)?(?: @ d(?P<depth>\d+))?(?: \(c(?P<places>\d+)\))?")
_CELL = re.compile(r"(?P<mean>[0-9.]+)(?:\s*±\s*(?P<deviation>[0-9.]+))?")
Line = Mapping[str, str]
Place = tuple[bool, int, int]  # loading the context, depth, at once
Spread = tuple[float, float]


def is_table(text: str) -> bool:
    return any("test" in _cells(line) for line in text.splitlines() if line.lstrip().startswith("|"))


def read_table(text: str) -> Run:
    """Raises UsageError with what a table must have."""
    lines = list(_lines(text))
    levels = tuple(level for prompt, output in _couples(lines) for level in _table_levels(prompt, output, lines))
    if not levels:
        raise UsageError("the table has no line whose test is like pp2048 or tg32 @ d4096, with its e2e_ttft")
    return marked(run_of(levels, lines[0].get("model", ""), TABLE_TOOL, TABLE_NOTE), _MADE_UP in text)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _lines(text: str) -> Iterator[Line]:
    """Lines below a heading with the columns' names; text around tables is passed over."""
    names: list[str] = []
    for line in text.splitlines():
        cells = _cells(line) if line.lstrip().startswith("|") else []
        if "test" in cells:
            names = cells
        elif names and len(cells) == len(names) and _TEST.fullmatch(cells[names.index("test")]):
            yield dict(zip(names, cells, strict=True))


def _test(line: Line) -> re.Match[str]:
    match = _TEST.fullmatch(line["test"])
    assert match
    return match


def _place(line: Line) -> Place:
    match = _test(line)
    return bool(match["ctx"]), int(match["depth"] or 0), int(match["places"] or 1)


def _couples(lines: Sequence[Line]) -> Iterator[tuple[Line, Line | None]]:
    """A line of pp with the line of tg behind it, where they are of the same place."""
    for number, line in enumerate(lines):
        if _test(line)["what"] == "pp":
            after = lines[number + 1] if number + 1 < len(lines) else None
            fits = after is not None and _test(after)["what"] == "tg" and _place(after) == _place(line)
            yield line, after if fits else None


def _table_levels(prompt: Line, output: Line | None, lines: Sequence[Line]) -> Iterator[Level]:
    # Of each request, where the table has that besides the whole.
    found = output and (_spread(output, "t/s (req)") or _spread(output, "t/s") or _spread(output, "t/s (total)"))
    first, speed = _spread(prompt, "e2e_ttft (ms)"), (found or (0.0, 0.0))
    if first is None:
        return
    # A table that has lines of loading the context was measured with prefix caching
    caching = any(_place(line)[0] for line in lines)
    context, depth, places = _place(prompt)
    sizes = {"prompt_size": _test(prompt)["size"] or depth, "response_size": (output and _test(output)["size"]) or 1}
    entry = {"concurrency": places, "context_size": depth, "is_context_prefill_phase": context, **sizes}
    plan = plan_of(entry, caching)
    sides = (-1.0, 1.0) if first[1] or speed[1] else (0.0,)
    for repeat, side in enumerate(sides):
        told = (first[0] + side * first[1]) / 1000, max(speed[0] + side * speed[1], 0.0)
        rows = tuple(row_of(plan, place, *told) for place in range(_place(prompt)[2]))
        yield Level(plan, repeat, 0.0, span(rows), rows)


def _spread(line: Line, name: str) -> Spread | None:
    match = _CELL.fullmatch(line.get(name, ""))
    return (float(match["mean"]), float(match["deviation"] or 0.0)) if match else None


def write_table(run: Run) -> bytes:
    """Raises UsageError where no level is of its kind."""
    found = batches_of(run)
    several = any(batch.places > 1 for batch in found)
    heads = ["model", "test", "t/s (total)" if several else "t/s", *(["t/s (req)"] if several else []), "peak t/s"]
    heads += [*(["peak t/s (req)"] if several else []), "ttfr (ms)", "est_ppt (ms)", "e2e_ttft (ms)"]
    rows = [[run.conditions.model, *row] for batch in found for row in _table_rows(batch, several)]
    above = [f"{_MADE_UP}\n"] if run.conditions.simulated else []
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        left, *right = zip(cells, widths, strict=True)
        return f"| {' | '.join([left[0].ljust(left[1]), *(cell.rjust(width) for cell, width in right)])} |"

    rule = [f":{'-' * (widths[0] + 1)}", *(f"{'-' * (width + 1)}:" for width in widths[1:])]
    return "\n".join([*above, *[line(heads), f"|{'|'.join(rule)}|", *map(line, rows)], ""]).encode()


def _table_rows(batch: Batch, several: bool) -> Iterator[list[str]]:
    depth = f" @ d{batch.shape.depth}" if batch.shape.depth else ""
    end = f"{depth} (c{batch.places})" if several else depth
    found = batch.values().items()
    told = {name: f"{np.mean(values):.2f} ± {np.std(values):.2f}" if values else "" for name, values in found}

    def rate(of: str) -> list[str]:
        """Of all, and of each request where several run at once."""
        return [told[f"{of}_throughput"], told[f"{of}_req_throughput"]][: 2 if several else 1]

    times = [told["ttfr"], told["est_ppt"], told["e2e_ttft"]]
    yield [f"pp{batch.shape.prompt.high}{end}", *rate("pp"), *([""] * len(rate("peak"))), *times]
    yield [f"tg{batch.shape.output.high}{end}", *rate("tg"), *rate("peak"), "", "", ""]
