"""The date of a row without one: that of its source's, or its model's, earliest row with a date."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]


def row_dates(rows: Sequence[Row], model: Callable[[Row], str]) -> list[str]:
    """A day or month for each row, '' where nothing reports. model: names what a row is about."""
    by_source, by_model = _first(rows, source), _first(rows, model)
    return [str(row.get("date") or by_source.get(source(row)) or by_model.get(model(row)) or "") for row in rows]


def source(row: Row) -> str:
    """The site or repository: `github owner/name path` -> `github owner/name`, an address -> its host."""
    words = str(row.get("source") or "").split()
    if words and "://" in words[0]:
        return words[0].split("/")[2]
    return " ".join(words[:2])


def _first(rows: Sequence[Row], of: Callable[[Row], str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for row in rows:
        day, name = str(row.get("date") or ""), of(row)
        if day and name:
            found[name] = min(found.get(name, day), day)
    return found
