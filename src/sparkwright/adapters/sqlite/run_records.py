"""Runs as records of the database, and back."""

import json
import struct
import zlib
from collections.abc import Sequence
from dataclasses import MISSING, asdict, fields
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any

from sparkwright.domain.codec import from_json, from_tree, to_json
from sparkwright.domain.evaluation import Evaluation
from sparkwright.domain.run import Lag, Level, Reads, Row, Run, RunConditions, RunListing, Scrape, StatedFigures, Totals
from sparkwright.domain.workload import LevelPlan, Workload

_EXACT, _WIDE, _MANY, _ONES = 1, 2, 4, 8
_HEAD = struct.Struct("<BI")
_MICRO = 1e6
_GAP, _TOKENS = 2**32, 2**16


def pack_reads(reads: Reads) -> bytes | None:
    """None of no reads at all."""
    if reads == Reads():
        return None
    places = [round(at * _MICRO) for at in reads.at]
    gaps = [max(0, after - before) for before, after in pairwise((0, *places))]
    wide, many = any(gap >= _GAP for gap in gaps), any(count >= _TOKENS for count in reads.tokens)
    ones = all(count == 1 for count in reads.tokens)
    flags = reads.exact * _EXACT | wide * _WIDE | many * _MANY | ones * _ONES
    tokens = b"" if ones else _packed(reads.tokens, "I" if many else "H")
    return _HEAD.pack(flags, len(gaps)) + _packed(gaps, "Q" if wide else "I") + tokens


def _packed(numbers: Sequence[int], kind: str) -> bytes:
    return struct.pack(f"<{len(numbers)}{kind}", *numbers)


def unpack(blob: bytes | None) -> Reads:
    """Raises struct.error where the bytes are not what `pack_reads` made."""
    if blob is None:
        return Reads()
    flags, count = _HEAD.unpack_from(blob)
    gaps = struct.Struct(f"<{count}{'Q' if flags & _WIDE else 'I'}")
    at = [place / _MICRO for place in accumulate(gaps.unpack_from(blob, _HEAD.size))]
    if flags & _ONES:
        return Reads(at, _ones(count), bool(flags & _EXACT))
    tokens = struct.unpack_from(f"<{count}{'I' if flags & _MANY else 'H'}", blob, _HEAD.size + gaps.size)
    return Reads(at, tokens, bool(flags & _EXACT))


@lru_cache(256)
def _ones(count: int) -> tuple[int, ...]:
    return (1,) * count


_ALWAYS = tuple(field.name for field in fields(Row) if field.default is MISSING)
_DEFAULTS = {field.name: field.default for field in fields(Row) if field.name not in (*_ALWAYS, "reads")}
_KNOWN = frozenset((*_ALWAYS, *_DEFAULTS))
_PLAIN = ("id", "began", "ended", "state", "note", "imported")
Record = dict[str, Any]


def run_record(run: Run) -> Record:
    trees = {"workload": to_json(run.workload), "conditions": to_json(run.conditions), "tags": json.dumps(run.tags)}
    trees["evaluation"] = to_json(run.evaluation) if run.evaluation else ""
    told = {**{name: getattr(run, name) for name in _PLAIN}, **trees}
    return {name: drop_surrogates(value) if isinstance(value, str) else value for name, value in told.items()}


def drop_surrogates(text: str) -> str:
    """The text without lone surrogates, which models and logs with odd bytes leave: SQLite and terminals reject
    them."""
    return text.encode("utf-8", "replace").decode("utf-8")


def run_from_record(record: Record, levels: tuple[Level, ...]) -> Run:
    """Raises Unreadable."""
    workload, conditions = from_json(Workload, record["workload"]), from_json(RunConditions, record["conditions"])
    evaluation = from_json(Evaluation, record["evaluation"]) if record["evaluation"] else None
    given = {name: record[name] for name in _PLAIN} | {"tags": tuple(json.loads(record["tags"]))}
    return Run(**given, workload=workload, conditions=conditions, levels=levels, evaluation=evaluation)


def listed(record: Record) -> RunListing:
    """The record with its counts. It reads the JSON as it is: a list must not fail because of one odd run."""
    work, terms = json.loads(record["workload"]), json.loads(record["conditions"])
    same = {name: record[name] for name in (*_PLAIN, "done", "requests", "errors")}
    wanted = ("model", "endpoint", "engine", "engine_version", "simulated")
    given = {name: terms[name] for name in wanted if name in terms}
    return RunListing(
        **same,
        **given,
        workload=f"{work.get('name', '?')}@{work.get('version', '?')}",
        planned=len(work.get("levels", ())) * work.get("repeats", 1),
        tags=tuple(json.loads(record["tags"])),
        kind=_kind(record["evaluation"]),
    )


def _kind(evaluation: str) -> str:
    name = json.loads(evaluation).get("kind", "?") if evaluation else "bench"
    return name if name in ("bench", "soak") else f"eval {name}"


def level_record(run: str, level: Level) -> Record:
    scrapes = json.dumps([asdict(scrape) for scrape in level.scrapes])
    return {
        "run": run,
        "name": level.plan.name,
        "repeat": level.repeat,
        "plan": to_json(level.plan),
        "began": level.began,
        "seconds": level.seconds,
        "lag": to_json(level.lag),
        "scrapes": zlib.compress(scrapes.encode()),
        "doubts": json.dumps(level.doubts),
        "complete": int(level.complete),
        "stated": json.dumps([asdict(one) for one in level.stated]) if level.stated else "",
        "totals": to_json(level.totals) if level.totals else "",
    }


def level_of(record: Record, rows: tuple[Row, ...]) -> Level:
    """Raises Unreadable."""
    scrapes = json.loads(zlib.decompress(record["scrapes"]))
    return Level(
        plan=from_json(LevelPlan, record["plan"]),
        repeat=record["repeat"],
        began=record["began"],
        seconds=record["seconds"],
        rows=rows,
        lag=from_json(Lag, record["lag"]),
        scrapes=tuple(from_tree(Scrape, scrape) for scrape in scrapes),
        doubts=tuple(json.loads(record["doubts"])),
        complete=bool(record["complete"]),
        stated=tuple(from_tree(StatedFigures, one) for one in json.loads(record["stated"] or "[]")),
        totals=from_json(Totals, record["totals"]) if record["totals"] else None,
    )


def row_record(row: Row) -> tuple[int, str, bytes | None]:
    """(failed, data, reads)."""
    data = {name: getattr(row, name) for name in _ALWAYS}
    data |= {name: value for name, default in _DEFAULTS.items() if (value := getattr(row, name)) != default}
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return int(bool(row.error)), drop_surrogates(text), pack_reads(row.reads)


def row_from_json(data: str, reads: bytes | None) -> Row:
    """The row; fields that a later version added are left out."""
    told = json.loads(data)
    return Row(**{name: told[name] for name in told if name in _KNOWN}, reads=unpack(reads))
