"""Questions of `recipes import` to a node: a running container, and the version of the engine in an image."""

import json
import re

from sparkwright.app.cluster_state import engines
from sparkwright.app.services import Services
from sparkwright.domain.command import Command
from sparkwright.domain.errors import CommandFailed, UsageError
from sparkwright.domain.facts import EngineFound
from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.recipe import Recipe
from sparkwright.engines.identity import as_installed

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
_MOST = 4 * 1024 * 1024


async def inspect_container(services: Services, node: str, name: str) -> str:
    """`docker inspect` of a container and of its image, as one JSON list. Raises UsageError, CommandFailed."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"--from-container: {name!r} is no name of a container", hint="docker ps shows the names")
    row = await _inspect(services, node, ("docker", "inspect", "--type", "container", name))
    image = str(row[0].get("Image", "")) if row else ""
    is_id = re.fullmatch(r"sha256:[0-9a-f]{64}", image)
    base = await _inspect(services, node, ("docker", "image", "inspect", image)) if is_id else []
    return json.dumps([*row, *base])


async def _inspect(services: Services, node: str, argv: tuple[str, ...]) -> list[dict[str, object]]:
    done = await services.hosts[node].run(Command(argv))
    if not done.ok:
        raise CommandFailed(node, f"{' '.join(argv)}: {done.stderr.strip()[:200]}", hint="docker ps shows the names")
    try:
        found = read_json(done.stdout[:_MOST])
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
        raise CommandFailed(node, f"{' '.join(argv)}: answered no JSON list", hint="check docker on that node")
    return found


async def version_in_image(services: Services, node: str, recipe: Recipe) -> str:
    """The engine's version as the image itself tells it: it is run once on the node. '' where it does not tell."""
    found = await engines(services, [services.cluster.node(node)], recipe, look=True)
    there = as_installed(recipe, found).engine.version
    told = any(isinstance(seen, EngineFound) and seen.versions for seen in found.values())
    return there if told else ""
