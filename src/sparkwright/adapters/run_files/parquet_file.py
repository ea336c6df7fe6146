"""A run as Parquet: a row for each request, and the rest of the run in the file's metadata. Needs pyarrow."""

import io
from dataclasses import replace
from typing import Any

import orjson

from sparkwright.adapters.run_files import columns
from sparkwright.domain.errors import UsageError
from sparkwright.domain.run import Reads, Run

_KEY = b"sparkwright_run"
_READS = ("reads_at", "reads_tokens", "reads_exact")


def _pyarrow() -> tuple[Any, Any]:
    """Raises UsageError where it is not installed."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise UsageError(
            "Parquet needs pyarrow, which is not installed", "pip install 'sparkwright[parquet]'"
        ) from None
    return pyarrow, pyarrow.parquet


def write(run: Run) -> bytes:
    """Raises UsageError."""
    arrow, parquet = _pyarrow()
    kinds = {str: arrow.string(), int: arrow.int64(), float: arrow.float64(), bool: arrow.bool_()}
    names = {**columns.HEAD, **columns.ROW}
    schema = arrow.schema(
        [
            *(arrow.field(name, kinds[kind]) for name, kind in names.items()),
            arrow.field("reads_at", arrow.list_(arrow.float64())),
            arrow.field("reads_tokens", arrow.list_(arrow.int32())),
            arrow.field("reads_exact", arrow.bool_()),
        ],
        metadata={_KEY: orjson.dumps(replace(run, levels=tuple(replace(level, rows=()) for level in run.levels)))},
    )
    sink = io.BytesIO()
    parquet.write_table(arrow.Table.from_pydict(_columns(run, [*names]), schema=schema), sink, compression="zstd")
    return sink.getvalue()


def _columns(run: Run, names: list[str]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {name: [] for name in (*names, *_READS)}
    for record in columns.records(run):
        reads: Reads = record["reads"]
        for name in names:
            found[name].append(record[name])
        for name, value in zip(_READS, (reads.at, reads.tokens, reads.exact), strict=True):
            found[name].append(value)
    return found


def read(data: bytes) -> Run:
    """Raises UsageError, Unreadable."""
    arrow, parquet = _pyarrow()
    try:
        table = parquet.read_table(io.BytesIO(data))
    except arrow.ArrowException as error:
        raise UsageError(f"this is no Parquet file: {error}") from None
    found = [_record(record) for record in table.to_pylist()]
    head = (table.schema.metadata or {}).get(_KEY)
    return _refilled(columns.of_tree(orjson.loads(head)), found) if head else columns.run_of(found, "parquet")


def _record(told: dict[str, Any]) -> dict[str, Any]:
    at, tokens = told.get("reads_at") or (), told.get("reads_tokens") or ()
    return {**told, "reads": Reads(tuple(at), tuple(tokens), told.get("reads_exact") is not False)}


def _refilled(run: Run, found: list[dict[str, Any]]) -> Run:
    """The levels as they were, with the table's rows."""
    rows: dict[tuple[str, int], list[Any]] = {}
    for record in found:
        rows.setdefault((record["level"], record["repeat"]), []).append(columns.row_of(record))
    levels = (replace(level, rows=tuple(rows.get((level.plan.name, level.repeat), ()))) for level in run.levels)
    return replace(run, levels=tuple(levels))
