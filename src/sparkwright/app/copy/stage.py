"""Weights and image on every node: what one has goes to the others over the fabric, what none has is fetched once."""

from sparkwright.app.cluster_state import UNASKED, gather_stock, model_path
from sparkwright.app.copy.download import fetch, missing_files
from sparkwright.app.copy.transfer import Copied, CopyStop, copy_chain, follow, manners, not_copied, peer_of
from sparkwright.app.services import ClusterState, Services
from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.errors import CommandFailed
from sparkwright.domain.homes import expand_home, home_of, resolved_paths
from sparkwright.domain.plan import Plan
from sparkwright.domain.recipe import Recipe, Runtime
from sparkwright.domain.units import gib
from sparkwright.domain.unknown import Unknown
from sparkwright.domain.values import dataclass
from sparkwright.engines.catalog import traits
from sparkwright.recipes.dockerfile import image_name
from sparkwright.remote import docker, staging


@dataclass(frozen=True, slots=True)
class CopyNeeds:
    """Nodes that lack something; source: a node that has it, '' when none does."""

    lacking: tuple[str, ...]
    source: str = ""


def model_needs(plan: Plan, cluster_state: ClusterState) -> CopyNeeds:
    """The nodes that lack the complete checkpoint, or have another revision of it than the first that has one.

    A simulated model without files needs none.
    """
    nodes = tuple(dict.fromkeys(plan.placement.nodes))[: 1 if traits(plan.recipe).by_layer else None]
    seen = [found for name in nodes if isinstance(found := cluster_state.checkpoints.get(name), Checkpoint)]
    if plan.recipe.model.simulated and not any(found.files > 0 or found.missing for found in seen):
        return CopyNeeds(())
    names = (*nodes, *cluster_state.checkpoints)
    complete = {name: found for name in names if (found := _complete(cluster_state, name))}
    source = next(iter(complete), "")
    wanted = complete[source].revision if source else ""
    return CopyNeeds(tuple(n for n in nodes if n not in complete or complete[n].revision != wanted), source)


def image_needs(plan: Plan, cluster_state: ClusterState) -> CopyNeeds:
    """The nodes that lack the image, or whose image of that reference differs from the head's."""
    nodes = tuple(dict.fromkeys(plan.placement.nodes))
    if plan.recipe.engine.runtime is not Runtime.DOCKER:
        return CopyNeeds(())
    having = {n: cluster_state.images[n][0] for n in (*nodes, *cluster_state.images) if n in cluster_state.images}
    if not having:
        return CopyNeeds(nodes)
    source = plan.head if plan.head in having else next(iter(having))
    return CopyNeeds(tuple(n for n in nodes if having.get(n) != having[source]), source)


async def stage_image(services: Services, plan: Plan, cluster_state: ClusterState) -> bool:
    """True when an image was copied to a node (the survey is old then). Raises CommandFailed."""
    needs = image_needs(plan, cluster_state)
    if not needs.lacking:
        return False
    _require_answers(cluster_state, needs)
    reference, source = plan.recipe.engine.image, needs.source or plan.head
    lacking = [node for node in needs.lacking if node != source]
    if not needs.source:
        await _pull(services, plan, source)
    size = cluster_state.images.get(source, ("", 0))[1]
    for node in lacking:
        command = staging.copy_image(reference, await peer_of(services, plan, source, node))
        code, said = await follow(services, source, command, f"image to {node}", size)
        if code:
            raise not_copied(source, node, f"image {reference}", code, said)
    # What was copied is inspected again: two ranks of one deployment never run two images
    now = (
        await gather_stock(services, [services.cluster.node(n) for n in {*needs.lacking, source}], plan.recipe)
    ).images
    for node in needs.lacking:
        if node not in now:
            raise CommandFailed(node, f"image {reference} is still not there after staging")
        if source in now and now[node][0] != now[source][0]:
            raise other_image(node, reference, now[node][0], f"{now[source][0]} on {source}")
    return True


