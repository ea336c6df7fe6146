"""Runs as text."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sparkwright.cli.columns import aligned
from sparkwright.cli.incidents_text import when
from sparkwright.cli.text import mark
from sparkwright.domain.run import Listed, Run


def list_text(found: Sequence[Listed]) -> str:
    """A line each: id, when, state, workload, model and engine, requests, tags."""
    return aligned([_row(one) for one in found])


def _row(one: Listed) -> tuple[str, ...]:
    engine = f" on {one.engine} {one.engine_version}".rstrip() if one.engine else ""
    failed = f", {one.errors} failed" if one.errors else ""
    began = when(one.began) if one.began else ""
    model = f"{mark(one.simulated)}{one.model}{engine}"
    return one.id, began, _state(one), one.workload, model, f"{one.requests} requests{failed}", ", ".join(one.tags)


def _state(one: Listed) -> str:
    if one.imported:
        return f"from {one.imported}"
    return one.state if one.state == "done" else f"{one.state}, {one.done} of {one.planned}"


def tags_text(run: Run) -> str:
    told = [f"  tags: {', '.join(run.tags)}"] if run.tags else []
    told += [f"  note: {run.note}"] if run.note else []
    return "\n".join([*told, *([f"  from: {run.imported}"] if run.imported else [])])


def listed_json(one: Listed) -> dict[str, Any]:
    return asdict(one)
