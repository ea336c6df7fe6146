"""There is no room for what must be brought to a node.

Detects: the weights that a node lacks, and the image that it lacks, are larger than what its file systems have left,
  with 5 % and 2 GiB to spare. Silent where a size is not known.
Why: a copy of 150 GB that fails at 140 GB costs an hour, and a full disk takes the node's other services with it.
Evidence: what is needed, for what, and what `df` says of the file system.
Remedy: make room there, or move the folder with the node's paths in the cluster file.
References: https://github.com/guardkit/dgx-spark (a snapshot is links: its size is that of what they lead to).
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.cluster import Node
from sparkwright.domain.facts import Disk, NodeFacts
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.recipe import Recipe, Runtime
from sparkwright.domain.units import GIB, gib
from sparkwright.rules.reading import known, node_of, played
from sparkwright.rules.rule import Context

CODE = "DISK001"
STATUS = "stable"
SEVERITY = Severity.BLOCK
TITLE = "no room on the node for weights or image"

_SPARE_SHARE = 0.05
_SPARE = 2 * GIB


@dataclass(frozen=True, slots=True)
class _Need:
    what: str
    bytes: int
    disk: Disk


def check(context: Context) -> Iterator[Finding]:
    for facts in context.facts.values():
        needs = _needs(context, facts)
        for mount in dict.fromkeys(need.disk.mount for need in needs):
            here = [need for need in needs if need.disk.mount == mount]
            wanted = int(sum(need.bytes for need in here) * (1 + _SPARE_SHARE)) + _SPARE
            if wanted > here[0].disk.available:
                yield _finding(facts.node, here, wanted)


def _needs(context: Context, facts: NodeFacts) -> list[_Need]:
    recipe, node = context.recipe, node_of(context, facts.node)
    if recipe is None or node is None:
        return []
    return [*_weights(context, recipe, facts, node), *_image(context, recipe, facts)]


def _finding(node: str, needs: list[_Need], wanted: int) -> Finding:
    disk = needs[0].disk
    parts = ", ".join(f"{need.what} {gib(need.bytes)}" for need in needs)
    return Finding(
        CODE,
        SEVERITY,
        node,
        f"no room for {' and '.join(need.what for need in needs)} on {disk.mount}",
        f"{parts}, with 5 % + 2 GiB to spare: {gib(wanted)} wanted, {gib(disk.available)} free on {disk.mount}",
        "the node lacks them, and they would be copied or fetched there before the start",
        f"make room (du -xh --max-depth=2 {disk.mount} | sort -h | tail), "
        "or write another folder into the node's paths in the cluster file",
    )


def _weights(context: Context, recipe: Recipe, facts: NodeFacts, node: Node) -> Iterator[_Need]:
    found = context.checkpoints.get(facts.node)
    present = [c for c in context.checkpoints.values() if isinstance(c, Checkpoint)]
    nothing_wanted = played(recipe) and not any(c.files for c in present)
    nothing_wanted |= recipe.head_loads and facts.node != context.cluster.ordered[0].name
    if nothing_wanted or not isinstance(found, Checkpoint) or found.complete:
        return
    size = next((c.bytes for c in present if c.complete), recipe.model.size)
    disk = _disk_of(facts, _folder(recipe, node))
    if disk and size > found.bytes:
        yield _Need("weights", size - found.bytes, disk)


def _image(context: Context, recipe: Recipe, facts: NodeFacts) -> Iterator[_Need]:
    size = max(context.images.values(), default=0)
    docker = known(facts.docker)
    lacks = context.images.get(facts.node, size) == 0
    disk = _disk_of(facts, docker.root) if docker and docker.root else None
    if recipe.engine.runtime is Runtime.DOCKER and size and lacks and disk:
        yield _Need("image", size, disk)


def _folder(recipe: Recipe, node: Node) -> str:
    path = recipe.model.path
    if path.startswith(("/", "~")):
        return path
    return node.paths.models if path else node.paths.hub


def _disk_of(facts: NodeFacts, folder: str) -> Disk | None:
    """What was told of this folder, or of the nearest one above it that was asked; None when neither was."""
    home = identity.home if (identity := known(facts.identity)) else "~"
    disks = [d for d in known(facts.disks) or () if _holds(_expand(d.path, home), _expand(folder, home))]
    return max(disks, key=lambda disk: len(disk.path), default=None)


def _expand(path: str, home: str) -> str:
    return home + path[1:] if path.startswith("~") else path


def _holds(above: str, folder: str) -> bool:
    return folder == above or folder.startswith(above.rstrip("/") + "/")
