"""A run as a table with a row for each request, and a run from such a table."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from types import NoneType
from typing import Any, get_args, get_type_hints

import orjson

from sparkwright.domain.codec import Unreadable, from_tree
from sparkwright.domain.errors import UsageError
from sparkwright.domain.run import Conditions, Level, Reads, Row, Run
from sparkwright.domain.workload import Arrival, Length, LevelPlan, Pace, Single, Workload
from sparkwright.loadgen.samples import span

KIND = "sparkwright-run"
VERSION = 1


def write(run: Run) -> bytes:
    return orjson.dumps({"kind": KIND, "version": VERSION, "run": run}, default=list, option=orjson.OPT_APPEND_NEWLINE)


def read(tree: Any) -> Run:
    """Raises UsageError, Unreadable."""
    if tree.get("version") != VERSION:
        raise UsageError(f"the file has version {tree.get('version')!r}; this sparkwright reads version {VERSION}")
    return of_tree(tree.get("run"))


def of_tree(tree: Any) -> Run:
    """Rows apart from the rest: there are a million times of tokens in a long run. Raises Unreadable."""
    levels = tree.get("levels", []) if isinstance(tree, dict) else []
    rows = [level.pop("rows", []) if isinstance(level, dict) else [] for level in levels]
    run = from_tree(Run, tree)
    made = [replace(level, rows=tuple(map(_row, each))) for level, each in zip(run.levels, rows, strict=True)]
    return replace(run, levels=tuple(made))


def _row(tree: Any) -> Row:
    told = tree.pop("reads", {}) if isinstance(tree, dict) else {}
    at, tokens = told.get("at", []), told.get("tokens", [])
    if len(at) != len(tokens) or {*map(type, at)} - {int, float} or {*map(type, tokens)} - {int}:
        raise Unreadable("Row.reads: `at` and `tokens` are not as many numbers each")
    return replace(
        from_tree(Row, tree), reads=Reads(tuple(map(float, at)), tuple(tokens), bool(told.get("exact", True)))
    )


# Column -> type, first of what a request belongs to, then of the request itself.
HEAD: Mapping[str, type] = {
    "run": str,
    "workload": str,
    "workload_version": int,
    "endpoint": str,
    "model": str,
    "engine": str,
    "engine_version": str,
    "tokenizer": str,
    "level": str,
    "repeat": int,
    "arrival": str,
    "concurrency": int,
    "rate": float,
    "depth": int,
    "warm": bool,
}
_HINTS = get_type_hints(Row)
ROW: Mapping[str, type] = {
    field.name: next((kind for kind in get_args(_HINTS[field.name]) if kind is not NoneType), _HINTS[field.name])
    for field in fields(Row)
    if field.name != "reads"
}
_MUST = ("level", "sent")
Record = Mapping[str, Any]


def records(run: Run) -> Iterator[dict[str, Any]]:
    """Scalars and, of each request, its reads."""
    for level in run.levels:
        head = _head(run, level)
        for row in level.rows:
            yield {**head, **{name: getattr(row, name) for name in ROW}, "reads": row.reads}


def _head(run: Run, level: Level) -> dict[str, Any]:
    terms, pace, shape = run.conditions, level.plan.pace, level.plan.shape
    single = shape if isinstance(shape, Single) else None
    return {
        "run": run.id,
        "workload": run.workload.name,
        "workload_version": run.workload.version,
        "endpoint": terms.endpoint,
        "model": terms.model,
        "engine": terms.engine,
        "engine_version": terms.engine_version,
        "tokenizer": terms.tokenizer,
        "level": level.plan.name,
        "repeat": level.repeat,
        "arrival": str(pace.arrival),
        "concurrency": pace.concurrency,
        "rate": pace.rate,
        "depth": single.depth if single else 0,
        "warm": bool(single and single.warm),
    }


def run_of(found: Sequence[Record], tool: str) -> Run:
    """A run of what the table has: conditions that it has no column for stay unknown. Raises UsageError."""
    if not found:
        raise UsageError("the table has no request")
    missing = [name for name in _MUST if name not in found[0]]
    if missing:
        raise UsageError(f"the table has no column {', '.join(missing)}")
    groups: dict[tuple[str, int], list[Record]] = {}
    for record in found:
        groups.setdefault((record["level"], record.get("repeat") or 0), []).append(record)
    levels = tuple(_level(repeat, each) for (_, repeat), each in groups.items())
    return Run("", 0.0, _workload(found[0], levels), _conditions(found[0]), "done", levels=levels, imported=tool)


def _workload(first: Record, levels: Sequence[Level]) -> Workload:
    name = str(first.get("workload") or "table")
    plans = {level.plan.name: level.plan for level in levels}
    repeats = max(level.repeat for level in levels) + 1
    return Workload(name, name, tuple(plans.values()), int(first.get("workload_version") or 1), repeats=repeats)


def _conditions(first: Record) -> Conditions:
    names = ("endpoint", "model", "engine", "engine_version", "tokenizer")
    told: dict[str, Any] = {name: str(first.get(name) or "") for name in names}
    return Conditions(**told, simulated=bool(first.get("simulated")))


def _level(repeat: int, found: Sequence[Record]) -> Level:
    first, rows = found[0], tuple(row_of(record) for record in found)
    depth = int(first.get("depth") or 0)
    prompt, output = max(row.planned_prompt for row in rows), max(row.planned_output for row in rows)
    shape = Single(Length(prompt - depth, prompt - depth), Length(output, output), depth, bool(first.get("warm")))
    arrival = Arrival(first.get("arrival") or Arrival.CLOSED)
    pace = Pace(arrival, int(first.get("concurrency") or 0), float(first.get("rate") or 0.0))
    warmup = sum(row.warmup for row in rows)
    plan = LevelPlan(str(first["level"]), shape, pace, len(rows) - warmup, warmup)
    return Level(plan, repeat, 0.0, span(rows), rows)


def row_of(record: Record) -> Row:
    """Missing columns are as in an empty row."""
    told = {name: record[name] for name in ROW if record.get(name) is not None}
    needed = {"session": 0, "turn": 0, "intended": told.get("sent", 0.0), "sent": 0.0}
    return Row(**{**needed, **told}, reads=record.get("reads") or Reads())
