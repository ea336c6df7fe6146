"""`recipes list --nodes 1 --purpose code`: which recipe to take, with its size, expected speed and state."""

from collections.abc import Sequence
from typing import Any

from sparkwright.cli.columns import aligned
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import GIB, exact_number, gib
from sparkwright.domain.verdict import Estimate, Load
from sparkwright.planner.parts import main, settled
from sparkwright.planner.speed import estimate_speed
from sparkwright.recipes.catalogue import Purpose

_DEPTH, _PROMPT = 8192, 2048
_READS = (Purpose.EMBED, Purpose.RERANK)  # these read prompts and generate nothing


def choice_row(recipe: Recipe, purpose: Purpose | None) -> dict[str, Any]:
    """Size in bytes in memory of all nodes, tokens per second with the range; None where it is not known."""
    size, found = weights(recipe), expected(recipe, purpose in _READS)
    known = {"value": found.value, "low": found.low, "high": found.high} if found and found.known else None
    what = "prefill" if purpose in _READS else "decode"
    return {"size": size, "context": recipe.serving.context, "speed": known, "speed_of": what}


def weights(recipe: Recipe) -> int | None:
    """Bytes of the weights that go into memory: as published, else as the dimensions give them."""
    published = recipe.model.size - recipe.model.on_disk
    if published > 0:
        return published
    shape = recipe.model.shape
    total = sum(part.bytes for part in main(settled(shape))) if shape else 0
    return int(total) or None


def expected(recipe: Recipe, reads: bool) -> Estimate | None:
    """Decode of one stream, 8,192 tokens deep; for what only reads, its prefill."""
    shape = recipe.model.shape
    if shape is None:
        return None
    found = estimate_speed(recipe, shape, recipe.model.size - recipe.model.on_disk, Load(_DEPTH, prompt=_PROMPT))
    return found.prefill if reads else found.decode


def choice_text(rows: Sequence[dict[str, Any]]) -> str:
    """A line a recipe, the best known first; then how to go on."""
    if not rows:
        return "no recipe suits; `sparkwright recipes list` shows all, `recipes source add` brings more"
    speeds = {row["speed_of"] for row in rows}
    what = "prefill" if speeds == {"prefill"} else "decode"
    table: list[tuple[str, ...]] = [
        ("NAME", "NODES", "WEIGHTS", f"{what.upper()}, TOKENS/S", "CONTEXT", "STATE", "TITLE")
    ]
    table += [_cells(row) for row in rows]
    said = "estimates for one stream, 8,192 tokens deep, with the range that most measurements fall into"
    if what == "prefill":
        said = "estimates of reading, with the range that most measurements fall into"
    next_ = f"next: sparkwright plan {rows[0]['name']}"
    return f"{aligned(table)}\n\n{said}; `recipes show NAME` has what others published\n{next_}"


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    size, found = row["size"], row["speed"]
    weights_text = gib(size) if size and size >= GIB // 10 else "not known"
    speed_text = "not known"
    if found:
        value, low, high = (exact_number(round(found[key], 1)) for key in ("value", "low", "high"))
        speed_text = f"{value} ({low} to {high})"
    state = f"{row['state']}, older" if row["older"] else row["state"]
    return row["name"], str(row["nodes"]), weights_text, speed_text, exact_number(row["context"]), state, row["title"]
