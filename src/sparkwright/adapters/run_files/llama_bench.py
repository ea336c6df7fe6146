"""Results of llama.cpp's `llama-bench`: JSON, JSON lines and the Markdown table.

Fields as its builds of 2024 to 2026 write them: n_prompt, n_gen, n_depth, avg_ts and stddev_ts in tokens per second,
samples_ts. A test of n_prompt alone is prefill, one of n_gen alone is decode; both (`pp512+tg128`) is their sum in one
time, which is neither. It measures the library, without a server: there is no time to the first token.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sparkwright.adapters.run_files.totals import moment, number, run_of_totals
from sparkwright.domain.errors import UsageError
from sparkwright.domain.run import Level, Run, RunConditions, StatedFigures
from sparkwright.domain.workload import Length, LevelPlan, Pace, Single

TOOL = "llama-bench"
_TEST = re.compile(r"(?:pp(?P<pp>[0-9]{1,9}))?\+?(?:tg(?P<tg>[0-9]{1,9}))?(?: ?@ ?d(?P<depth>[0-9]{1,9}))?")
_NUMBER = r"[0-9]{1,12}(?:\.[0-9]{0,12})?"
_CELL = re.compile(rf"(?P<mean>{_NUMBER})(?:\s*±\s*(?P<deviation>{_NUMBER}))?")
_COLUMNS = {"model", "size", "params", "backend", "test", "t/s"}
Tree = Mapping[str, Any]


def is_llama_bench(rows: Sequence[Any]) -> bool:
    return bool(rows) and all(isinstance(one, dict) and {"n_prompt", "n_gen", "avg_ts"} <= set(one) for one in rows)


def read(rows: Sequence[Tree]) -> Run:
    """Raises UsageError, KeyError, TypeError, ValueError."""
    first = rows[0]
    levels = [_json_level(one) for one in rows]
    build = f"build {first.get('build_number', '?')} ({first.get('build_commit', '?')})"
    model = str(first.get("model_type") or first.get("model_filename") or "")[:200]
    return _run(levels, model, f"{build} on {first.get('gpu_info') or first.get('cpu_info') or '?'}"[:200], first)


def _run(levels: Sequence[Level], model: str, note: str, first: Tree) -> Run:
    """Settings that differ from test to test make levels of their own; equal ones are repeats."""
    seen: dict[str, int] = {}
    counted = []
    for level in levels:
        repeat = seen.get(level.plan.name, 0)
        seen[level.plan.name] = repeat + 1
        if repeat:
            name = f"{level.plan.name} ({repeat + 1})"
            plan = LevelPlan(name, level.plan.shape, level.plan.pace, requests=1, warmup=0)
            level = Level(plan, repeat=0, began=0.0, stated=level.stated)
        counted.append(level)
    note = f"{note}; without a server, so without a time to the first token"
    conditions = RunConditions("", model, client=TOOL)
    return run_of_totals(counted, TOOL, conditions, note, moment(first.get("test_time")))


def _json_level(one: Tree) -> Level:
    values = tuple(map(float, one.get("samples_ts") or ()))
    mean, deviation = number(one["avg_ts"]), number(one.get("stddev_ts"))
    sizes = (int(one["n_prompt"]), int(one["n_gen"]), int(one.get("n_depth") or 0))
    return _level(sizes, mean, deviation, len(values))


def _level(sizes: tuple[int, int, int], mean: float | None, deviation: float | None, count: int) -> Level:
    """sizes: tokens of prompt, output and context before them."""
    prompt, output, depth = sizes
    name = "+".join(filter(None, (f"pp{prompt}" if prompt else "", f"tg{output}" if output else "")))
    if not name or mean is None:
        raise ValueError(f"a test of {prompt} and {output} tokens at {mean}")
    # The sum of both has no name of ours: it is stored under the tool's word.
    metric = "both" if prompt and output else "prefill" if prompt else "decode"
    shape = Single(Length(prompt, prompt), Length(max(output, 1), max(output, 1)), depth, warm=depth > 0)
    plan = LevelPlan(f"{name} @ d{depth}" if depth else name, shape, Pace(concurrency=1), 1, 0)
    return Level(plan, 0, 0.0, stated=(StatedFigures(metric, mean, deviation, count=count),))


def is_table(text: str) -> bool:
    return any(set(_cells(line)) >= _COLUMNS for line in text.splitlines() if line.lstrip().startswith("|"))


def read_table(text: str) -> Run:
    """Raises UsageError for a table of several models, and one without tests."""
    lines = list(_lines(text))
    models = list(dict.fromkeys(line["model"] for line in lines))
    if len(models) > 1:
        names = ", ".join(models[:3])
        raise UsageError(f"the tables are about {len(models)} models ({names}): a run is of one", "one file a model")
    levels = []
    for line in lines:
        test, cell = _TEST.fullmatch(line["test"]), _CELL.fullmatch(line["t/s"])
        if test and cell and (test["pp"] or test["tg"]):
            sizes = (int(test["pp"] or 0), int(test["tg"] or 0), int(test["depth"] or 0))
            levels.append(_level(sizes, float(cell["mean"]), float(cell["deviation"] or 0.0), 0))
    if not levels:
        raise UsageError("the table has no line whose test is like pp512 or tg128 @ d4096, with its t/s")
    build = re.search(r"^build: ([^\n]{1,60})", text, re.MULTILINE)
    return _run(levels, models[0], f"from a table, build {build[1] if build else '?'}", {})


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _lines(text: str) -> Iterator[Mapping[str, str]]:
    names: list[str] = []
    for line in text.splitlines():
        cells = _cells(line) if line.lstrip().startswith("|") else []
        if "test" in cells and "t/s" in cells and "model" in cells:
            names = cells
        elif names and len(cells) == len(names) and not set(cells[0]) <= set(":-"):
            yield dict(zip(names, cells, strict=True))
        elif not cells:
            names = []
