"""What forbids a build, or a copy of its image, on a node: another architecture, no room."""

from collections.abc import Iterable, Iterator, Mapping

from sparkwright.domain.facts import Disk, Docker, Identity, NodeFacts
from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.recipe import Build
from sparkwright.domain.units import GIB, gib

# What `uname -m` says, by what Docker says.
MACHINES = {"arm64": "aarch64", "amd64": "x86_64"}
# An estimate: an image of vLLM with its CUDA takes 20 to 30 GB, and its sources with their object files as much again.
_ENGINE, _OTHER = 60 * GIB, 2 * GIB
_SPARE_SHARE = 0.05
_DOCKER_ROOT = "/var/lib/docker"


def room_to_build(build: Build) -> int:
    """Bytes that a build wants free below Docker's root."""
    return _ENGINE if build.sources and build.cuda_arch else _OTHER


def wrong_machine(build: Build, facts: NodeFacts) -> Iterator[Finding]:
    """ENG020 where the node has another processor than the image is for."""
    wanted = MACHINES[build.platform.partition("/")[2]]
    if isinstance(facts.identity, Identity) and facts.identity.arch != wanted:
        yield Finding(
            "ENG020", Severity.BLOCK, facts.node, f"build.platform is {build.platform}, and the node is not",
            f"uname -m: expected {wanted}, found {facts.identity.arch}",
            "a build emulates nothing: what it compiles would not run here, or take days",
            "build on a node of that kind (--node), or write the platform of your nodes into the recipe",
        )  # fmt: skip


def no_room(nodes: Iterable[str], facts: Mapping[str, NodeFacts], size: int) -> Iterator[Finding]:
    """DISK001 for each node whose Docker has less than `size` bytes; silent where it is not known."""
    needed = int(size * (1 + _SPARE_SHARE))
    for node in nodes:
        disk = _docker_disk(facts[node])
        if disk and disk.available < needed:
            yield Finding(
                "DISK001", Severity.BLOCK, node, f"no room for the image on {disk.mount}",
                f"{gib(needed)} needed, {gib(disk.available)} free on {disk.mount}",
                "an image takes 20 to 30 GB, and its build as much again",
                "make room (`docker image prune`, `docker builder prune`), or move Docker's data-root",
            )  # fmt: skip


def _docker_disk(facts: NodeFacts) -> Disk | None:
    root = facts.docker.root if isinstance(facts.docker, Docker) else ""
    disks = facts.disks if isinstance(facts.disks, tuple) else ()
    # Docker's root may be elsewhere than it usually is: a folder that was not asked about is not known.
    return next((d for d in disks if d.path == root or (d.path == _DOCKER_ROOT and not root)), None)
