"""Ask an engine on a node for its options, so that flags of a version that nobody has read are checked exactly."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparkwright.app.cluster_state import engine_question
from sparkwright.app.services import ClusterState, Services
from sparkwright.domain.cluster import Node
from sparkwright.domain.errors import NodeError, UsageError
from sparkwright.domain.facts import Unknown
from sparkwright.domain.progress import StepDone, StepStarted
from sparkwright.domain.recipe import EngineChoice, Recipe, Runtime
from sparkwright.domain.values import replace
from sparkwright.engines.flag_data import flag_data
from sparkwright.engines.identity import as_installed, question_of
from sparkwright.engines.launchers import script
from sparkwright.engines.tables import DATA_OF, RUNS_AS_IT_IS
from sparkwright.engines.version import version_key
from sparkwright.facts.engine_options import OptionsAnswer, options_of_image, options_of_node, parse

if TYPE_CHECKING:
    from sparkwright.engines.own_data import OptionsOrigin

# engines.own_data is imported where it is used: it needs pydantic, which the program on the head does not have.
Row = dict[str, Any]
_MOST_OF_WHEEL = 4 << 30


async def with_options(services: Services, recipe: Recipe, nodes: Sequence[str], found: ClusterState) -> ClusterState:
    """The state with the options of the engine that is there, where its version was not read: asked once, and kept.

    What cannot be asked or read is told, and flags are checked against the nearest version as before.
    """
    head = services.cluster.node(nodes[0])
    installed = as_installed(recipe, found.engines)
    build = found.images.get(head.name, ("", 0))[0]
    if services.flags is None or engine_question(services, head, installed, look=True) is None:
        return found
    if not _is_unread(installed.engine, build, found):
        return found
    name = f"options of {installed.engine.name} {installed.engine.version}".strip()
    services.sink.report(StepStarted("options", f"{name}: asking its own parser on {head.name}, once"))
    began = services.clock.monotonic()
    try:
        row = await read_from_node(services, head, installed.engine)
        services.flags.save(row)
    except UsageError as error:
        services.notice(f"{name}: {error.message}; flags are checked against the nearest version", warning=True)
        return found
    services.sink.report(StepDone("options", services.clock.monotonic() - began))
    return replace(found, flags=services.flags.load())


def _is_unread(choice: EngineChoice, build: str, found: ClusterState) -> bool:
    from sparkwright.engines.own_data import ASKABLE

    of = DATA_OF.get(choice.name, choice.name)
    if of not in ASKABLE or (choice.name != of and choice.name not in RUNS_AS_IT_IS) or not choice.version:
        return False
    data, said = flag_data(choice.name, choice.version, found.flags)
    if data is None or (said and len(version_key(of, choice.version)) == 1):  # llama.cpp counts builds
        return data is None or version_key(of, choice.version) != version_key(of, data.version)
    kept = bool(data.source.get("at")) and data.build.startswith("sha256:")
    return bool(said) or (kept and bool(build) and not found.flags.has_build(of, data.version, build))


async def read_from_node(services: Services, node: Node, choice: EngineChoice) -> Row:
    """The document to keep. Raises UsageError with the reason."""
    from sparkwright.engines.own_data import ASKABLE, OptionsOrigin

    of = DATA_OF.get(choice.name, choice.name)
    asked = question_of(choice, services.python_on(node)) if of in ASKABLE else None
    if asked is None:
        raise UsageError(f"{choice.name}: its parser cannot be asked", f"engines that can: {', '.join(ASKABLE)}")
    program = script("engine_options.py").text
    docker = choice.runtime is Runtime.DOCKER
    command = options_of_image(choice.image, of, asked, program) if docker else options_of_node(of, asked, program)
    place = f"image {choice.image}" if docker else f"venv {choice.venv}" if choice.venv else "PATH"
    try:
        found = parse(await services.run(node.name, command))
    except NodeError as error:
        found = Unknown(error.message, "the node could not be asked")
    if isinstance(found, Unknown):
        raise UsageError(f"{of} in {place} on {node.name}: {found.why}: {found.raw}".removesuffix(": "))
    origin = OptionsOrigin(of, "parser", f"{place} on {node.name}", services.clock.now())
    try:
        return _document(found, origin, choice.version)
    except ValueError as error:
        raise UsageError(f"{place} on {node.name}: its answer cannot be used: {error}") from None


def _document(found: OptionsAnswer, origin: "OptionsOrigin", version: str) -> Row:
    from sparkwright.engines.own_data import from_answer, from_help

    if found.help:
        return from_help(found.text, origin, {"version": version, "build": found.build})
    return from_answer(found.text, origin, version, found.build)


def read_from_wheel(path: Path, at: float) -> Row:
    """The document to keep of a wheel on this machine. Raises UsageError with the reason."""
    from sparkwright.engines.own_wheels import READERS, read_wheel

    try:
        if path.stat().st_size > _MOST_OF_WHEEL:
            raise UsageError(f"{path}: larger than {_MOST_OF_WHEEL >> 30} GiB")
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return read_wheel(path, digest, at)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        hint = f"give a wheel of {', '.join(READERS)}"
        raise UsageError(f"{path}: {error}", hint) from None
