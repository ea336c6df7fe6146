"""What the compatibility table knows of a recipe's combination: as lines of `recipes show`, and as JSON."""

from collections.abc import Iterator
from typing import Any

from sparkwright.compat.combination import combination
from sparkwright.compat.schema import Row
from sparkwright.compat.table import known_of, unheard
from sparkwright.compat.verdicts import told
from sparkwright.domain.check import Context
from sparkwright.domain.cluster import Cluster
from sparkwright.domain.recipe import Recipe


def known_json(recipe: Recipe) -> list[dict[str, Any]]:
    """verdict, reason, alternative, otherwise, source, date of each row that the recipe meets on GB10 nodes."""
    shown = ("verdict", "reason", "alternative", "otherwise", "source", "date")
    return [{name: getattr(row, name) for name in shown} for row in _rows(recipe)]


def known_lines(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """(verdict, what is known and who says so)."""
    for row in _rows(recipe):
        instead = f"; instead: {row.alternative}" if row.alternative and row.verdict != "works" else ""
        yield "disputed" if row.otherwise else row.verdict, f"{told(row)}{instead}"
    asked = combination(_context(recipe))
    if asked and unheard(asked):
        yield "unknown", f"nothing is known of {asked.engine} with {asked.architecture} on {asked.chip}"


def _rows(recipe: Recipe) -> tuple[Row, ...]:
    asked = combination(_context(recipe))
    return known_of(asked) if asked else ()


def _context(recipe: Recipe) -> Context:
    return Context(Cluster("", (), ""), recipe=recipe)
