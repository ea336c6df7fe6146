"""A model that no node has and of which the recipe says too little: what its hub says of it."""

from dataclasses import replace

from sparkwright.app.world import Survey, Wish, World
from sparkwright.domain.checkpoint import Checkpoint, Published
from sparkwright.domain.facts import Unknown
from sparkwright.domain.model import ModelShape
from sparkwright.domain.progress import Notice
from sparkwright.domain.recipe import Recipe
from sparkwright.engines.catalog import simulator
from sparkwright.facts import model_config


async def published(world: World, recipe: Recipe, survey: Survey) -> Published | None:
    """Asked only when nothing else tells; None also without internet, where the plan does with what it has."""
    if world.hub is None or not _needed(world, recipe, survey):
        return None
    found = await world.hub.look(recipe.model.id, recipe.model.revision)
    if isinstance(found, Unknown):
        world.sink.tell(Notice(f"{recipe.model.id}: {found.why} ({found.raw})", warning=True))
        return None
    return found


def _needed(world: World, recipe: Recipe, survey: Survey) -> bool:
    model = recipe.model
    if not model.id or model.path or model.simulated or world.cluster.simulated or simulator(recipe):
        return False
    there = any(isinstance(found, Checkpoint) and found.complete for found in survey.checkpoints.values())
    return not there and (model.shape is None or not model.size)


def completed(wish: Wish, survey: Survey) -> Wish:
    """The wish with what the hub says where the recipe says nothing."""
    told = survey.published
    if told is None:
        return wish
    model = wish.recipe.model
    read = model_config.parse(told.config) if told.config else Unknown("", "no config.json")
    shape = model.shape or (read if isinstance(read, ModelShape) else None)
    return replace(
        wish, recipe=replace(wish.recipe, model=replace(model, shape=shape, size=model.size or told.weights))
    )
