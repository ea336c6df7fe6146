"""A model that no node has and of which the recipe has too little: what its hub has of it."""

from dataclasses import replace

from sparkwright.app.services import ClusterState, LaunchRequest, Services
from sparkwright.domain.checkpoint import Checkpoint, Published
from sparkwright.domain.facts import Unknown
from sparkwright.domain.model import ModelShape
from sparkwright.domain.progress import Notice
from sparkwright.domain.recipe import Recipe
from sparkwright.engines.catalog import simulator
from sparkwright.facts import model_config


async def published(services: Services, recipe: Recipe, cluster_state: ClusterState) -> Published | None:
    """Asked only when nothing else is known; None also without internet, where the plan does with what it has."""
    if services.hub is None or not _needed(services, recipe, cluster_state):
        return None
    found = await services.hub.look(recipe.model.id, recipe.model.revision)
    if isinstance(found, Unknown):
        services.sink.tell(Notice(f"{recipe.model.id}: {found.why} ({found.raw})", warning=True))
        return None
    return found


def _needed(services: Services, recipe: Recipe, cluster_state: ClusterState) -> bool:
    model = recipe.model
    if not model.id or model.path or model.simulated or services.cluster.simulated or simulator(recipe):
        return False
    there = any(isinstance(found, Checkpoint) and found.complete for found in cluster_state.checkpoints.values())
    return not there and (model.shape is None or not model.size)


def completed(request: LaunchRequest, cluster_state: ClusterState) -> LaunchRequest:
    """The request with what the hub has where the recipe has nothing."""
    told = cluster_state.published
    if told is None:
        return request
    model = request.recipe.model
    read = model_config.parse(told.config) if told.config else Unknown("", "no config.json")
    shape = model.shape or (read if isinstance(read, ModelShape) else None)
    return replace(
        request, recipe=replace(request.recipe, model=replace(model, shape=shape, size=model.size or told.weights))
    )
