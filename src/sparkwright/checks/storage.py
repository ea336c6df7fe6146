"""Checks of disks and model folders."""

from collections.abc import Iterator

from sparkwright.checks.reading import node_of, per_node, played, real_nodes
from sparkwright.domain.check import Check, Context, Found, explained
from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.cluster import Node
from sparkwright.domain.facts import Disk, NodeFacts
from sparkwright.domain.finding import BLOCK, INFO, WARN
from sparkwright.domain.homes import expand_home, home_of
from sparkwright.domain.recipe import Recipe, Runtime
from sparkwright.domain.units import GIB, gib
from sparkwright.domain.unknown import known_or_none
from sparkwright.domain.values import dataclass
from sparkwright.engines.catalog import traits
from sparkwright.engines.disk_cache import disk_of_cache

_SPARE_SHARE = 0.05
_SPARE = 2 * GIB
_LOW_BYTES = 20 * GIB
_LOW_SHARE = 0.03
_INODE_SHARE = 0.05
_NETWORK_FS = ("nfs", "cifs", "smb", "fuse.", "fuseblk", "9p", "ceph", "glusterfs", "afs")


@dataclass(frozen=True, slots=True)
class _Need:
    what: str
    bytes: int
    disk: Disk


def disk_full(context: Context) -> Iterator[Found]:
    for facts in context.facts.values():
        recipe, node = context.recipe, node_of(context, facts.node)
        needs = [*_weights(context, recipe, facts, node), *_image(context, recipe, facts)] if recipe and node else []
        for mount in dict.fromkeys(need.disk.mount for need in needs):
            here = [need for need in needs if need.disk.mount == mount]
            wanted = int(sum(need.bytes for need in here) * (1 + _SPARE_SHARE)) + _SPARE
            if wanted > here[0].disk.available:
                yield _finding(facts.node, here, wanted)


def _finding(node: str, needs: list[_Need], wanted: int) -> Found:
    disk = needs[0].disk
    parts = ", ".join(f"{need.what} {gib(need.bytes)}" for need in needs)
    return Found(
        f"{parts}, with 5 % + 2 GiB to spare: {gib(wanted)} needed, {gib(disk.available)} free on {disk.mount}",
        title=f"no room for {' and '.join(need.what for need in needs)} on {disk.mount}",
        fix=f"make room (du -xh --max-depth=2 {disk.mount} | sort -h | tail), "
        "or write another folder into the node's paths in the cluster file",
        subject=node,
    )


def _weights(context: Context, recipe: Recipe, facts: NodeFacts, node: Node) -> Iterator[_Need]:
    found = context.checkpoints.get(facts.node)
    present = [c for c in context.checkpoints.values() if isinstance(c, Checkpoint)]
    nothing_wanted = played(recipe) and not any(c.files for c in present)
    nothing_wanted |= traits(recipe).by_layer and facts.node != context.cluster.ordered[0].name
    if nothing_wanted or not isinstance(found, Checkpoint) or found.complete:
        return
    size = next((c.bytes for c in present if c.complete), recipe.model.size)
    disk = _disk_of(facts, _folder(recipe, node))
    if disk and size > found.bytes:
        yield _Need("weights", size - found.bytes, disk)


def _image(context: Context, recipe: Recipe, facts: NodeFacts) -> Iterator[_Need]:
    size = max(context.images.values(), default=0)
    docker = known_or_none(facts.docker)
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
    """The disk of this folder, or of the nearest known folder above it; None if neither is known."""
    home = home_of(facts)
    disks = [
        d for d in known_or_none(facts.disks) or () if _holds(expand_home(d.path, home), expand_home(folder, home))
    ]
    return max(disks, key=lambda disk: len(disk.path), default=None)


def _holds(above: str, folder: str) -> bool:
    return folder == above or folder.startswith(above.rstrip("/") + "/")


