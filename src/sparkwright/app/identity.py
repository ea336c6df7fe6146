"""Which engine is really there: what is known of it for a plan, and a look into the image before ranks start."""

from collections.abc import Sequence
from dataclasses import replace

from sparkwright.app.services import ClusterState, Services
from sparkwright.app.tasks import together
from sparkwright.domain.cluster import Node
from sparkwright.domain.command import Command
from sparkwright.domain.errors import NodeError
from sparkwright.domain.facts import EngineFound, Unknown
from sparkwright.domain.recipe import Recipe, Runtime
from sparkwright.engines.catalog import simulator, traits
from sparkwright.engines.identity import question
from sparkwright.facts import engine_image
from sparkwright.facts.engine_image import parse_found

Engines = dict[str, EngineFound | Unknown]


def engine_question(services: Services, node: Node, recipe: Recipe, look: bool) -> Command | None:
    """How to ask a node; None where there is nothing to ask: a simulated cluster is this machine.

    look: run the image when nothing is known of it yet.
    """
    asked, engine = question(recipe, services.python_on(node)), recipe.engine
    if asked is None or services.cluster.simulated or (recipe.model.simulated and not simulator(recipe)):
        return None
    if engine.runtime is not Runtime.DOCKER:
        # A worker of llama.cpp runs rpc-server, which names what it lacks itself.
        lends = traits(recipe).by_layer and node.name != services.cluster.head
        return None if lends else engine_image.engine_of_node(asked)
    if look:
        # Only a program that tells its version itself loads the driver's libraries.
        return engine_image.engine_of_image(engine.image, asked, node.paths.cache, gpu=asked.says_version)
    return engine_image.known_engine(engine.image, asked, node.paths.cache) if engine.image else None


async def engines(services: Services, nodes: Sequence[Node], recipe: Recipe | None, look: bool = False) -> Engines:
    """Node -> the engine that is there, all nodes at once; nothing of nodes of which nothing is known."""
    asked = {node.name: engine_question(services, node, recipe, look) for node in nodes} if recipe else {}
    commands = {name: command for name, command in asked.items() if command}
    if not commands:
        return {}
    seen = await together(_one(services, name, command, look) for name, command in commands.items())
    return {name: one for name, one in zip(commands, seen, strict=True) if one is not None}


async def looked_at(services: Services, recipe: Recipe, nodes: Sequence[str], found: ClusterState) -> ClusterState:
    """The survey with the engine of each of these nodes in it; the same one when there was nothing left to ask."""
    missing = [services.cluster.node(name) for name in dict.fromkeys(nodes) if name not in found.engines]
    more = await engines(services, missing, recipe, look=True)
    return replace(found, engines={**found.engines, **more}) if more else found


async def _one(services: Services, node: str, command: Command, look: bool) -> EngineFound | Unknown | None:
    try:
        return parse_found(await services.hosts[node].run(command))
    except NodeError as error:
        # Before a plan that is said by whoever gathers the node's facts.
        return Unknown(error.message, "the node could not be asked") if look else None
