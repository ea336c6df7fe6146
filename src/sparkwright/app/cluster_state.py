"""Everything that a plan is made from, asked of all nodes at once."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from sparkwright.app.gather import Gathered, gather, lost, reached
from sparkwright.app.identity import engines
from sparkwright.app.services import ClusterState, Services
from sparkwright.domain.checkpoint import Checkpoint, Published
from sparkwright.domain.cluster import Node
from sparkwright.domain.command import Command, Completed
from sparkwright.domain.errors import NodeError, RecipeError, Unreachable
from sparkwright.domain.facts import Unknown
from sparkwright.domain.progress import Notice
from sparkwright.domain.recipe import Recipe, Runtime
from sparkwright.engines.catalog import simulator
from sparkwright.facts import checkpoint
from sparkwright.facts.fact import Plain, whole
from sparkwright.facts.ranks import ranks_fact
from sparkwright.remote import staging

_SPARE_SECONDS = 5.0


def nodes_for(services: Services, recipe: Recipe) -> tuple[Node, ...]:
    """The head and as many others as the recipe wants. Raises RecipeError when the cluster has too few."""
    nodes = services.cluster.ordered
    if recipe.nodes > len(nodes):
        raise RecipeError(
            f"{recipe.source or recipe.name}: wants {recipe.nodes} nodes, "
            f"cluster {services.cluster.name} has {len(nodes)} ({', '.join(services.cluster.names)})",
            hint="add nodes to the cluster file, or take a recipe or profile for fewer nodes",
        )
    return nodes[: recipe.nodes]


async def gather_state(services: Services, nodes: Sequence[Node], recipe: Recipe | None) -> ClusterState:
    """Raises Unreachable (the first, naming all) when a node does not answer: a plan needs every node."""
    path = recipe.model.path if recipe else ""
    elsewhere = (path,) if path.startswith(("/", "~")) else ()
    async with asyncio.TaskGroup() as group:
        facts = group.create_task(gather(services.hosts, nodes, services.clock, ranks_fact, elsewhere))
        stocked = group.create_task(stock(services, nodes, recipe))
        there = group.create_task(engines(services, nodes, recipe))
    require_all(facts.result())
    found = replace(stocked.result(), facts=reached(facts.result()), engines=there.result())
    others = [node for node in services.cluster.ordered if node not in nodes]
    if recipe is None:
        return found
    found = await _beyond(services, others, recipe, found) if others else found
    return replace(found, published=await published(services, recipe, found))


async def _beyond(services: Services, others: Sequence[Node], recipe: Recipe, found: ClusterState) -> ClusterState:
    """Adds what the cluster's other nodes have of what none of the recipe's nodes has: it is copied from there."""
    model = recipe.model.simulated or any(_whole(entry) for entry in found.checkpoints.values())
    image = recipe.engine.runtime is not Runtime.DOCKER or bool(found.images)
    more = ClusterState({})
    if not (model and image):
        with suppress(TimeoutError):  # a spare machine may be off
            async with asyncio.timeout(_SPARE_SECONDS):
                more = await stock(services, others, recipe)
    whole = {} if model else {name: entry for name, entry in more.checkpoints.items() if _whole(entry)}
    return replace(
        found,
        checkpoints={**found.checkpoints, **whole},
        images={**({} if image else more.images), **found.images},
    )


def _whole(found: Checkpoint | Unknown) -> bool:
    return isinstance(found, Checkpoint) and found.complete


async def stock(services: Services, nodes: Sequence[Node], recipe: Recipe | None) -> ClusterState:
    """Model and image on the nodes, without facts; nothing of a node that cannot be reached."""
    async with asyncio.TaskGroup() as group:
        tasks = {node.name: group.create_task(_stock(services, node, recipe)) for node in nodes}
    found = {name: task.result() for name, task in tasks.items()}
    return ClusterState(
        facts={},
        checkpoints={name: pair[0] for name, pair in found.items() if pair[0] is not None},
        images={name: pair[1] for name, pair in found.items() if pair[1]},
    )


def require_all(gathered: Gathered) -> None:
    """Raises Unreachable when a node could not be asked; the message names every such node."""
    missing = lost(gathered)
    if not missing:
        return
    first, *others = missing.values()
    also = "".join(f"\n{error.message}" for error in others)
    kind = Unreachable if isinstance(first, Unreachable) else NodeError
    raise kind(first.node, first.message.removeprefix(f"{first.node}: ") + also, first.hint)


Stock = tuple[Checkpoint | Unknown | None, tuple[str, int] | None]


async def _stock(services: Services, node: Node, recipe: Recipe | None) -> Stock:
    """The model and the image on one node; a node that cannot be reached is reported by gather."""
    if recipe is None:
        return None, None
    try:
        found = await services.hosts[node.name].run_all(_questions(node, recipe))
    except NodeError:
        return None, None
    return checkpoint.parse(found[0]), _image(found[1]) if len(found) > 1 else None


def _questions(node: Node, recipe: Recipe) -> list[Command]:
    model = recipe.model
    listing = (
        staging.list_path(model_path(node, recipe))
        if model.path
        else staging.list_hub(node.paths.hub, model.id, model.revision)
    )
    wants_image = recipe.engine.runtime is Runtime.DOCKER and recipe.engine.image
    return [listing, staging.image(recipe.engine.image)] if wants_image else [listing]


def model_path(node: Node, recipe: Recipe) -> str:
    """A recipe's model path on a node: absolute, from home, or below the node's models folder."""
    path = recipe.model.path
    return path if path.startswith(("/", "~")) else f"{node.paths.models}/{path}"


def _image(done: Completed) -> tuple[str, int] | None:
    words = done.stdout.split()
    good = done.ok and len(words) == 2 and Plain.IMAGE_ID.fits(words[0])
    return (words[0], size) if good and (size := whole(words[1])) is not None else None


async def published(services: Services, recipe: Recipe, cluster_state: ClusterState) -> Published | None:
    """Asked only when nothing else is known; None also without internet, where the plan does with what it has."""
    if services.hub is None or not _hub_is_needed(services, recipe, cluster_state):
        return None
    found = await services.hub.look(recipe.model.id, recipe.model.revision)
    if isinstance(found, Unknown):
        services.sink.tell(Notice(f"{recipe.model.id}: {found.why} ({found.raw})", warning=True))
        return None
    return found


def _hub_is_needed(services: Services, recipe: Recipe, cluster_state: ClusterState) -> bool:
    model = recipe.model
    if not model.id or model.path or model.simulated or services.cluster.simulated or simulator(recipe):
        return False
    there = any(isinstance(found, Checkpoint) and found.complete for found in cluster_state.checkpoints.values())
    return not there and (model.shape is None or not model.size)
