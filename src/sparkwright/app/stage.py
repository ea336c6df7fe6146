"""Weights and image on every node: what one has goes to the others over the fabric, what none has is fetched once."""

import re
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from sparkwright.app.cluster_state import model_path, require_all, stock
from sparkwright.app.gather import gather, reached
from sparkwright.app.services import ClusterState, Services, expand, home_of, resolved_paths, understood
from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.command import Command
from sparkwright.domain.errors import CommandFailed, NodeError
from sparkwright.domain.plan import Plan
from sparkwright.domain.progress import Progress
from sparkwright.domain.recipe import Recipe, Runtime
from sparkwright.domain.units import GIB, gib
from sparkwright.engines.catalog import traits
from sparkwright.facts.service import parse_peer
from sparkwright.images.dockerfile import image_name
from sparkwright.planner.fabric import choose_fabrics
from sparkwright.remote import docker, staging

# Exit codes: of the shell, of rsync, of ssh.
NO_PROGRAM, NO_SPACE, NO_SSH = 127, 11, 255
_SHOWN, _KEPT = 3, 6


@dataclass(frozen=True, slots=True)
class Needs:
    """Nodes that lack something; source: a node that has it, '' when none does."""

    lacking: tuple[str, ...]
    source: str = ""


def model_needs(plan: Plan, cluster_state: ClusterState) -> Needs:
    """Which nodes lack the complete checkpoint, or have another revision of it than the first that has one.

    A simulated model without files needs none.
    """
    nodes = tuple(dict.fromkeys(plan.placement.nodes))[: 1 if traits(plan.recipe).by_layer else None]
    seen = [found for name in nodes if isinstance(found := cluster_state.checkpoints.get(name), Checkpoint)]
    if plan.recipe.model.simulated and not any(found.files > 0 or found.missing for found in seen):
        return Needs(())
    names = (*nodes, *cluster_state.checkpoints)
    complete = {name: found for name in names if (found := _complete(cluster_state, name))}
    source = next(iter(complete), "")
    wanted = complete[source].revision if source else ""
    return Needs(tuple(n for n in nodes if n not in complete or complete[n].revision != wanted), source)


def image_needs(plan: Plan, cluster_state: ClusterState) -> Needs:
    """Which nodes lack the image, or have another one under the same reference than the head's."""
    nodes = tuple(dict.fromkeys(plan.placement.nodes))
    if plan.recipe.engine.runtime is not Runtime.DOCKER:
        return Needs(())
    having = {n: cluster_state.images[n][0] for n in (*nodes, *cluster_state.images) if n in cluster_state.images}
    if not having:
        return Needs(nodes)
    source = plan.head if plan.head in having else next(iter(having))
    return Needs(tuple(n for n in nodes if having.get(n) != having[source]), source)


async def stage_image(services: Services, plan: Plan, cluster_state: ClusterState) -> bool:
    """True when an image was copied to a node (the survey is old then). Raises CommandFailed."""
    needs = image_needs(plan, cluster_state)
    if not needs.lacking:
        return False
    reference, source = plan.recipe.engine.image, needs.source or plan.head
    lacking = [node for node in needs.lacking if node != source]
    if not needs.source:
        await _pull(services, plan, source)
    size = cluster_state.images.get(source, ("", 0))[1]
    for node in lacking:
        command = staging.copy_image(reference, await peer_of(services, plan, source, node))
        code, said = await follow(services, source, command, f"image to {node}", size)
        if code:
            raise _not_copied(source, node, f"image {reference}", code, said)
    # What was copied is inspected again: two ranks of one deployment never run two images
    now = (await stock(services, [services.cluster.node(n) for n in {*needs.lacking, source}], plan.recipe)).images
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
    source = needs.source or plan.head
    lacking = [node for node in needs.lacking if node != source]
    if not needs.source:
        await _fetch(services, plan, cluster_state)
    for node in lacking:
        await _copy_model(services, plan, cluster_state, (source, node))
    if lacking:
        # Nothing depends on it: a node without GNU dd keeps its page cache.
        await services.run(source, staging.drop_cache(_root(services, plan, source, cluster_state)[0]))
    # As for the image: an engine would find a gap only after minutes of loading
    now = await stock(services, [services.cluster.node(n) for n in needs.lacking], plan.recipe)
    for node in needs.lacking:
        if not _complete(now, node):
            what = f"{plan.recipe.model.label} is still not complete after staging: {_lack(now, node)}"
            raise CommandFailed(node, what, "remove the model's folder there and call `up` again")
    return True


