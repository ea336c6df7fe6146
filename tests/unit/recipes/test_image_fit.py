"""A reason against a build on a node is found before anything is fetched."""

import pytest

from sparkwright.domain.facts import Disk, Docker, Identity, NodeFacts, Unknown
from sparkwright.domain.recipe import Build, BuildSource
from sparkwright.domain.units import GIB
from sparkwright.recipes.dockerfile import no_room, room_to_build, wrong_machine


def build_node(arch: str = "aarch64", free: int = 100 * GIB, root: str = "/var/lib/docker") -> NodeFacts:
    disks = (Disk("/var/lib/docker", "/", 1000 * GIB, free),)
    identity = Identity("spark-1", "m", arch, "b", "anna", "/home/anna")
    return NodeFacts("spark-1", 0.0, identity=identity, docker=Docker("28.2.2", root=root), disks=disks)


def test_a_build_is_for_the_nodes_own_processor() -> None:
    """vLLM compiled under an emulator takes days, and fails in the end."""
    (found,) = wrong_machine(Build("base:1"), build_node("x86_64"))
    assert (found.code, found.subject) == ("ENG020", "spark-1") and "x86_64" in found.evidence
    assert not [*wrong_machine(Build("base:1"), build_node())]


def test_an_unknown_processor_forbids_nothing() -> None:
    """Unknown is never taken for wrong."""
    assert not [*wrong_machine(Build("base:1"), NodeFacts("spark-1", 0.0, identity=Unknown("", "not read")))]


@pytest.mark.parametrize(("free", "codes"), [(100 * GIB, []), (61 * GIB, ["DISK001"]), (63 * GIB + 1, [])])
def test_room_with_some_to_spare(free: int, codes: list[str]) -> None:
    """A build that fills the disk takes Docker down with it."""
    assert [f.code for f in no_room(["spark-1"], {"spark-1": build_node(free=free)}, 60 * GIB)] == codes


def test_dockers_root_elsewhere_is_not_guessed() -> None:
    """The root file system reports nothing of another disk."""
    assert not [*no_room(["spark-1"], {"spark-1": build_node(free=0, root="/data/docker")}, GIB)]


def test_an_engine_from_its_sources_wants_more_room_than_a_step() -> None:
    """Object files of CUDA code are many gigabytes."""
    engine = Build("base:1", sources=(BuildSource("vllm", "https://example.org/vllm", "ab" * 20),))
    assert room_to_build(engine) >= 60 * GIB > 10 * room_to_build(Build("base:1"))
