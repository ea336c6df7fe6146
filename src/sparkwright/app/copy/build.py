"""`build`: an image made on one node from a recipe's pinned parts, and copied to the others as the same image."""

import asyncio
import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from sparkwright import __version__
from sparkwright.app.cluster_state import image_of, nodes_for, require_all
from sparkwright.app.copy.stage import other_image
from sparkwright.app.copy.transfer import follow, peer_of, watched
from sparkwright.app.gather import gather, reached
from sparkwright.app.lease import holding
from sparkwright.app.services import Services, by_node, together
from sparkwright.checks import docker
from sparkwright.domain.check import Context
from sparkwright.domain.cluster import Node
from sparkwright.domain.errors import CommandFailed, Refused, UsageError
from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import Finding, prevented
from sparkwright.domain.progress import Progress, StepDone, StepStarted
from sparkwright.domain.recipe import Build, Recipe, Runtime
from sparkwright.domain.values import dataclass, field, replace
from sparkwright.facts import engine_image as commands
from sparkwright.facts.engine_image import BuiltImage, parse
from sparkwright.recipes import dockerfile
from sparkwright.remote import staging

# `Step 3/12 : RUN ...` of the classic builder, `#7 [3/9] RUN ...` of BuildKit.
_STEP = re.compile(r"(?:Step |#\d+ \[(?:[\w-]+ )?\s*)(?P<done>\d+)/(?P<total>\d+)[\] :]+(?P<what>.*)")
_KEPT, _SHOWN, _WIDTH = 50_000, 12, 100
_DAEMON = ("DOCK001", "DOCK002")  # the daemon does not answer, or not to this user


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """node: builds; '' is the head. ship: copy the image to the other nodes of the recipe."""

    node: str = ""
    ship: bool = True
    seize: bool = False


@dataclass(frozen=True, slots=True)
class Built:
    """name: of the image. ids: node -> image id. built: False when it was there already. record: file on each node."""

    name: str
    ids: dict[str, str]
    built: bool
    copied: tuple[str, ...] = ()
    record: str = ""
    about: BuiltImage | None = None
    seconds: float = 0.0


@dataclass
class BuildJob:
    """The work on one image. nodes: the one that builds first, then those that get it. there: who has it by now."""

    recipe: Recipe
    build: Build
    name: str
    nodes: tuple[Node, ...]
    facts: dict[str, NodeFacts] = field(default_factory=dict)
    log: deque[str] = field(default_factory=lambda: deque(maxlen=_KEPT))
    there: str = ""

    @property
    def builder(self) -> str:
        return self.nodes[0].name


async def build(services: Services, recipe: Recipe, options: BuildOptions) -> Built:
    """Raises UsageError, Refused, Busy, Unreachable, CommandFailed. Cancelled, it leaves no name and
    no lease, and Docker ends the step that runs."""
    job, began = _job(services, recipe, options), services.clock.monotonic()
    gathered = await gather(services.hosts, job.nodes, services.clock)
    require_all(gathered)
    job.facts = reached(gathered)
    _refuse(job, _unfit(services, job))
    try:
        async with holding(services, [n.name for n in job.nodes], f"build {recipe.name}", options.seize):
            made, copied, ids = await _make_and_ship(services, job)
            about = await _about(services, job)
            record = await _record(services, job, about)
    except asyncio.CancelledError:
        nothing = (
            f"no image {job.name} is left; Docker removes the container of the step that ran, and keeps finished steps"
        )
        rest = f"image {job.name} is on {job.there}; the next call only does what is left"
        services.notice(f"interrupted: {rest if job.there else nothing}", warning=True)
        raise
    return Built(job.name, ids, made, copied, record, about, services.clock.monotonic() - began)


def section_of(recipe: Recipe) -> Build:
    """The recipe's `build` section. Raises UsageError if it has none."""
    if recipe.build is None:
        hint = "`sparkwright recipes show --reference` explains the section; `sparkwright up` needs none"
        raise UsageError(f"{recipe.name}: it has no `build` section, so there is nothing to build", hint)
    return recipe.build


def _job(services: Services, recipe: Recipe, options: BuildOptions) -> BuildJob:
    section = section_of(recipe)
    name = options.node or services.cluster.ordered[0].name
    if name not in services.cluster.names:
        known = ", ".join(services.cluster.names)
        raise UsageError(f"--node {name}: no such node in cluster {services.cluster.name}; there are {known}")
    others = [n for n in nodes_for(services, recipe) if n.name != name] if options.ship else []
    return BuildJob(recipe, section, dockerfile.image_name(recipe, section), (services.cluster.node(name), *others))