async def _pull(services: Services, plan: Plan, node: str) -> None:
    reference = plan.recipe.engine.image
    if _is_built(plan.recipe):
        what = f"image {reference} is on no node, and no registry has it: it is built from the recipe"
        raise CommandFailed(node, what, f"`sparkwright build {plan.recipe.label}`, then call `up` again")
    code, said = await follow(services, node, docker.pull(reference), "docker pull", 0)
    if code:
        hint = f"check the reference and the registry login on {node}, or `docker load` the image there"
        raise CommandFailed(node, f"image {reference} is on no node, and `docker pull` failed: {said}", hint)


def _is_built(recipe: Recipe) -> bool:
    """Its image comes from the recipe itself: no registry has it."""
    return recipe.build is not None and recipe.engine.image == image_name(recipe, recipe.build)


async def _copy_model(services: Services, plan: Plan, cluster_state: ClusterState, way: tuple[str, str]) -> None:
    source, node = way
    root, size = _root(services, plan, source, cluster_state)
    target = root if plan.recipe.model.path.startswith("/") else _target(services, plan, node, cluster_state)
    copy = staging.copy_tree(root, target, await peer_of(services, plan, source, node))
    code, said = await follow(services, source, copy, f"weights to {node}", size)
    if code:
        for name, path in ((source, root), (node, target)):
            with suppress(NodeError):
                await services.run(name, staging.drop_cache(path))
        raise _not_copied(source, node, plan.recipe.model.label, code, said)
    done = await services.run(node, staging.settle(target))
    if not done.ok:
        raise CommandFailed(node, f"{target}: the copy could not be completed: {done.stderr.strip()[:200]}")


def _not_copied(source: str, node: str, what: str, code: int, said: str) -> CommandFailed:
    """The error of a copy that ended with this exit code and these last lines."""
    hints = {
        NO_SSH: f"{source} must be able to log in to {node} over the fabric: load your key into an ssh agent here "
        f"(`ssh-add`), which is used for the copy only, or give {source} a key of its own (`ssh-copy-id` there)",
        NO_PROGRAM: f"install rsync on {source} and {node}",
        NO_SPACE: f"make room on {node} (`df -h`) and call `up` again: it goes on where it stopped",
    }
    hint = hints.get(code, "call `up` again: weights go on where they stopped")
    return CommandFailed(node, f"{what} could not be copied there from {source} (exit {code}): {said}", hint)


def _root(services: Services, plan: Plan, source: str, cluster_state: ClusterState) -> tuple[str, int]:
    """What to copy from a node that has the model, absolute, and its bytes (0: not known)."""
    found = _complete(cluster_state, source)
    if found and found.root:
        return found.root, found.bytes
    return _target(services, plan, source, cluster_state), plan.recipe.model.size


def _target(services: Services, plan: Plan, node: str, cluster_state: ClusterState) -> str:
    """Where the model's folder is (to be) on a node, absolute."""
    where, model = services.cluster.node(node), plan.recipe.model
    if model.path:
        return expand(model_path(where, plan.recipe), home_of(cluster_state.facts[node]))
    return f"{resolved_paths(where, cluster_state.facts[node]).hub}/models--{model.id.replace('/', '--')}"


async def _fetch(services: Services, plan: Plan, cluster_state: ClusterState) -> None:
    """From the hub to the head. A model that is given by its path has no other source than the nodes."""
    model, node = plan.recipe.model, services.cluster.node(plan.head)
    if model.path or not model.id:
        what = "; ".join(f"{name}: {_lack(cluster_state, name)}" for name in cluster_state.checkpoints)
        hint = "copy the missing files to one node; the others get them from there"
        raise CommandFailed(node.name, f"{model.label} is complete on no node ({what})", hint)
    token = services.secrets.get("HF_TOKEN")
    command = staging.download(node.paths.hub, model.id, model.revision, token.reveal() if token else "")
    services.notice(f"{model.id}: whole on no node; {node.name} fetches it from the hub")
    code, said = await follow(services, node.name, command, f"download {model.id}", model.size)
    where = f"{model.id} is complete on no node (here: {_lack(cluster_state, plan.head)})"
    if code == NO_PROGRAM:
        hint = "install the hub's client there (`pipx install huggingface_hub` or `uv tool install huggingface_hub`)"
        raise CommandFailed(node.name, f"{where}, and there is no `hf` to fetch it with", hint)
    if code:
        hint = f"check the name, the licence and the token (HF_TOKEN); by hand: hf download {model.id}"
        plain = _BETWEEN.join(line for line in said.split(_BETWEEN) if not line.startswith("Hint:"))
        raise CommandFailed(node.name, f"{where}, and `hf download` failed: {plain}", hint)
    done = await services.run(node.name, staging.settle(_target(services, plan, node.name, cluster_state)))
    if not done.ok:
        raise CommandFailed(node.name, f"{model.id}: the download could not be completed: {done.stderr.strip()[:200]}")


