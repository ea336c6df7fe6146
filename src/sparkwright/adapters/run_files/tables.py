"""A run as JSON, and as CSV, with a row for each request."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from types import NoneType
from typing import Any, get_args, get_type_hints

import orjson

from sparkwright.domain.codec import Unreadable, from_tree
from sparkwright.domain.errors import UsageError
from sparkwright.domain.run import Level, Reads, Row, Run, RunConditions
from sparkwright.domain.workload import Arrival, Length, LevelPlan, Pace, Single, Workload
from sparkwright.loadgen import stated
from sparkwright.loadgen.samples import seconds_spanned

KIND = "sparkwright-run"
VERSION = 1


def write_json(run: Run) -> bytes:
    return orjson.dumps({"kind": KIND, "version": VERSION, "run": run}, default=list, option=orjson.OPT_APPEND_NEWLINE)


def read_json(tree: Any) -> Run:
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
    reads = Reads(tuple(map(float, at)), tuple(tokens), bool(told.get("exact", True)))
    return replace(from_tree(Row, tree), reads=reads)


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
_TERMS = ("endpoint", "model", "engine", "engine_version", "tokenizer")
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
        **{name: getattr(terms, name) for name in _TERMS},
        "level": level.plan.name,
        "repeat": level.repeat,
        "arrival": str(pace.arrival),
        "concurrency": pace.concurrency,
        "rate": pace.rate,
        "depth": single.depth if single else 0,
        "warm": bool(single and single.warm),
    }


def run_of_records(found: Sequence[Record], tool: str) -> Run:
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


def _conditions(first: Record) -> RunConditions:
    told: dict[str, Any] = {name: str(first.get(name) or "") for name in _TERMS}
    return RunConditions(**told, simulated=bool(first.get("simulated")))


def _level(repeat: int, found: Sequence[Record]) -> Level:
    first, rows = found[0], tuple(row_of_record(record) for record in found)
    depth = int(first.get("depth") or 0)
    prompt, output = max(row.planned_prompt for row in rows), max(row.planned_output for row in rows)
    shape = Single(Length(prompt - depth, prompt - depth), Length(output, output), depth, bool(first.get("warm")))
    arrival = Arrival(first.get("arrival") or Arrival.CLOSED)
    pace = Pace(arrival, int(first.get("concurrency") or 0), float(first.get("rate") or 0.0))
    warmup = sum(row.warmup for row in rows)
    plan = LevelPlan(str(first["level"]), shape, pace, len(rows) - warmup, warmup)
    return Level(plan, repeat, 0.0, seconds_spanned(rows), rows)


def row_of_record(record: Record) -> Row:
    """Missing columns are as in an empty row."""
    told = {name: record[name] for name in ROW if record.get(name) is not None}
    needed = {"session": 0, "turn": 0, "intended": told.get("sent", 0.0), "sent": 0.0}
    return Row(**{**needed, **told}, reads=record.get("reads") or Reads())


_READS = ("reads_at", "reads_tokens", "reads_exact")
_KINDS = {**HEAD, **ROW}
_WORDS = {"true": True, "false": False, "1": True, "0": False}


def write_csv(run: Run) -> bytes:
    """Raises UsageError where no request is known."""
    if stated.missing(run.levels):
        why = f"{run.id} has no requests: {run.imported or 'its tool'} states totals only, and CSV has a row a request"
        raise UsageError(why, f"sparkwright runs export {run.id} run.json")
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, [*HEAD, *ROW, *_READS])
    writer.writeheader()
    for record in records(run):
        reads: Reads = record.pop("reads")
        told = {name: _said(value) for name, value in record.items()}
        at, tokens = " ".join(f"{at:.6f}" for at in reads.at), " ".join(map(str, reads.tokens))
        writer.writerow({**told, "reads_at": at, "reads_tokens": tokens, "reads_exact": _said(reads.exact)})
    return text.getvalue().encode()


def _said(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def is_csv_text(text: str) -> bool:
    """True if the first line names columns of ours."""
    return len(_KINDS.keys() & set(text.partition("\n")[0].strip().split(","))) > 1


def read_csv(text: str, name: str) -> Run:
    """Raises UsageError with the line."""
    reader = csv.DictReader(io.StringIO(text, newline=""))
    return run_of_records(list(_csv_records(reader, name)), "csv")


def _csv_records(reader: "csv.DictReader[str]", name: str) -> Iterator[Mapping[str, Any]]:
    for line in reader:
        try:
            told = {key: _value(key, line[key]) for key in _KINDS if line.get(key) not in (None, "")}
            at = tuple(map(float, (line.get("reads_at") or "").split()))
            tokens = tuple(map(int, (line.get("reads_tokens") or "").split()))
            if len(at) != len(tokens):
                raise ValueError(f"{len(at)} times of reads, and tokens of {len(tokens)}")
            yield {**told, "reads": Reads(at, tokens, (line.get("reads_exact") or "true") == "true")}
        except ValueError as error:
            raise UsageError(f"{name}:{reader.line_num}: {error}") from None


def _value(key: str, text: str) -> Any:
    kind = _KINDS[key]
    try:
        return _WORDS[text.strip().lower()] if kind is bool else kind(text)
    except (ValueError, KeyError):
        raise ValueError(f"{key}: {text!r} is no {kind.__name__}") from None