async def _make_and_ship(services: Services, job: BuildJob) -> tuple[bool, tuple[str, ...], dict[str, str]]:
    """Builds the image unless it exists and copies it. Returns: was it built, the nodes that received it, its id on
    each."""
    having = await _ids(services, job)
    made = not having
    if made:
        _refuse(job, dockerfile.no_room([job.builder], job.facts, dockerfile.room_to_build(job.build)))
        began, step = services.clock.monotonic(), "build"
        services.sink.report(StepStarted(step, f"{job.name} on {job.builder}"))
        files = dockerfile.context(job.recipe, job.build)
        marks = dockerfile.labels(job.recipe, job.build, __version__, services.clock.now())
        command = commands.build(job.name, marks, dockerfile.archive(files))
        code = await watched(services, job.builder, command, lambda line: _look(services, job, line))
        if code:
            raise _not_built(services, job, code)
        services.sink.report(StepDone(step, services.clock.monotonic() - began))
        having = await _ids(services, job)
    source = next((node.name for node in job.nodes if node.name in having), "")
    if not source:
        # A BuildKit builder in a container of its own leaves the image in its cache and prints only a warning
        what = f"`docker build` ended well, but image {job.name} is not in Docker's store"
        raise CommandFailed(job.builder, what, "`docker buildx use default` there, then call `sparkwright build` again")
    job.there = source
    wanted, size = having[source]
    lacking = tuple(n.name for n in job.nodes if having.get(n.name, ("",))[0] != wanted)
    if lacking:
        await _ship(services, job, (source, size), lacking)
        having = await _ids(services, job)
    ids = {node.name: having.get(node.name, ("absent",))[0] for node in job.nodes}
    for node, found in ids.items():
        if found != wanted:
            raise other_image(node, job.name, found, f"{wanted} on {source}")
    return made, lacking, ids


async def _ids(services: Services, job: BuildJob) -> dict[str, tuple[str, int]]:
    """Node -> (id, bytes) of the image where it is."""
    names, asked = [node.name for node in job.nodes], staging.inspect_image(job.name)
    answers = await by_node(names, lambda name: services.run(name, asked))
    return {name: image for name, done in answers.items() if (image := image_of(done))}


def _look(services: Services, job: BuildJob, line: str) -> None:
    if not line.strip():
        return
    job.log.append(line.rstrip())
    if step := _STEP.match(line):
        done, total, what = float(step["done"]), float(step["total"]), f"docker build at {step['what'][:_WIDTH]}"
        services.sink.report(Progress("build", job.builder, done, total, "steps", what))


def _not_built(services: Services, job: BuildJob, code: int) -> CommandFailed:
    path = services.save_evidence(job.recipe.name, "build.log", "".join(f"{line}\n" for line in job.log))
    last = "".join(f"\n  | {line[:300]}" for line in list(job.log)[-_SHOWN:])
    hint = f"the whole log: {path}; the steps that succeeded stay in Docker's build cache, so the next try is short"
    return CommandFailed(job.builder, f"image {job.name} could not be built (docker build: exit {code}){last}", hint)


async def _ship(services: Services, job: BuildJob, origin: tuple[str, int], lacking: Sequence[str]) -> None:
    """origin: the node that has it, and its bytes."""
    source, size = origin
    _refuse(job, dockerfile.no_room(lacking, job.facts, size))
    for node in lacking:
        command = staging.copy_image(job.name, await peer_of(services, None, source, node))
        code, said = await follow(services, source, command, f"image to {node}", size)
        if code:
            what = f"image {job.name} could not be copied there from {source} (exit {code}): {said}"
            raise CommandFailed(node, what, "call `sparkwright build` again: the image is built, only the copy is made")


async def _about(services: Services, job: BuildJob) -> BuiltImage:
    command = commands.describe(job.name, job.build.base, dockerfile.FREEZE)
    found = parse(await services.run(job.builder, command))
    if isinstance(found, BuiltImage):
        return found
    raise CommandFailed(job.builder, f"image {job.name} could not be inspected: {found.why} {found.raw}".rstrip())


async def _record(services: Services, job: BuildJob, about: BuiltImage) -> str:
    """The same file on every node; its path there."""
    files = dockerfile.context(job.recipe, job.build)
    content = {"image": job.name, "nodes": [n.name for n in job.nodes], **about.as_record(), "files": dict(files)}
    text = json.dumps(content, indent=1).encode()
    name = f"images/{job.name.rpartition('/')[2].replace(':', '-')}.json"
    await together(services.hosts[n.name].put(text, f"{n.paths.state}/{name}") for n in job.nodes)
    return f"{job.nodes[0].paths.state}/{name}"


def _unfit(services: Services, job: BuildJob) -> Iterator[Finding]:
    wants_docker = replace(job.recipe, engine=replace(job.recipe.engine, runtime=Runtime.DOCKER))
    found = Context(services.cluster, job.facts, wants_docker)
    yield from (finding for check in docker.CHECKS if check.code in _DAEMON for finding in check.findings(found))
    for facts in job.facts.values():
        yield from dockerfile.wrong_machine(job.build, facts)


def _refuse(job: BuildJob, findings: Iterable[Finding]) -> None:
    if stops := tuple(findings):
        raise Refused(f"{job.name}: not built: {prevented(stops)}", stops)
