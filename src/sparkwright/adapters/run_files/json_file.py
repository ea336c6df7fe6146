"""A run as JSON: everything, so that it is the same run again when it is read."""

from dataclasses import replace
from typing import Any

import orjson

from sparkwright.domain.codec import Unreadable, from_tree
from sparkwright.domain.errors import UsageError
from sparkwright.domain.run import Reads, Row, Run

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
    return replace(from_tree(Row, tree), reads=_reads(told))


def _reads(told: Any) -> Reads:
    at, tokens = told.get("at", []), told.get("tokens", [])
    if len(at) != len(tokens) or {*map(type, at)} - {int, float} or {*map(type, tokens)} - {int}:
        raise Unreadable("Row.reads: `at` and `tokens` are not as many numbers each")
    return Reads(tuple(map(float, at)), tuple(tokens), bool(told.get("exact", True)))
