"""Weights and image on every node: what one has goes to the others over the fabric, what none has is fetched once."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

from sparkwright.app.survey import model_path
from sparkwright.app.world import Survey, World, expand, home_of, resolved_paths
from sparkwright.commands import docker, staging
from sparkwright.domain.cluster import Node
from sparkwright.domain.command import Command
from sparkwright.domain.errors import CommandFailed
from sparkwright.domain.facts import Checkpoint
from sparkwright.domain.plan import Plan
from sparkwright.domain.recipe import Recipe, Runtime
from sparkwright.domain.units import GIB, gib
from sparkwright.ports import Progress

_PERCENT = re.compile(r"([\d,]+)\s+(\d{1,3})%\s+(\S+/s)(?:\s+(\S+))?")
_BYTES = re.compile(r"^(\d+) bytes")
_END = "\x1eend "
NO_CLIENT = 127


@dataclass(frozen=True, slots=True)
class Needs:
    """Nodes that lack something; source: a node that has it, '' when none does."""

    lacking: tuple[str, ...]
    source: str = ""


def model_needs(plan: Plan, survey: Survey) -> Needs:
    """Which nodes lack the complete checkpoint. A simulated model without files needs none."""
    complete = [name for name in plan.placement.nodes if _complete(survey, name)]
    lacking = tuple(dict.fromkeys(name for name in plan.placement.nodes if name not in complete))
    if plan.recipe.model.simulated and not any(_present(survey, name) for name in plan.placement.nodes):
        return Needs(())
    return Needs(lacking, complete[0] if complete else "")


def image_needs(plan: Plan, survey: Survey) -> Needs:
    """Which nodes lack the image, or have another one under the same reference than the head's."""
    if plan.recipe.engine.runtime is not Runtime.DOCKER:
        return Needs(())
    having = {n: survey.images[n][0] for n in plan.placement.nodes if n in survey.images}
    if not having:
        return Needs(plan.placement.nodes)
    source = plan.head if plan.head in having else next(iter(having))
    return Needs(tuple(n for n in plan.placement.nodes if having.get(n) != having[source]), source)


async def stage(world: World, plan: Plan, survey: Survey) -> bool:
    """True when something was brought to a node (the survey is old then). Raises CommandFailed."""
    image, model = image_needs(plan, survey), model_needs(plan, survey)
    await _stage_image(world, plan, image, survey)
    await _stage_model(world, plan, model, survey)
    return bool(image.lacking or model.lacking)


async def _stage_image(world: World, plan: Plan, needs: Needs, survey: Survey) -> None:
    if not needs.lacking:
        return
    reference, source, lacking = plan.recipe.engine.image, needs.source, needs.lacking
    if not source:
        source, lacking = plan.head, needs.lacking[1:]
        await _pull(world, source, reference)
    size = survey.images.get(source, ("", 0))[1]
    for node in lacking:
        peer = await _peer(world, plan, node)
        command = staging.copy_image(reference, peer)
        await _long(world, source, command, f"image to {node}", size)


async def _pull(world: World, node: str, reference: str) -> None:
    code, last = await _follow(world, node, docker.pull(reference), "docker pull", 0)
    if code:
        raise CommandFailed(
            node,
            f"image {reference} is on no node, and `docker pull` failed: {last}",
            f"check the reference and the registry login on {node}, or `docker load` the image there",
        )


async def _stage_model(world: World, plan: Plan, needs: Needs, survey: Survey) -> None:
    if not needs.lacking:
        return
    source, lacking = needs.source, needs.lacking
    if not source:
        source, lacking = plan.head, tuple(n for n in needs.lacking if n != plan.head)
        await _download(world, world.cluster.node(source), plan.recipe)
    root, size = await _root(world, plan, source, survey)
    for node in lacking:
        target = root if plan.recipe.model.path.startswith("/") else _target(world, plan, node, survey)
        await _long(world, source, staging.copy_tree(root, target, await _peer(world, plan, node)), f"to {node}", size)


async def _root(world: World, plan: Plan, source: str, survey: Survey) -> tuple[str, int]:
    found = survey.checkpoints.get(source)
    if isinstance(found, Checkpoint) and found.root and found.complete:
        return found.root, found.bytes
    return _target(world, plan, source, survey), plan.recipe.model.size


