"""What checks ask of a recipe and of the ranks that were made of it."""

from collections.abc import Iterator, Sequence

from sparkwright.checks.reading import other_gpu, simulated
from sparkwright.domain.check import Context
from sparkwright.domain.plan import RankSpec
from sparkwright.domain.recipe import Recipe

VLLM = ("vllm", "vllm-ray")


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


def served_on_gb10(context: Context, *engines: str) -> Recipe | None:
    """The recipe, where it serves a real model with one of these engines (any, without a name) on GB10 nodes."""
    recipe = context.recipe
    if recipe is None or recipe.model.simulated or recipe.engine.name == "twin":
        return None
    if (engines and recipe.engine.name not in engines) or any(other_gpu(facts) for facts in context.facts.values()):
        return None
    return recipe
