"""Checks of containers and images, and the engines in them, recognized by their usual names."""

import re
import tomllib
from collections.abc import Iterator
from importlib.resources import files

from sparkwright.checks.reading import per_node, real_nodes, unplanned
from sparkwright.domain.check import Check, Context, Found, explained
from sparkwright.domain.fabric_facts import Container, Image
from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import BLOCK, INFO, OVERRIDE, WARN
from sparkwright.domain.image import is_built_here
from sparkwright.domain.recipe import Recipe, Runtime
from sparkwright.domain.unknown import known_or_none
from sparkwright.engines.catalog import simulator

_SIGNS = tomllib.loads((files("sparkwright.checks") / "engine_signs.toml").read_text(encoding="utf-8"))["containers"]
_DOCKER_ARCH = {"aarch64": "arm64", "x86_64": "amd64"}
_ID_SHOWN = 19  # sha256: and twelve digits, as Docker shows them
_OURS = "sparkwright/"
_SPARKRUN = "sparkrun_"


def engine_of(text: str) -> str:
    """The engine that an image's or program's name speaks of, or ''."""
    return next((name for name, sign in _SIGNS.items() if re.search(sign, text, re.IGNORECASE)), "")


def engine_in(container: Container) -> str:
    """The engine named by its image, its command, or its own name: the first that matches."""
    told = (engine_of(text) for text in (container.image, container.command, container.name))
    return next((name for name in told if name), "an engine" if container.gpu else "")


def engine_restarts(facts: NodeFacts) -> Iterator[Found]:
    docker = known_or_none(facts.containers)
    for container in docker.containers if docker else ():
        by_itself = container.restart in ("always", "unless-stopped")
        if by_itself and not container.ours and engine_in(container):
            yield Found(
                f"docker inspect: {container.name} {container.image}, restart policy {container.restart}",
                title=f"{container.name} ({engine_in(container)}) restarts automatically",
                fix=f"if it is not meant to be: docker update --restart no {container.name}",
            )


def foreign_engine(context: Context) -> Iterator[Found]:
    """A warning; of the same model as the recipe's it stops a start, which would load it a second time."""
    for facts in real_nodes(context):
        docker = known_or_none(facts.containers)
        for container in docker.containers if docker else ():
            engine = engine_in(container)
            if container.running and engine and not container.ours:
                yield _foreign(container, engine, facts.node, context.recipe)


def _foreign(container: Container, engine: str, node: str, recipe: Recipe | None) -> Found:
    gpu = ", with the GPU" if container.gpu else ""
    serves = f", serves {container.model}" if container.model else ""
    same = recipe is not None and _same_model(container.model, recipe)
    by = f", started by {starter}" if (starter := _starter(container)) else ""
    title = f"{container.name} runs {engine}{by}"
    if same:
        title = f"{container.name} serves this model already{by}"
    stop = _stop(container, node)
    return Found(
        f"docker ps: {container.name} {container.image} {container.command}".rstrip() + gpu + serves,
        title=title,
        fix=stop if same else f"if it is not meant to stay: {stop}",
        severity=OVERRIDE if same else None,
        subject=node,
    )


def _starter(container: Container) -> str:
    if container.name.startswith(_SPARKRUN):
        return "sparkrun"
    return "Docker Compose" if container.project else ""


def _stop(container: Container, node: str) -> str:
    """Its own tool's way, which stops all of its ranks and keeps it stopped."""
    if container.name.startswith(_SPARKRUN):
        job = container.name.removeprefix(_SPARKRUN).partition("_")[0]
        return f"where sparkrun is installed: sparkrun stop {job}; or on each node: docker rm -f {container.name}"
    if container.project:
        return f"on {node}: docker compose -p {container.project} down"
    return f"docker stop {container.name}"


