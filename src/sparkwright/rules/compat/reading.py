"""What the rules of this folder ask of a recipe and of the ranks that were made of it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.model import ModelShape
from sparkwright.domain.plan import RankSpec
from sparkwright.domain.recipe import Recipe
from sparkwright.rules.reading import other_gpu, simulated
from sparkwright.rules.rule import Context

VLLM = ("vllm", "vllm-ray")
_ON = ("1", "true", "yes", "on")


def flag(recipe: Recipe, name: str) -> str:
    """The value of a flag, '' where it is not given. `compilation-config.cudagraph_mode` looks into a JSON option."""
    flags = {_dashed(key): value for key, value in recipe.flags.items()}
    if name in flags:
        return _text(flags[name])
    head, *path = name.split(".")
    value = flags.get(head)
    for key in path:
        value = _mapping(value).get(key)
    return _text(value)


def on(recipe: Recipe, name: str) -> bool:
    """Whether a switch is set."""
    return flag(recipe, name).lower() in _ON


def _dashed(name: str) -> str:
    head, dot, rest = name.lstrip("-").partition(".")
    return head.replace("_", "-") + dot + rest


def _mapping(value: Any) -> Mapping[str, Any]:
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, Mapping) else {}


def _text(value: Any) -> str:
    if value is None or isinstance(value, Mapping):
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def variables(context: Context) -> Mapping[str, str]:
    """The first rank's environment, with the launcher's own variables; without a plan the recipe's."""
    if context.specs:
        return context.specs[0].env
    return {name: str(value) for name, value in context.recipe.env.items()} if context.recipe else {}


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


def shape_of(context: Context) -> ModelShape | None:
    """Of the files on a node, whole copies first; without them what the recipe says."""
    copies = [c for c in context.checkpoints.values() if isinstance(c, Checkpoint)]
    shapes = (c.shape for c in sorted(copies, key=lambda c: not c.complete))
    found = next((shape for shape in shapes if isinstance(shape, ModelShape)), None)
    return found or (context.recipe.model.shape if context.recipe else None)


def served_on_gb10(context: Context, *engines: str) -> Recipe | None:
    """The recipe, where it serves a real model with one of these engines (any, without a name) on GB10 nodes."""
    recipe = context.recipe
    if recipe is None or recipe.model.simulated or recipe.engine.name == "twin":
        return None
    if (engines and recipe.engine.name not in engines) or any(other_gpu(facts) for facts in context.facts.values()):
        return None
    return recipe
