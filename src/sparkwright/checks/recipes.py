"""What checks ask of a recipe and of the ranks that were made of it."""

from collections.abc import Iterator, Sequence

from sparkwright.checks.reading import other_gpu, simulated
from sparkwright.domain.check import Context
from sparkwright.domain.plan import RankSpec
from sparkwright.domain.recipe import Recipe
from sparkwright.engines.catalog import simulator, traits


def environments(context: Context, name: str) -> Iterator[tuple[RankSpec, str]]:
    """The real ranks for which somebody gave the variable, the recipe or the node's entry, and its value there."""
    recipe = context.recipe
    if simulated(context):
        return
    by_recipe = recipe is not None and name in recipe.env
    for spec in context.specs:
        entry = next((dict(node.env) for node in context.cluster.nodes if node.name == spec.node), {})
        if name in spec.env and (by_recipe or name in entry):
            yield spec, spec.env[name]


def names(value: str) -> Sequence[str]:
    """`=eth0,eth1:1` -> eth0, eth1; none of a list of what to leave out (`^docker0`)."""
    return () if value.startswith("^") else [part.strip().lstrip("=").partition(":")[0] for part in value.split(",")]


def served_on_gb10(context: Context, code: str = "") -> Recipe | None:
    """The recipe, where it serves a real model on GB10 nodes, with an engine that the check `code` is about."""
    recipe = context.recipe
    if recipe is None or recipe.model.simulated or simulator(recipe):
        return None
    if (code and code not in traits(recipe).faults) or any(other_gpu(facts) for facts in context.facts.values()):
        return None
    return recipe
