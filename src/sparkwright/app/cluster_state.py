"""Everything that a plan is made from, asked of all nodes at once: facts, engines, checkpoints, images."""

import asyncio
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress

from sparkwright.app.gather import Gathered, gather, reached, unanswered_nodes
from sparkwright.app.ranks import keepers_on
from sparkwright.app.services import ClusterState, Services, by_node, together
from sparkwright.domain.checkpoint import Checkpoint, Published, Stored
from sparkwright.domain.cluster import Node
from sparkwright.domain.command import Command, Completed
from sparkwright.domain.errors import NodeError, RecipeError, Unreachable
from sparkwright.domain.facts import EngineFound, Unknown
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe, Runtime
from sparkwright.domain.values import dataclass, field, replace
from sparkwright.engines.catalog import simulator, traits
from sparkwright.engines.disk_cache import disk_of_cache
from sparkwright.engines.identity import question
from sparkwright.engines.weight_cache import keeps_weights
from sparkwright.facts import checkpoint, engine_image
from sparkwright.facts import inventory as disks
from sparkwright.facts.engine_image import parse_found
from sparkwright.facts.fact import Fact, Plain, whole_number
from sparkwright.facts.ranks import ranks_fact
from sparkwright.remote import staging

HUB_ID = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*", re.ASCII)
Engines = dict[str, EngineFound | Unknown]


def engine_question(services: Services, node: Node, recipe: Recipe, look: bool) -> Command | None:
    """The command that asks a node for its engine; None if there is nothing to ask: a simulated cluster is this
    machine.

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
    seen = await by_node(tuple(commands), lambda name: _engine_of(services, name, commands[name], look))
    return {name: one for name, one in seen.items() if one is not None}


async def looked_at(services: Services, recipe: Recipe, nodes: Sequence[str], found: ClusterState) -> ClusterState:
    """The survey with the engine of each of these nodes in it; the same one when there was nothing left to ask."""
    missing = [services.cluster.node(name) for name in dict.fromkeys(nodes) if name not in found.engines]
    more = await engines(services, missing, recipe, look=True)
    return replace(found, engines={**found.engines, **more}) if more else found


async def _engine_of(services: Services, node: str, command: Command, look: bool) -> EngineFound | Unknown | None:
    try:
        return parse_found(await services.run(node, command))
    except NodeError as error:
        # Before a plan the node's facts are asked for, too, and its error is reported there.
        return Unknown(error.message, "the node could not be asked") if look else None


@dataclass(frozen=True, slots=True)
class Inventory:
    """stored: node by node. lost: nodes that could not be asked or understood, and why."""

    stored: tuple[Stored, ...]
    lost: dict[str, str] = field(default_factory=dict)

    def lacking(self, one: Stored, nodes: Sequence[str]) -> tuple[str, ...]:
        """Nodes that answered and have no complete copy of it."""
        have = {s.node for s in self.stored if s.complete and s.same == one.same}
        return tuple(node for node in nodes if node not in have and node not in self.lost)


async def inventory(services: Services, nodes: Sequence[Node], recipes: Iterable[Recipe]) -> Inventory:
    """recipes: their model paths show where else models may lie. Changes nothing."""
    # The parents of models that recipes look for at absolute paths or below home
    paths = (recipe.model.path.rstrip("/") for recipe in recipes)
    folders = tuple(dict.fromkeys(path.rpartition("/")[0] or "/" for path in paths if path.startswith(("/", "~/"))))
    found = await by_node([node.name for node in nodes], lambda name: _stored_on(services, name, folders))
    lost = {name: answer for name, answer in found.items() if isinstance(answer, str)}
    return Inventory(tuple(s for a in found.values() if not isinstance(a, str) for s in a), lost)


async def _stored_on(services: Services, node: str, folders: Sequence[str]) -> tuple[Stored, ...] | str:
    paths = services.cluster.node(node).paths
    asked = disks.inventory(paths.hub, paths.models, folders)
    try:
        found = await services.read(node, Fact(asked, lambda done: disks.parse(done, node)))
    except NodeError as error:
        return error.message
    return f"{node}: {found.why} {found.raw}".rstrip() if isinstance(found, Unknown) else found


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
    elsewhere: tuple[str, ...] = (path,) if path.startswith(("/", "~")) else ()
    cache = disk_of_cache(recipe) if recipe else None
    elsewhere += (cache.folder,) if cache else ()
    async with asyncio.TaskGroup() as group:
        facts = group.create_task(gather(services.hosts, nodes, services.clock, ranks_fact, elsewhere))
        stocked = group.create_task(gather_stock(services, nodes, recipe))
        there = group.create_task(engines(services, nodes, recipe))
        draft = group.create_task(_draft(services, nodes[0], recipe))
    require_all(facts.result())
    found = replace(stocked.result(), facts=reached(facts.result()), engines=there.result(), draft=draft.result())
    found = replace(found, flags=services.flags.load()) if services.flags else found
    found = await _with_keepers(services, recipe, found) if recipe and keeps_weights(recipe) else found
    others = [node for node in services.cluster.ordered if node not in nodes]
    if recipe is None:
        return found
    found = await _beyond(services, others, recipe, found) if others else found
    return replace(found, published=await published(services, recipe, found))


async def _with_keepers(services: Services, recipe: Recipe, found: ClusterState) -> ClusterState:
    """Adds whose weights are kept on the nodes: a relaunch finds them in memory, and they count once."""
    kept = await keepers_on(services, list(found.facts))
    names = {node: tuple(one.deployment for one in kept if one.node == node and one.running) for node in found.facts}
    return replace(found, facts={node: replace(facts, keepers=names[node]) for node, facts in found.facts.items()})


async def _beyond(services: Services, others: Sequence[Node], recipe: Recipe, found: ClusterState) -> ClusterState:
    """Adds what the cluster's other nodes have of what none of the recipe's nodes has: it is copied from there."""
    model = recipe.model.simulated or any(_whole(entry) for entry in found.checkpoints.values())
    image = recipe.engine.runtime is not Runtime.DOCKER or bool(found.images)
    more = ClusterState({})
    if not (model and image):
        with suppress(TimeoutError):  # a spare machine may be off
            async with asyncio.timeout(_SPARE_SECONDS):
                more = await gather_stock(services, others, recipe)
    whole = {} if model else {name: entry for name, entry in more.checkpoints.items() if _whole(entry)}
    images = {**({} if image else more.images), **found.images}
    return replace(found, checkpoints={**found.checkpoints, **whole}, images=images)


def _whole(found: Checkpoint | Unknown) -> bool:
    return isinstance(found, Checkpoint) and found.complete


async def gather_stock(services: Services, nodes: Sequence[Node], recipe: Recipe | None) -> ClusterState:
    """Model and image on the nodes, without facts."""
    if recipe is None:
        return ClusterState({})
    found = await together(_stock(services, node, recipe) for node in nodes)
    named = list(zip((node.name for node in nodes), found, strict=True))
    checkpoints = {name: model for name, (model, _, _) in named}
    images = {name: image for name, (_, image, _) in named if image}
    return ClusterState({}, checkpoints, images, digests={name: digest for name, (*_, digest) in named if digest})


def require_all(gathered: Gathered) -> None:
    """Raises Unreachable when a node could not be asked; the message names every such node."""
    missing = unanswered_nodes(gathered)
    if not missing:
        return
    first, *others = missing.values()
    also = "".join(f"\n{error.message}" for error in others)
    kind = Unreachable if isinstance(first, Unreachable) else NodeError
    raise kind(first.node, first.message.removeprefix(f"{first.node}: ") + also, first.hint)


UNASKED = "the node could not be asked for it"
Stock = tuple[Checkpoint | Unknown, tuple[str, int] | None, str]


async def _stock(services: Services, node: Node, recipe: Recipe) -> Stock:
    """The model and the image on one node. A node that gives no answer has neither for all that is known: its model is
    Unknown with UNASKED."""
    model = recipe.model
    if model.path:
        asked = [staging.list_path(model_path(node, recipe))]
    else:
        asked = [staging.list_hub(node.paths.hub, model.id, model.revision)]
    if recipe.engine.runtime is Runtime.DOCKER and recipe.engine.image:
        asked.append(staging.inspect_image(recipe.engine.image))
    try:
        listing, *image = await services.hosts[node.name].run_all(asked)
    except NodeError as error:
        return Unknown(error.message.removeprefix(f"{node.name}: "), UNASKED), None, ""
    digest = digest_of(image[0], recipe.engine.image) if image else ""
    return checkpoint.parse(listing), image_of(image[0]) if image else None, digest


async def _draft(services: Services, node: Node, recipe: Recipe | None) -> ModelShape | None:
    """Dimensions of the recipe's draft model of its own, where the node has its configuration."""
    name = str(recipe.speculation.options.get("model") or "") if recipe else ""
    if not name.startswith(("/", "~")) and not HUB_ID.fullmatch(name):
        return None
    here = staging.list_path(name) if name.startswith(("/", "~")) else staging.list_hub(node.paths.hub, name, "")
    try:
        found = checkpoint.parse(await services.hosts[node.name].run(here))
    except NodeError:
        return None
    return found.shape if isinstance(found, Checkpoint) and isinstance(found.shape, ModelShape) else None


