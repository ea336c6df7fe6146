"""The recipes that can use a checkpoint on a disk: by its id or path, else by its architecture and dimensions."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sparkwright.domain.checkpoint import Published, Stored, Usability, Use
from sparkwright.domain.facts import GpuProcess, NodeFacts
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.engines.catalog import traits
from sparkwright.facts import model_config

_DIMENSIONS = ("layers", "heads", "kv_heads", "hidden", "experts")
# A GGUF header counts some of these in its own way.
_ALSO = ("head_dim", "intermediate", "experts_per_token", "expert_intermediate", "latent", "state_layers")
_WORDS = {"kv_heads": "KV heads", "hidden": "wide"}


def list_uses(stored: Stored, recipes: Iterable[Recipe], all_stored: Sequence[Stored] = ()) -> tuple[Use, ...]:
    """One for each recipe that has to do with it. all_stored: where a recipe's own checkpoint has its dimensions."""
    found = (
        recipe_use(recipe, stored, shape_of(recipe, all_stored)) for recipe in recipes if not recipe.model.simulated
    )
    return tuple(one for one in found if one)


def recipe_use(recipe: Recipe, stored: Stored, shape: ModelShape | None) -> Use | None:
    """The way the recipe can use it; None: they have nothing in common. shape: of the recipe's own model."""
    later = "" if stored.complete else f"once it is complete ({stored.missing[0]})"
    if _is(recipe, stored):
        return Use(recipe.label, Usability.YES, (), later)
    other = stored.checkpoint.shape
    if not isinstance(other, ModelShape) or shape is None or not _kin(shape, other):
        return None
    unequal = _unequal(shape, other)
    if unequal:
        return Use(recipe.label, Usability.NO, (), f"another model of the family: {unequal}")
    if _is_gguf(stored) != traits(recipe).gguf:
        what = "GGUF" if _is_gguf(stored) else "safetensors"
        return Use(recipe.label, Usability.NO, (), f"{recipe.engine.name} recipes are not for {what} files")
    own, method = shape.expert_format or shape.format, recipe.speculation.method
    instead = f"{stored.format} instead of {own}" if own and own not in stored.format else ""
    lacks = method in ("mtp", "deepseek_mtp", "nextn", "eagle") and not other.mtp_layers
    drafts = f"speculation.method {method} has no draft layers there" if lacks else ""
    return Use(
        recipe.label, Usability.COULD, _change(recipe, stored), "; ".join(filter(None, (later, instead, drafts)))
    )


def shape_of(recipe: Recipe, stored: Iterable[Stored]) -> ModelShape | None:
    """The model's shape, from its own checkpoint on any disk, else as published in the recipe."""
    own = (one.checkpoint.shape for one in stored if _is(recipe, one))
    return next((shape for shape in own if isinstance(shape, ModelShape)), recipe.model.shape)


def other_checkpoints(recipe: Recipe, stored: Sequence[Stored]) -> tuple[tuple[Stored, Use], ...]:
    """Complete checkpoints of the same model in another form, smallest first: what `up` can take instead."""
    shape = shape_of(recipe, stored)
    found = [(one, recipe_use(recipe, one, shape)) for one in stored if one.complete]
    could = {one.same: (one, how) for one, how in found if how and how.how is Usability.COULD}
    return tuple(sorted(could.values(), key=lambda pair: pair[0].size))


def stoppable(facts: NodeFacts) -> tuple[GpuProcess, ...]:
    """Processes that hold GPU memory, the largest first; () where our own ranks run: `down` ends those."""
    running = isinstance(facts.ranks, tuple) and any(rank.running and not rank.simulated for rank in facts.ranks)
    if running or not isinstance(facts.gpu_processes, tuple):
        return ()
    sized = [(one.used, one) for one in facts.gpu_processes if isinstance(one.used, int)]
    return tuple(one for _, one in sorted(sized, key=lambda pair: -pair[0]))


def _is(recipe: Recipe, stored: Stored) -> bool:
    """True if the recipe names exactly this; a path is below the node's models folder, from home, or absolute."""
    model = recipe.model
    if model.path:
        path = model.path.rstrip("/")
        tail = path.removeprefix("~") if path.startswith("~") else f"/{path}"
        return not stored.id and (stored.place == path if path.startswith("/") else stored.place.endswith(tail))
    revisions = ("", "main", stored.checkpoint.revision)
    return bool(model.id) and stored.id == model.id and not stored.place and model.revision in revisions


def _kin(shape: ModelShape, other: ModelShape) -> bool:
    """True for one architecture, as far as both name it; GGUF files have names of their own."""
    if "gguf" in (shape.quantization, other.quantization):
        return not _unequal(shape, other)
    return shape.architecture == other.architecture if shape.architecture else not _unequal(shape, other)


def _unequal(shape: ModelShape, other: ModelShape) -> str:
    """The first dimension that differs, as text; what one of the two does not give is no difference."""
    gguf = "gguf" in (shape.quantization, other.quantization)
    for name in _DIMENSIONS if gguf else (*_DIMENSIONS, *_ALSO):
        mine, theirs = getattr(shape, name), getattr(other, name)
        if mine and theirs and mine != theirs:
            return f"{theirs} {_WORDS.get(name, name.replace('_', ' '))}, not {mine}"
    return ""


def _is_gguf(stored: Stored) -> bool:
    return stored.format.startswith("gguf")


def _change(recipe: Recipe, stored: Stored) -> tuple[tuple[str, str], ...]:
    """Keys of the recipe and their values; a file inside the hub cache is named by its path on the node."""
    if not stored.id or stored.place:
        return (("model.path", stored.checkpoint.path),)
    revision = (("model.revision", stored.checkpoint.revision),) if recipe.model.revision else ()
    return (*((("model.id", stored.id),) if stored.id != recipe.model.id else ()), *revision)


def with_published(recipe: Recipe, published: Published | None, draft: ModelShape | None = None) -> Recipe:
    """The recipe with the hub's dimensions and size where it has none of its own, and those of its draft model."""
    if draft:
        recipe = replace(recipe, speculation=replace(recipe.speculation, draft=draft))
    if published is None:
        return recipe
    model = recipe.model
    read = model_config.parse(published.config) if published.config else None
    shape = model.shape or (read if isinstance(read, ModelShape) else None)
    return replace(recipe, model=replace(model, shape=shape, size=model.size or published.weights))