def _target(world: World, plan: Plan, node: str, survey: Survey) -> str:
    """Where the model's folder is (to be) on a node, absolute."""
    where, model = world.cluster.node(node), plan.recipe.model
    if model.path:
        return expand(model_path(where, plan.recipe), home_of(survey.facts[node]))
    hub = resolved_paths(where, survey.facts[node]).hub
    return f"{hub}/models--{model.id.replace('/', '--')}"


async def _download(world: World, node: Node, recipe: Recipe) -> None:
    model, token_file = recipe.model, f"{node.paths.state}/hub-token"
    if token := world.secrets.get("HF_TOKEN"):
        await world.hosts[node.name].put(token.reveal().encode(), token_file, 0o600)
    command = staging.download(node.paths.hub, model.id, model.revision, token_file)
    code, last = await _follow(world, node.name, command, f"download {model.id}", model.size)
    if code == NO_CLIENT:
        cure = "install the hub's client there (`pipx install huggingface_hub` or `uv tool install huggingface_hub`)"
        raise CommandFailed(node.name, f"{model.id} is on no node, and there is no `hf` to fetch it with", cure)
    if code:
        cure = f"check the name, the licence and the token (HF_TOKEN); by hand: hf download {model.id}"
        raise CommandFailed(node.name, f"{model.id} is on no node, and `hf download` failed: {last}", cure)


async def _peer(world: World, plan: Plan, node: str) -> staging.Peer:
    """How the other nodes log in to this one, told by the node itself over the connection that is already trusted."""
    target = world.cluster.node(node)
    done = await world.hosts[node].run(staging.peer())
    first, *keys = done.stdout.splitlines() or [""]
    words = first.split(" ")
    if len(words) < 2 or not words[1].isdigit():
        raise CommandFailed(node, f"did not tell how to log in: {done.stderr.strip()[:200]}")
    address, port = plan.placement.fabric[node].address, int(words[1])
    return staging.Peer(words[0], address, port, staging.known_hosts(address, port, keys), target.is_local)


async def _long(world: World, node: str, command: Command, what: str, size: int) -> None:
    code, last = await _follow(world, node, command, what, size)
    if code:
        raise CommandFailed(
            node,
            f"{what}: exit {code}: {last}",
            "the copy resumes where it stopped; for `Permission denied` load your key into an ssh agent (ssh-add), "
            "or let the nodes log in to each other (ssh-copy-id)",
        )


async def _follow(world: World, node: str, command: Command, what: str, size: int) -> tuple[int, str]:
    """Runs a long command, tells its progress; (exit code, last line that is no progress)."""
    last, code = "", 1
    async for line in _lines(world, node, command):
        if line.startswith(_END):
            code = int(line.removeprefix(_END))
        elif not _told(world, node, what, line, size) and line.strip():
            last = line.strip()[:300]
    return code, last


def _lines(world: World, node: str, command: Command) -> AsyncIterator[str]:
    wrapped = ("sh", "-c", '"$@"; printf "\\036end %s\\n" $?', "sh", *command.argv)
    return world.hosts[node].stream(
        Command(wrapped, command.env, command.stdin, command.timeout, command.changes, command.forward_agent)
    )


def _told(world: World, node: str, what: str, line: str, size: int) -> bool:
    total = size / GIB if size else None
    if match := _PERCENT.search(line):
        done = int(match[1].replace(",", "")) / GIB
        whole = done * 100 / int(match[2]) if int(match[2]) else total
        world.sink.tell(Progress("stage", node, done, whole, "GiB", f"{what} at {match[3]}"))
    elif match := _BYTES.match(line):
        world.sink.tell(Progress("stage", node, int(match[1]) / GIB, total, "GiB", what))
    else:
        return False
    return True


def staging_text(plan: Plan, survey: Survey) -> tuple[str, ...]:
    """What `plan` says about staging, one sentence each."""
    told = []
    for what, needs in (("image", image_needs(plan, survey)), ("weights", model_needs(plan, survey))):
        if needs.lacking and needs.source:
            told.append(f"{what}: copied from {needs.source} to {', '.join(needs.lacking)} over the fabric")
        elif needs.lacking:
            size = f" ({gib(plan.recipe.model.size)})" if what == "weights" and plan.recipe.model.size else ""
            told.append(f"{what}{size}: on no node; fetched once on {plan.head}, then copied")
    return tuple(told)


def _complete(survey: Survey, node: str) -> bool:
    found = survey.checkpoints.get(node)
    return isinstance(found, Checkpoint) and found.complete


def _present(survey: Survey, node: str) -> bool:
    found = survey.checkpoints.get(node)
    return isinstance(found, Checkpoint) and found.files > 0
