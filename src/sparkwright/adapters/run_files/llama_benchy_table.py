"""The Markdown table of llama-benchy, as people post it: read, and written from a run.

A cell is `mean ± standard deviation`. Reading makes two requests of it, one deviation below and one above: their mean
and deviation are those of the cell, and no more can be known of what was measured.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from sparkwright.adapters.run_files.batches import Batch, batches_of
from sparkwright.adapters.run_files.llama_benchy import marked, plan_of, row_of, run_of
from sparkwright.domain.errors import UsageError
from sparkwright.domain.run import Level, Run
from sparkwright.domain.workload import LevelPlan
from sparkwright.loadgen.samples import TOTALS_ONLY, span

TOOL = TOTALS_ONLY[1]
NOTE = "from a table: two made-up requests for each `mean ± deviation`"
_MADE_UP = "simulated: these figures are made up"
_TEST = re.compile(r"(?P<ctx>ctx_)?(?P<what>pp|tg)(?P<size>\d+)?(?: @ d(?P<depth>\d+))?(?: \(c(?P<places>\d+)\))?")
_CELL = re.compile(r"(?P<mean>[0-9.]+)(?:\s*±\s*(?P<deviation>[0-9.]+))?")
Line = Mapping[str, str]
Place = tuple[bool, int, int]  # loading the context, depth, at once
Spread = tuple[float, float]


def is_it(text: str) -> bool:
    return any("test" in _cells(line) for line in text.splitlines() if line.lstrip().startswith("|"))


def read(text: str) -> Run:
    """Raises UsageError with what a table must have."""
    lines = list(_lines(text))
    levels = tuple(level for prompt, output in _couples(lines) for level in _levels(prompt, output, lines))
    if not levels:
        raise UsageError("the table has no line whose test is like pp2048 or tg32 @ d4096, with its e2e_ttft")
    return marked(run_of(levels, lines[0].get("model", ""), TOOL, NOTE), _MADE_UP in text)


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


def _levels(prompt: Line, output: Line | None, lines: Sequence[Line]) -> Iterator[Level]:
    # Of each request, where the table has that besides the whole.
    found = output and (_spread(output, "t/s (req)") or _spread(output, "t/s") or _spread(output, "t/s (total)"))
    first, speed = _spread(prompt, "e2e_ttft (ms)"), (found or (0.0, 0.0))
    if first is None:
        return
    plan = _plan(prompt, output, any(_place(line)[0] for line in lines))
    sides = (-1.0, 1.0) if first[1] or speed[1] else (0.0,)
    for repeat, side in enumerate(sides):
        told = (first[0] + side * first[1]) / 1000, max(speed[0] + side * speed[1], 0.0)
        rows = tuple(row_of(plan, place, *told) for place in range(_place(prompt)[2]))
        yield Level(plan, repeat, 0.0, span(rows), rows)


def _plan(prompt: Line, output: Line | None, caching: bool) -> LevelPlan:
    """A table that has lines of loading the context was measured with prefix caching."""
    context, depth, places = _place(prompt)
    sizes = {"prompt_size": _test(prompt)["size"] or depth, "response_size": (output and _test(output)["size"]) or 1}
    entry = {"concurrency": places, "context_size": depth, "is_context_prefill_phase": context, **sizes}
    return plan_of(entry, caching)


def _spread(line: Line, name: str) -> Spread | None:
    match = _CELL.fullmatch(line.get(name, ""))
    return (float(match["mean"]), float(match["deviation"] or 0.0)) if match else None


def write(run: Run) -> bytes:
    """Raises UsageError where no level is of its kind."""
    found = batches_of(run)
    several = any(batch.places > 1 for batch in found)
    heads = ["model", "test", "t/s (total)" if several else "t/s", *(["t/s (req)"] if several else []), "peak t/s"]
    heads += [*(["peak t/s (req)"] if several else []), "ttfr (ms)", "est_ppt (ms)", "e2e_ttft (ms)"]
    rows = [[run.conditions.model, *row] for batch in found for row in _rows(batch, several)]
    above = [f"{_MADE_UP}\n"] if run.conditions.simulated else []
    return "\n".join([*above, *_pipes(heads, rows), ""]).encode()


def _rows(batch: Batch, several: bool) -> Iterator[list[str]]:
    depth = f" @ d{batch.shape.depth}" if batch.shape.depth else ""
    end = f"{depth} (c{batch.places})" if several else depth
    told = {name: _said(values) for name, values in batch.values().items()}
    times = [told["ttfr"], told["est_ppt"], told["e2e_ttft"]]
    blank = ["", ""] if several else [""]
    rate = [told["pp_throughput"], told["pp_req_throughput"]] if several else [told["pp_throughput"]]
    yield [f"pp{batch.shape.prompt.high}{end}", *rate, *blank, *times]
    rate = [told["tg_throughput"], told["tg_req_throughput"]] if several else [told["tg_throughput"]]
    peak = [told["peak_throughput"], told["peak_req_throughput"]] if several else [told["peak_throughput"]]
    yield [f"tg{batch.shape.output.high}{end}", *rate, *peak, "", "", ""]


def _said(values: Sequence[float]) -> str:
    return f"{np.mean(values):.2f} ± {np.std(values):.2f}" if values else ""


def _pipes(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        left, *right = zip(cells, widths, strict=True)
        return f"| {' | '.join([left[0].ljust(left[1]), *(cell.rjust(width) for cell, width in right)])} |"

    rule = [f":{'-' * (widths[0] + 1)}", *(f"{'-' * (width + 1)}:" for width in widths[1:])]
    return [line(heads), f"|{'|'.join(rule)}|", *map(line, rows)]