def disk_cache(context: Context) -> Iterator[Found]:
    """The disk of the engine's KV cache: its room, and whether it is a disk apart from the system's."""
    cache = disk_of_cache(context.recipe) if context.recipe else None
    if cache is None:
        return
    folder, size, setting = cache.folder, cache.size, cache.setting
    for facts in real_nodes(context):
        disk = next((one for one in known_or_none(facts.disks) or () if one.path == folder), None)
        if disk is None:
            continue
        # A folder that is not there has the figures of the first one above it that is
        where = f"{setting}: {folder} on {disk.mount}"
        if disk.mount == "/":
            yield Found(
                f"{where}, the system's own disk",
                title="the KV cache is on the system's disk",
                fix=f"nothing, if that is meant; else mount the disk for {folder} on {facts.node} before `up`",
                severity=INFO,
                subject=facts.node,
            )
        wanted, never = size * (1 + _SPARE_SHARE), size * (1 + _SPARE_SHARE) > disk.total
        if wanted > disk.available:
            yield Found(
                f"{where}: {gib(size)} and 5 % to spare, {gib(disk.available)} free of {gib(disk.total)}",
                title=f"{'no' if never else 'little'} room for the KV cache on {disk.mount}",
                fix=f"a smaller {cache.size_setting}, or make room; what the cache has already counts as used",
                severity=WARN if never else INFO,
                subject=facts.node,
            )


def disk_low(facts: NodeFacts) -> Iterator[Found]:
    by_mount: dict[str, list[Disk]] = {}
    for disk in known_or_none(facts.disks) or ():
        by_mount.setdefault(disk.mount, []).append(disk)
    for mount, disks in by_mount.items():
        free, total = disks[0].available, disks[0].total
        if total and free < max(min(_LOW_BYTES, total // 2), total * _LOW_SHARE):
            yield Found(
                f"df: {gib(free)} of {gib(total)} free; on it: {', '.join(disk.path for disk in disks)}",
                title=f"{gib(free)} left on {mount}",
                fix=f"sudo du -xh --max-depth=2 {mount} | sort -h | tail; docker system df; hf cache scan",
            )


def inodes_low(facts: NodeFacts) -> Iterator[Found]:
    for store in known_or_none(facts.stores) or ():
        if store.inodes and store.inodes_free < store.inodes * _INODE_SHARE:
            yield Found(
                f"stat -f: {store.inodes_free} of {store.inodes} inodes free ({store.fs})",
                title=f"{store.inodes_free} inodes left below {store.path}",
                fix=f"df -i; sudo du --inodes -xh --max-depth=3 {store.path} | sort -h | tail",
            )


def network_store(facts: NodeFacts) -> Iterator[Found]:
    for store in known_or_none(facts.stores) or ():
        if store.fs.startswith(_NETWORK_FS):
            yield Found(f"/proc/mounts: {store.fs} at {store.path}", title=f"{store.path} is on {store.fs}")


def foreign_owner(context: Context) -> Iterator[Found]:
    for facts in real_nodes(context):
        identity, node = known_or_none(facts.identity), node_of(context, facts.node)
        for store in known_or_none(facts.stores) or ():
            owner, _, path = store.foreign.partition(" ")
            if path and identity and identity.user not in (owner, "root"):
                yield Found(
                    f"{path}: owner {owner}, not {identity.user}",
                    title=f"{owner} owns files in {store.path}",
                    fix=f"on {facts.node}: sudo chown -R {identity.user}: {store.path}",
                    # The hub's cache is written by clients; a folder of models may be meant to be read only
                    severity=WARN if node and node.paths.hub == store.path else INFO,
                    subject=facts.node,
                )


CHECKS = explained(
    __file__,
    Check("DISK001", BLOCK, "disk too full for weights or image", disk_full),
    Check("DISK002", WARN, "disk nearly full", per_node(real_nodes, disk_low)),
    Check("DISK003", WARN, "file system nearly out of inodes", per_node(real_nodes, inodes_low)),
    Check("DISK004", INFO, "models on a network file system", per_node(real_nodes, network_store)),
    Check("DISK005", WARN, "KV cache and its disk", disk_cache),
    Check("FILE003", WARN, "model files owned by another user", foreign_owner),
)