def staging_text(plan: Plan, cluster_state: ClusterState) -> tuple[str, ...]:
    """What `plan` prints about staging, one sentence each."""
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


def _lack(cluster_state: ClusterState, node: str) -> str:
    """What a node lacks of the model, as text."""
    found = cluster_state.checkpoints.get(node)
    if not isinstance(found, Checkpoint):
        return f"it could not be read{f': {found.raw or found.why}' if found is not None else ''}"
    more = f" and {len(found.missing) - _SHOWN} more" if len(found.missing) > _SHOWN else ""
    return ", ".join(found.missing[:_SHOWN]) + more or ("nothing of it is there" if not found.files else "complete")


# A program that fails in the middle of a state of its progress reports it on the same line.
_PERCENT = re.compile(
    r"\s*(?P<done>[\d,]+)\s+(?P<percent>\d{1,3})%\s+(?P<speed>\S+/s)\s+\d+:\d\d:\d\d"
    r"(?:\s+\(xfr#\d+, \w+-chk=\d+/\d+\))?(?P<more>.*)"
)
_BYTES = re.compile(r"(?P<done>\d+) bytes(?: \([^)]*\) copied, \S+ s, \S+ \w+/s)?(?P<more>.*)")
_END, _BETWEEN = "\x1eend ", " / "


async def follow(services: Services, node: str, command: Command, what: str, size: int) -> tuple[int, str]:
    """Runs a long command and reports its progress; its exit code and its last lines that are no progress.

    size: bytes in all, 0 when not known.
    """
    said = deque[str](maxlen=_KEPT)

    def look(line: str) -> None:
        if progress := _PERCENT.match(line) or _BYTES.match(line):
            services.sink.report(_progress(node, what, progress, size))
        if words := (progress["more"] if progress else line).strip():
            said.append(words[:300])

    return await watched(services, node, command, look), _BETWEEN.join(said)


async def watched(services: Services, node: str, command: Command, look: Callable[[str], None]) -> int:
    """Runs a long command, shows `look` each of its lines as it comes; its exit code, 1 when it was cut off."""
    wrapped, code = ("sh", "-c", '"$@"; printf "\\036end %s\\n" $?', "sh", *command.argv), 1
    async for line in services.hosts[node].stream(replace(command, argv=wrapped)):
        if line.startswith(_END):
            code = int(line.removeprefix(_END))
        else:
            look(line)
    return code


def _progress(node: str, what: str, match: re.Match[str], size: int) -> Progress:
    total, done = (size / GIB if size else None), int(match["done"].replace(",", "")) / GIB
    found = match.groupdict()
    if "percent" not in found:
        return Progress("stage", node, done, total, "GiB", what)
    if not total or done > total:
        total = done * 100 / percent if (percent := int(found["percent"])) else None
    return Progress("stage", node, done, total, "GiB", f"{what} at {found['speed']}")


def other_image(node: str, name: str, found: str, wanted: str) -> CommandFailed:
    """The error of an image that came to a node as another than it was; expected: which one, and where that is."""
    hint = "the two Docker daemons store images differently (`docker info`: Storage Driver): make them alike"
    return CommandFailed(node, f"image {name} is {found} there and {wanted}", hint)


async def peer_of(services: Services, plan: Plan | None, source: str, node: str) -> staging.Peer:
    """The way from source to node, as the node itself reports it over the connection that is already trusted.

    Raises CommandFailed when it does not answer, or when the two share no fabric.
    """
    reach = understood(node, "how to log in there", parse_peer(await services.run(node, staging.peer())))
    address, port = await _address(services, plan, source, node), reach.port
    local = services.cluster.node(source).is_local and services.cluster.node(node).is_local
    return staging.Peer(reach.user, address, port, staging.known_hosts(address, port, reach.keys), local)


async def _address(services: Services, plan: Plan | None, source: str, node: str) -> str:
    """The node's fabric address; without a plan, or of one that does without the source, the one that the two share."""
    if plan and source in plan.placement.nodes:
        return plan.placement.fabric[node].address
    pair = [services.cluster.node(name) for name in (node, source)]
    gathered = await gather(services.hosts, pair, services.clock)
    require_all(gathered)
    decision = choose_fabrics(pair, reached(gathered))[node]
    if decision.choice is None:
        why = "; ".join(finding.title for finding in decision.findings)
        raise CommandFailed(node, f"no fabric between {source} and {node}: {why}", "see `sparkwright check`")
    return decision.choice.address