def model_path(node: Node, recipe: Recipe) -> str:
    """A recipe's model path on a node: absolute, from home, or below the node's models folder."""
    path = recipe.model.path
    return path if path.startswith(("/", "~")) else f"{node.paths.models}/{path}"


def image_of(done: Completed) -> tuple[str, int] | None:
    """(id, bytes), as `staging.inspect_image` prints them."""
    words = done.stdout.split()
    good = done.ok and len(words) >= 2 and Plain.IMAGE_ID.fits(words[0])
    return (words[0], size) if good and (size := whole_number(words[1])) is not None else None


def digest_of(done: Completed, reference: str) -> str:
    """`NAME@sha256:...` by which the image can be pulled again, of the reference's own repository if it is there; ''
    for one that was built or copied here."""
    found = [word for word in done.stdout.split()[2:] if "@sha256:" in word and Plain.IMAGE.fits(word)]
    last = reference.rpartition("/")[2]
    name = reference.removesuffix(last) + last.partition("@")[0].partition(":")[0]
    own = (word for word in found if word.partition("@")[0].endswith(name))
    return next(own, next(iter(found), ""))


async def published(services: Services, recipe: Recipe, cluster_state: ClusterState) -> Published | None:
    """Asked only when nothing else is known; None also without internet, where the plan does with what it has."""
    if services.hub is None or not _hub_is_needed(services, recipe, cluster_state):
        return None
    found = await services.hub(recipe.model.id, recipe.model.revision)
    if isinstance(found, Unknown):
        services.notice(f"{recipe.model.id}: {found.why} ({found.raw})", warning=True)
        return None
    return found


def _hub_is_needed(services: Services, recipe: Recipe, cluster_state: ClusterState) -> bool:
    model = recipe.model
    if not model.id or model.path or model.simulated or services.cluster.simulated or simulator(recipe):
        return False
    there = any(map(_whole, cluster_state.checkpoints.values()))
    return not there and (model.shape is None or not model.size)