async def stage_model(services: Services, plan: Plan, cluster_state: ClusterState) -> bool:
    """The same for the weights."""
    needs = model_needs(plan, cluster_state)
    if not needs.lacking:
        return False
    _require_answers(cluster_state, needs)
    source = needs.source or plan.head
    root, size = _root(services, plan, source, cluster_state)
    whole = root if plan.recipe.model.path.startswith("/") else ""
    lacking = [CopyStop(n, whole or _target(services, plan, n, cluster_state)) for n in needs.lacking if n != source]
    stops = [CopyStop(source, root), *lacking]
    what = Copied(plan.recipe.model.label, size, await manners(services, [stop.node for stop in stops]))
    if not needs.source:
        await fetch(services, plan, cluster_state, stops, what)
    if lacking:
        await copy_chain(services, plan, what, stops)
    # As for the image: an engine would find a gap only after minutes of loading
    now = await gather_stock(services, [services.cluster.node(n) for n in needs.lacking], plan.recipe)
    for node in needs.lacking:
        if not _complete(now, node):
            lacks = f"{plan.recipe.model.label} is still not complete after staging: {missing_files(now, node)}"
            raise CommandFailed(node, lacks, "remove the model's folder there and call `up` again")
    return True


def _require_answers(cluster_state: ClusterState, needs: CopyNeeds) -> None:
    """Raises CommandFailed for a node that was not asked: what it has already would be fetched again."""
    for node in needs.lacking:
        found = cluster_state.checkpoints.get(node)
        if isinstance(found, Unknown) and found.why == UNASKED:
            what = f"whether it has model and image is not known, and nothing is copied or fetched: {found.raw}"
            raise CommandFailed(
                node, what, "give the same command again; `sparkwright check` shows what answers slowly"
            )


async def _pull(services: Services, plan: Plan, node: str) -> None:
    reference = plan.recipe.engine.image
    if _is_built(plan.recipe):
        what = f"image {reference} is on no node, and no registry has it: it is built from the recipe"
        raise CommandFailed(node, what, f"`sparkwright build {plan.recipe.label}`, then call `up` again")
    code, said = await follow(services, node, docker.pull_image(reference), "docker pull", 0)
    if code:
        hint = f"check the reference and the registry login on {node}, or `docker load` the image there"
        raise CommandFailed(node, f"image {reference} is on no node, and `docker pull` failed: {said}", hint)


def _is_built(recipe: Recipe) -> bool:
    """Its image comes from the recipe itself: no registry has it."""
    return recipe.build is not None and recipe.engine.image == image_name(recipe, recipe.build)


def _root(services: Services, plan: Plan, source: str, cluster_state: ClusterState) -> tuple[str, int]:
    """The path to copy from a node that has the model, absolute, and its bytes (0: unknown)."""
    found = _complete(cluster_state, source)
    if found and found.root:
        return found.root, found.bytes
    return _target(services, plan, source, cluster_state), plan.recipe.model.size


def _target(services: Services, plan: Plan, node: str, cluster_state: ClusterState) -> str:
    """The present or future path of the model's folder on a node, absolute."""
    where, model = services.cluster.node(node), plan.recipe.model
    if model.path:
        return expand_home(model_path(where, plan.recipe), home_of(cluster_state.facts[node]))
    return f"{resolved_paths(where, cluster_state.facts[node]).hub}/models--{model.id.replace('/', '--')}"


def staging_text(plan: Plan, cluster_state: ClusterState) -> tuple[str, ...]:
    """The sentences of `plan` about staging."""
    told = []
    for what, needs in (("image", image_needs(plan, cluster_state)), ("weights", model_needs(plan, cluster_state))):
        if needs.lacking and needs.source:
            told.append(f"{what}: copied from {needs.source} to {', '.join(needs.lacking)} over the fabric")
        elif needs.lacking and (what == "image" or not plan.recipe.model.path):
            size = f" ({gib(plan.recipe.model.size)})" if what == "weights" and plan.recipe.model.size else ""
            built = what == "image" and _is_built(plan.recipe)
            how = f"`sparkwright build {plan.recipe.label}` makes it"
            told.append(f"{what}{size}: on no node; {how if built else f'fetched once on {plan.head}, then copied'}")
    return tuple(told)


def _complete(cluster_state: ClusterState, node: str) -> Checkpoint | None:
    found = cluster_state.checkpoints.get(node)
    return found if isinstance(found, Checkpoint) and found.complete else None


def other_image(node: str, name: str, found: str, wanted: str) -> CommandFailed:
    """The error of an image that came to a node as another than it was; expected: which one, and where that is."""
    hint = "the two Docker daemons store images differently (`docker info`: Storage Driver): make them alike"
    return CommandFailed(node, f"image {name} is {found} there and {wanted}", hint)
