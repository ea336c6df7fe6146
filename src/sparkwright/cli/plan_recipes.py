"""Other recipes of a model whose own recipe does not fit: what `plan` lets start on the same assumed nodes."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from sparkwright.adapters.files import find_recipe, recipe_names, recipe_of
from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.app.plan.estimate import HERE, ComparisonRow, EstimateRequest, compare
from sparkwright.cli import options as shared
from sparkwright.cli.columns import aligned
from sparkwright.domain.errors import RecipeError
from sparkwright.domain.ledger import Fit
from sparkwright.domain.plan import Plan, stopping
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.values import replace
from sparkwright.wiring import places

_ID = re.compile(r"^ {2}id: *[\w.-]+/([\w.-]+)", re.MULTILINE)
_FORMAT = re.compile(r"[-_](nvfp4|mxfp4|fp8|int[48]|awq|gptq|exl3|gguf|bf16|w[48]a\d+)\b.*", re.IGNORECASE)
_MOST = 4  # recipes that are planned: each costs a few milliseconds


def model_name(name: str) -> str:
    """A model's name without owner and number format: `nvidia/X-1-NVFP4` and `other/x-1-exl3-3bpw` are `x-1`."""
    return _FORMAT.sub("", name.rpartition("/")[2]).lower()


def other_recipes(
    recipe: Recipe, asked: EstimateRequest, nodes: int, where: ClusterOptions
) -> tuple[ComparisonRow, ...]:
    """The recipes of the same model that fit on so many assumed nodes at most, each with its plan."""
    every = [
        replace(asked, recipe=one, nodes=one.nodes, tp=0, context=0, kv_dtype="") for one in _of_model(recipe, nodes)
    ]
    if not every:
        return ()
    found = shared.drive_on(HERE, where, lambda services: compare(services, every), quiet=True)
    return tuple(row for row in found if row.plan and _surely_fits(row.plan))


def others_text(found: Sequence[ComparisonRow]) -> str:
    """The recipes with their nodes, engine and command; '' where none is known to fit."""
    rows = [_row(row, row.plan) for row in found if row.plan]
    return f"other recipes of this model that fit\n{aligned(rows)}" if rows else ""


def others_json(found: Sequence[ComparisonRow]) -> list[dict[str, Any]]:
    """The recipes with their nodes, engine and command, for `--json`."""
    return [
        {"recipe": row.name, "nodes": row.nodes, "engine": row.plan.recipe.engine.label, "command": _command(row)}
        for row in found
        if row.plan
    ]


def _surely_fits(plan: Plan) -> bool:
    return plan.verdict is not None and plan.verdict.fit is Fit.FITS and not stopping(plan, "")


def _row(row: ComparisonRow, plan: Plan) -> tuple[str, ...]:
    count = f"{row.nodes} node{'s' * (row.nodes > 1)}"
    return "", row.name, count, plan.recipe.engine.label, _command(row)


def _command(row: ComparisonRow) -> str:
    return f"sparkwright plan {row.name} --nodes {row.nodes}"


def _of_model(recipe: Recipe, nodes: int) -> Iterator[Recipe]:
    """Shipped recipes and the user's of the same model on so many nodes at most; only these are parsed."""
    at, wanted, count = places(), model_name(recipe.model.id), 0
    for name in recipe_names(at) if wanted else ():
        if name == recipe.name or count == _MOST:
            continue
        try:
            text = find_recipe(name, at)
            named = _ID.search(text.text)
            other = recipe_of(text, at) if named and model_name(named[1]) == wanted else None
        except RecipeError:
            continue
        if other and other.nodes <= nodes and not other.model.simulated:
            count += 1
            yield other
