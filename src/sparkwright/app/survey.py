"""Everything that a plan is made from, asked of all nodes at once."""

import asyncio
from collections.abc import Sequence

from sparkwright.app.gather import Gathered, gather, lost, reached
from sparkwright.app.world import Survey, World
from sparkwright.commands import docker, staging
from sparkwright.domain.cluster import Node
from sparkwright.domain.command import Command, Completed
from sparkwright.domain.errors import NodeError, RecipeError, Unreachable
from sparkwright.domain.facts import Checkpoint, RankStatus, Unknown
from sparkwright.domain.recipe import Recipe, Runtime
from sparkwright.facts import checkpoint, ranks
from sparkwright.facts.fact import Fact


def nodes_for(world: World, recipe: Recipe) -> tuple[Node, ...]:
    """The head and as many others as the recipe wants. Raises RecipeError when the cluster has too few."""
    nodes = world.cluster.ordered
    if recipe.nodes > len(nodes):
        raise RecipeError(
            f"{recipe.source or recipe.name}: wants {recipe.nodes} nodes, "
            f"cluster {world.cluster.name} has {len(nodes)} ({', '.join(world.cluster.names)})",
            cure="add nodes to the cluster file, or take a recipe or profile for fewer nodes",
        )
    return nodes[: recipe.nodes]


def ranks_fact(node: Node) -> Fact[tuple[RankStatus, ...]]:
    return Fact(ranks.command(node.paths.state), lambda done: ranks.parse(done, node.name))


async def survey(world: World, nodes: Sequence[Node], recipe: Recipe | None) -> Survey:
    """Raises Unreachable (the first, naming all) when a node does not answer: a plan needs every node."""
    async with asyncio.TaskGroup() as group:
        facts = group.create_task(gather(world.hosts, nodes, world.clock, ranks_fact))
        stock = [group.create_task(_stock(world, node, recipe)) for node in nodes]
    require_all(facts.result())
    found = dict(zip((n.name for n in nodes), (t.result() for t in stock), strict=True))
    return Survey(
        facts=reached(facts.result()),
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
    raise kind(first.node, first.message.removeprefix(f"{first.node}: ") + also, first.cure)


Stock = tuple[Checkpoint | Unknown | None, tuple[str, int] | None]


async def _stock(world: World, node: Node, recipe: Recipe | None) -> Stock:
    """The model and the image on one node; a node that cannot be reached is reported by gather."""
    if recipe is None:
        return None, None
    try:
        found = await world.hosts[node.name].run_all(_questions(node, recipe))
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
    return [listing, docker.image_id(recipe.engine.image)] if wants_image else [listing]


def model_path(node: Node, recipe: Recipe) -> str:
    """A recipe's model path on a node: absolute, from home, or below the node's models folder."""
    path = recipe.model.path
    return path if path.startswith(("/", "~")) else f"{node.paths.models}/{path}"


def _image(done: Completed) -> tuple[str, int] | None:
    words = done.stdout.split()
    return (words[0], int(words[1])) if done.ok and len(words) == 2 and words[1].isdigit() else None
