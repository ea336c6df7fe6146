"""Published starts (planner_report_loads.yaml) held to the planner's loading times: a table of the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

import yaml

from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import EngineChoice, Model, Parallelism, Recipe
from sparkwright.domain.verdict import Estimate
from sparkwright.planner.speed import CACHED, DISK, loading, started

_ROWS = Path(__file__).with_name("planner_report_loads.yaml")


def load_table() -> Iterator[str]:
    """One line a published time, and how many lie inside the range."""
    yield "## Starts\n"
    yield "Seconds until an answer, or of reading the weights. The rates were chosen with these starts in view. There"
    yield "is a range for a first start, from the disk, and one for a later one, from the page cache. A start is held"
    yield "to its own where the source tells which it was, else to a range that has both.\n"
    yield "| start | engine, nodes | what | published | predicted | range |"
    yield "|---|---|---|---|---|---|"
    found = [(row, name, float(row[name]), predicted(row, name)) for row in _rows() for name in TIMES if name in row]
    for row, name, published, one in found:
        remark = f" ({row['note']})" if row["note"] else ""
        where = f"{row['engine']}, {row['nodes']}{', ' + row['loader'] if 'loader' in row else ''}"
        mark = "" if one.low <= published <= one.high else " **outside**"
        figures = f"{published:.0f} | {one.value:.0f} | {one.low:.0f} to {one.high:.0f}{mark}"
        yield f"| {row['what']}{remark}; {row['source']} | {where} | {TIMES[name]} | {figures} |"
    inside = sum(one.low <= published <= one.high for _, _, published, one in found)
    apart = median(abs(one.value - published) / published for _, _, published, one in found)
    width = median(one.high / one.low for *_, one in found)
    yield f"\n{inside} of {len(found)} are inside; the error is {apart:.0%} in the median, the range x{width:.0f}.\n"


TIMES = {"total": "to an answer", "files": "weights"}


def _rows() -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = yaml.safe_load(_ROWS.read_text())
    return found


_STATES = {"cold": DISK, "warm": CACHED}


def predicted(row: Mapping[str, Any], name: str) -> Estimate:
    """name: total or files. The row's state chooses the range: cold, warm, or neither where its source is silent."""
    state = _STATES.get(row.get("state", ""), "")
    size = int(row["gb"] * 1e9)
    flags = {**row.get("flags", {}), **({"load-format": row["loader"]} if "loader" in row else {})}
    recipe = Recipe(
        name="row",
        title=row["what"],
        model=Model(),
        engine=EngineChoice(row["engine"], ""),
        nodes=row["nodes"],
        parallelism=Parallelism(row["nodes"], 1),
        flags=flags,
    )
    shape = ModelShape(row["layers"], heads=1, kv_heads=1)
    if name == "total":
        return started(recipe, shape, size, state)
    fast, likely, slow = loading(recipe, shape, size, state)
    return Estimate(likely.files, fast.files, slow.files)