def _same_model(served: str, recipe: Recipe) -> bool:
    """True if the last parts of the names are equal: a path, a hub's id and an entry of the hub's cache may be one
    model."""
    wanted = {_short(name) for name in (recipe.model.id, recipe.model.path) if name}
    return bool(served) and _short(served) in wanted


def _short(name: str) -> str:
    entry = re.search(r"models--[^/]+--([^/]+)", name)
    last = entry[1] if entry else name.rstrip("/").rpartition("/")[2]
    return last.partition(":")[0].lower()


def image_architecture(context: Context) -> Iterator[Found]:
    wanted = context.recipe.engine.image if context.recipe else ""
    for facts in real_nodes(context):
        own, docker = _own(facts), known_or_none(facts.containers)
        for image in docker.images if own and docker else ():
            tag = _tag(image, wanted)
            if image.arch and image.arch != own and tag:
                yield Found(
                    f"docker image inspect: {image.arch}; the node: {own}",
                    title=f"{tag} is for {image.arch}",
                    fix=f"on {facts.node}: docker image rm {tag} && docker pull --platform linux/{own} {tag}",
                    severity=OVERRIDE if tag == wanted else INFO,
                    subject=facts.node,
                )


def _own(facts: NodeFacts) -> str:
    identity = known_or_none(facts.identity)
    return _DOCKER_ARCH.get(identity.arch, "") if identity else ""


def _tag(image: Image, wanted: str) -> str:
    """The recipe's own name of it, or without a recipe the first that is an engine's; '' for others."""
    if wanted:
        return wanted if wanted in image.tags else ""
    return next((tag for tag in image.tags if engine_of(tag)), "")


def images_differ(context: Context) -> Iterator[Found]:
    ids: dict[str, dict[str, str]] = {}
    for facts in real_nodes(context):
        docker = known_or_none(facts.containers)
        for image in docker.images if docker else ():
            for tag in image.tags:
                ids.setdefault(tag, {})[facts.node] = image.id
    wanted = context.recipe.engine.image if context.recipe else ""
    for tag, held in ids.items():
        if len(set(held.values())) > 1 and (tag == wanted if wanted else engine_of(tag)):
            yield Found(
                "; ".join(f"{node}: {image[:_ID_SHOWN]}" for node, image in held.items()),
                title=f"{tag} differs between nodes",
                fix=f"on each node: docker pull {tag}; better, name it by digest (name@sha256:...)",
                subject=", ".join(held),
            )


def image_unpublished(context: Context) -> Iterator[Found]:
    recipe, asked = context.recipe, [name for name in context.images if name in context.facts]
    if recipe is None or recipe.engine.runtime is not Runtime.DOCKER or not recipe.engine.image.startswith(_OURS):
        return
    dockers = [known_or_none(context.facts[name].docker) for name in asked]
    answered = bool(asked) and all(docker and not docker.trouble for docker in dockers)
    if context.cluster.simulated or not answered or any(context.images.values()):
        return
    yield Found(
        f"docker image inspect: no such image on {', '.join(asked)}",
        title=f"image {recipe.engine.image} is on no node and in no registry",
        fix=_remedy(recipe),
        subject=", ".join(asked),
    )


def _remedy(recipe: Recipe) -> str:
    if is_built_here(recipe):
        return f"sparkwright build {recipe.label}"
    if simulator(recipe):
        return "`make testbed` makes it for its own nodes; on others run the simulator with runtime: process"
    return f"docker load an image named {recipe.engine.image} on one node: `up` copies it to the others"


CHECKS = explained(
    __file__,
    Check("DOCK006", WARN, "engine container restarts automatically", per_node(unplanned, engine_restarts)),
    Check("DOCK007", WARN, "another engine runs in a container", foreign_engine),
    Check("DOCK008", OVERRIDE, "image for another architecture", image_architecture),
    Check("DOCK009", WARN, "image differs between nodes", images_differ),
    Check("DOCK013", BLOCK, "image on no node and in no registry", image_unpublished),
)
