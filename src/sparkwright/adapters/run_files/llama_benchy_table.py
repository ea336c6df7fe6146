"""The Markdown table and the CSV of llama-benchy, read and written.

A cell of the table is `mean ± standard deviation` over requests or batches that it does not show. It is stored as that
statement, so an export prints the same cells again and no request is made up.
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence

from sparkwright.adapters.run_files.batches import PEAKS, RATES, TIMES, Batch, batches_of
from sparkwright.adapters.run_files.llama_benchy import imported_run, marked, plan_of
from sparkwright.domain.errors import UsageError
from sparkwright.domain.run import Level, Run, StatedFigures
from sparkwright.loadgen.samples import TOTALS_ONLY

TOOL = TOTALS_ONLY[1]
_NOTE = "from a table of means and deviations; prefill leaves the latency out that the tool measured"
_MADE_UP = "simulated: these figures are made up"
_TEST = re.compile(
    r"(?P<ctx>ctx_)?(?P<what>pp|tg)(?P<size>[0-9]{1,9})?(?: @ d(?P<depth>[0-9]{1,9}))?(?: \(c(?P<places>[0-9]{1,5})\))?"
)
_NUMBER = r"[0-9]{1,12}(?:\.[0-9]{0,12})?"
_CELL = re.compile(rf"(?P<mean>{_NUMBER})(?:\s*±\s*(?P<deviation>{_NUMBER}))?")
# Heading of a column -> the word for it in a line of pp and in a line of tg.
_COLUMNS: Mapping[str, tuple[str, str]] = {
    "t/s": ("pp_throughput", "tg_throughput"),
    "t/s (total)": ("pp_throughput", "tg_throughput"),
    "t/s (req)": ("pp_req_throughput", "tg_req_throughput"),
    "peak t/s": ("", "peak_throughput"),
    "peak t/s (req)": ("", "peak_req_throughput"),
    "ttfr (ms)": ("ttfr", ""),
    "est_ppt (ms)": ("est_ppt", ""),
    "e2e_ttft (ms)": ("e2e_ttft", ""),
}
# Column of its CSV, without `_mean` and `_std` -> heading of the table.
_CSV = {
    "t_s": "t/s (total)",
    "t_s_req": "t/s (req)",
    "peak_ts": "peak t/s",
    "peak_ts_req": "peak t/s (req)",
    "ttfr": "ttfr (ms)",
    "est_ppt": "est_ppt (ms)",
    "e2e_ttft": "e2e_ttft (ms)",
}
Line = Mapping[str, str]
Place = tuple[bool, int, int]  # loading the context, depth, at once


def is_table(text: str) -> bool:
    return any("test" in _cells(line) for line in text.splitlines() if line.lstrip().startswith("|"))


def read_table(text: str) -> Run:
    """Raises UsageError with what a table must have."""
    return _run(list(_lines(text)), text)


def _run(lines: Sequence[Line], text: str) -> Run:
    levels = tuple(level for prompt, output in _couples(lines) if (level := _level(prompt, output, lines)))
    if not levels:
        raise UsageError("the table has no line whose test is like pp2048 or tg32 @ d4096, with figures")
    unique = tuple({level.plan.name: level for level in levels}.values())
    again = len(levels) - len(unique)
    note = f"{_NOTE}; {again} of its tests are there again, and the last figures of each are kept" if again else _NOTE
    return marked(imported_run(unique, lines[0].get("model", ""), TOOL, note), _MADE_UP in text)


def is_csv_text(text: str) -> bool:
    return {"test_name", "t_s_mean"} <= set(text.partition("\n")[0].strip().split(","))


def read_csv(text: str) -> Run:
    """Raises UsageError as `read_table`, ValueError for a figure that is none."""
    lines = []
    for row in csv.DictReader(io.StringIO(text, newline="")):
        cells = {heading: _cell(row, name) for name, heading in _CSV.items()}
        test = str(row.get("test_name") or "")
        if _TEST.fullmatch(test):
            lines.append({"model": str(row.get("model") or ""), "test": test, **cells})
    return _run(lines, "")


def _cell(row: Mapping[str, str | None], name: str) -> str:
    mean, deviation = row.get(f"{name}_mean"), row.get(f"{name}_std")
    return f"{float(mean):.6f} ± {float(deviation or 0.0):.6f}" if mean else ""


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


def _level(prompt: Line, output: Line | None, lines: Sequence[Line]) -> Level | None:
    """None of lines without a figure."""
    own = {one.name: one for one in (*_stated(prompt, 0), *(_stated(output, 1) if output else ()))}
    if not own:
        return None
    # A table that has lines of loading the context was measured with prefix caching
    caching = any(_place(line)[0] for line in lines)
    context, depth, places = _place(prompt)
    sizes = {"prompt_size": _test(prompt)["size"] or depth, "response_size": (output and _test(output)["size"]) or 1}
    entry = {"concurrency": places, "context_size": depth, "is_context_prefill_phase": context, **sizes}
    return Level(plan_of(entry, caching), 0, 0.0, stated=(*own.values(), *_ours(own)))


def _stated(line: Line, side: int) -> Iterator[StatedFigures]:
    for heading, words in _COLUMNS.items():
        match = _CELL.fullmatch(line.get(heading, ""))
        if match and words[side]:
            yield StatedFigures(words[side], float(match["mean"]), float(match["deviation"] or 0.0))


def _ours(own: Mapping[str, StatedFigures]) -> Iterator[StatedFigures]:
    """The same by our names: of each request, where the table has that besides the whole."""
    found = {
        "ttft": (own.get("e2e_ttft") or own.get("ttfr"), 1000.0),
        "decode": (own.get("tg_req_throughput") or own.get("tg_throughput"), 1.0),
        "prefill": (own.get("pp_req_throughput") or own.get("pp_throughput"), 1.0),
    }
    for name, (one, scale) in found.items():
        if one and one.mean is not None:
            yield StatedFigures(name, one.mean / scale, (one.deviation or 0.0) / scale)


def write_table(run: Run) -> bytes:
    """Raises UsageError where no level is of its kind."""
    found = batches_of(run)
    several = any(batch.places > 1 for batch in found)
    heads = ["model", "test", "t/s (total)" if several else "t/s", *(["t/s (req)"] if several else []), "peak t/s"]
    heads += [*(["peak t/s (req)"] if several else []), "ttfr (ms)", "est_ppt (ms)", "e2e_ttft (ms)"]
    rows = [[run.conditions.model, *_table_row(row, several)] for batch in found for row in _rows(batch, several)]
    above = [f"{_MADE_UP}\n"] if run.conditions.simulated else []
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        left, *right = zip(cells, widths, strict=True)
        return f"| {' | '.join([left[0].ljust(left[1]), *(cell.rjust(width) for cell, width in right)])} |"

    rule = [f":{'-' * (widths[0] + 1)}", *(f"{'-' * (width + 1)}:" for width in widths[1:])]
    return "\n".join([*above, *[line(heads), f"|{'|'.join(rule)}|", *map(line, rows)], ""]).encode()


Row = tuple[str, tuple[StatedFigures | None, ...]]  # test; of all, of each, their peaks, three times


def _rows(batch: Batch, several: bool) -> Iterator[Row]:
    """A line of pp, and one of tg where tokens were generated."""
    prompt, loads = batch.shape.prompt.high, batch.context
    depth = prompt if loads else batch.shape.depth
    end = f"{f' @ d{depth}' if depth else ''}{f' (c{batch.places})' if several else ''}"
    found = batch.figures()
    prefill, prefill_each, decode, decode_each = (found.get(word) for word in RATES)
    if batch.places == 1:
        prefill_each, decode_each = prefill_each or prefill, decode_each or decode
    times, peaks = (found.get(word) for word in TIMES), (found.get(word) for word in PEAKS)
    yield f"{'ctx_pp' if loads else f'pp{prompt}'}{end}", (prefill, prefill_each, None, None, *times)
    if decode or decode_each:
        output = "ctx_tg" if loads else f"tg{batch.shape.output.high}"
        yield f"{output}{end}", (decode, decode_each, *peaks, None, None, None)


def _table_row(row: Row, several: bool) -> list[str]:
    test, figures = row
    shown = figures if several else (figures[0], figures[2], *figures[4:])
    return [test, *(f"{one.mean:.2f} ± {one.deviation or 0.0:.2f}" if one else "" for one in shown)]


def write_csv(run: Run) -> bytes:
    """The tool's own CSV. Raises UsageError where no level is of its kind."""
    found = batches_of(run)
    several = any(batch.places > 1 for batch in found)
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["model", "test_name", *(f"{name}_{part}" for name in _CSV for part in ("mean", "std"))])
    for batch in found:
        for test, figures in _rows(batch, several):
            cells = (value for one in figures for value in ((one.mean, one.deviation) if one else ("", "")))
            writer.writerow([run.conditions.model, test, *cells])
    return text.getvalue().encode()
