"""`build`: where it is made, where it is copied, and that the nodes end up with the same image."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from fakes.rank_node import RankNode
from sparkwright.app.copy.build import BuildOptions, build
from sparkwright.domain.command import Command, Completed
from sparkwright.domain.errors import CommandFailed, SparkwrightError, UsageError
from sparkwright.domain.progress import Notice, Progress
from sparkwright.domain.recipe import Build, EngineChoice, Model, Recipe
from sparkwright.recipes.dockerfile import image_name
from unit.app.scene import ClusterScene, make_scene

BUILD = Build("base:1", "a test", cuda_arch="")
RECIPE = Recipe("mine", "A build", Model("org/name"), EngineChoice("vllm", "0.21.0"), nodes=2, build=BUILD)
NAME = image_name(RECIPE, BUILD)
DOCKER = '@@ client\n/usr/bin/docker\n@@ socket\nwritable\n@@ info\n{"ServerVersion": "28.2.2"}\n'
ABOUT = '@@ image\n"sha256:1"\n@@ arch\narm64\n@@ size\n5\n@@ labels\n{}\n@@ base\n@@ packages\n'
LINES = ["Step 1/2 : FROM base:1", " ---> 1", "Step 2/2 : ENTRYPOINT []", "Successfully built 1", "\x1eend 0"]


def building(command: Command) -> bool:
    return command.changes.startswith("docker build ")


def copying(command: Command) -> bool:
    return command.changes.startswith("copy image ")


class ImageDaemon:
    """The images of a node as `docker image inspect` reports them."""

    def __init__(self, node: RankNode, image: str = "") -> None:
        self.node, self.image = node, image
        node.on("docker info", DOCKER)
        node.on("docker image inspect", self.inspected)
        node.on("'@@ image", ABOUT)
        node.on("SSH_CONNECTION", "anna 22 /home/anna\n")

    def inspected(self, _: Command) -> Completed:
        return Completed(0, f"{self.image} 5\n") if self.image else Completed(1, "")


def daemons(here: ClusterScene, *images: str) -> list[ImageDaemon]:
    made = [ImageDaemon(node, image) for node, image in zip(here.nodes, images, strict=True)]

    def built_on(daemon: ImageDaemon) -> Any:
        def run(_: Command) -> list[str]:
            daemon.image = "sha256:1"
            return LINES

        return run

    def copied(_: Command) -> list[str]:
        for daemon in made:
            daemon.image = "sha256:1"
        return ["\x1eend 0"]

    for daemon in made:
        daemon.node.on(building, built_on(daemon))
        daemon.node.on(copying, copied)
    return made


def nodes_that_ran(here: ClusterScene, what: Any) -> list[str]:
    return [node.name for node in here.nodes if node.ran(what)]


async def test_built_on_the_head_and_brought_to_the_others() -> None:
    """One build, one copy, the same id everywhere, and a record on both nodes."""
    here = make_scene()
    daemons(here, "", "")
    built = await build(here.services, RECIPE, BuildOptions())
    assert (built.name, built.built, built.copied) == (NAME, True, ("spark-2",))
    assert built.ids == {"spark-1": "sha256:1", "spark-2": "sha256:1"}
    assert (nodes_that_ran(here, building), nodes_that_ran(here, copying)) == (["spark-1"], ["spark-1"])
    record = json.loads(next(text for path, text in here.nodes[1].files.items() if "/images/" in path))
    assert record["image"] == NAME and record["files"]["Dockerfile"] and record["nodes"] == ["spark-1", "spark-2"]


async def test_what_is_there_is_not_built_again() -> None:
    """The name is the hash of the parts: the same name is the same image."""
    here = make_scene()
    daemons(here, "sha256:1", "sha256:1")
    built = await build(here.services, RECIPE, BuildOptions())
    assert (built.built, built.copied, nodes_that_ran(here, building), nodes_that_ran(here, copying)) == (
        False,
        (),
        [],
        [],
    )


async def test_a_node_that_has_it_is_where_it_comes_from() -> None:
    """An hour of compiling is saved by a minute of copying."""
    here = make_scene()
    daemons(here, "", "sha256:1")
    built = await build(here.services, RECIPE, BuildOptions())
    assert (built.built, built.copied, nodes_that_ran(here, building), nodes_that_ran(here, copying)) == (
        False,
        ("spark-1",),
        [],
        ["spark-2"],
    )


async def test_it_can_stay_where_it_was_built() -> None:
    """`--node` and `--no-ship`."""
    here = make_scene()
    daemons(here, "", "")
    built = await build(here.services, RECIPE, BuildOptions("spark-2", ship=False))
    assert (built.ids, nodes_that_ran(here, building), nodes_that_ran(here, copying)) == (
        {"spark-2": "sha256:1"},
        ["spark-2"],
        [],
    )


async def test_progress_is_reported_in_steps() -> None:
    """Steps come from the lines of both builders."""
    here = make_scene()
    daemons(here, "", "")
    here.nodes[0].on(building, ["#5 [2/9] RUN apt-get update", *LINES[:1], "\x1eend 1"])
    with pytest.raises(CommandFailed):
        await build(here.services, RECIPE, BuildOptions())
    assert [(told.done, told.total) for told in here.sink.of(Progress)] == [(2.0, 9.0), (1.0, 2.0)]


async def test_a_failed_build_shows_its_last_lines() -> None:
    """The whole log is kept here, the leases are given back, and no copy is made."""
    here = make_scene()
    daemons(here, "", "")
    here.nodes[0].on(building, ["Step 1/2 : FROM base:1", "manifest unknown", "\x1eend 1"])
    with pytest.raises(CommandFailed) as caught:
        await build(here.services, RECIPE, BuildOptions())
    assert "  | manifest unknown" in caught.value.message and "build.log" in caught.value.hint
    assert nodes_that_ran(here, copying) == [] and [node.holder for node in here.nodes] == [None, None]


async def test_an_image_that_the_builder_kept_to_itself() -> None:
    """Docker's exit code is 0 when a builder of another driver does not load what it has built."""
    here = make_scene()
    daemons(here, "", "")
    here.nodes[0].on(building, LINES)
    with pytest.raises(CommandFailed) as caught:
        await build(here.services, RECIPE, BuildOptions())
    assert "not in Docker's store" in caught.value.message and "docker buildx use default" in caught.value.hint


@pytest.mark.parametrize(("during", "told"), [(building, "no image"), (copying, "is on spark-1")])
async def test_an_interrupted_build_reports_what_is_left(during: Any, told: str) -> None:
    """An image that is built already stays: only its copy was cut off."""
    here = make_scene()
    daemons(here, "", "")

    def interrupt(_: Command) -> list[str]:
        raise asyncio.CancelledError

    here.nodes[0].on(during, interrupt)
    with pytest.raises(asyncio.CancelledError):
        await build(here.services, RECIPE, BuildOptions())
    (notice,) = here.sink.of(Notice)
    assert told in notice.text and NAME in notice.text


async def test_another_id_after_the_copy_is_an_error() -> None:
    """Ranks of one model never run two images; two daemons can name the same content differently."""
    here = make_scene()
    daemons(here, "", "")
    here.nodes[0].on(copying, ["\x1eend 0"])
    with pytest.raises(CommandFailed) as caught:
        await build(here.services, RECIPE, BuildOptions())
    assert caught.value.node == "spark-2" and "absent" in caught.value.message


@pytest.mark.parametrize(
    ("recipe", "options", "words"),
    [
        (replace(RECIPE, build=None), BuildOptions(), "no `build` section"),
        (RECIPE, BuildOptions("spark-9"), "no such node"),
    ],
)
async def test_nothing_to_build_with(recipe: Recipe, options: BuildOptions, words: str) -> None:
    """Reported before any node is asked."""
    here = make_scene()
    with pytest.raises(UsageError) as caught:
        await build(here.services, recipe, options)
    assert words in caught.value.message and not here.nodes[0].commands


async def test_a_node_without_docker_is_named() -> None:
    """The node is named before the lease is taken, with the rule's own finding."""
    here = make_scene()
    daemons(here, "", "")
    here.nodes[1].on("docker info", "@@ client\nabsent\n")
    with pytest.raises(SparkwrightError) as caught:
        await build(here.services, RECIPE, BuildOptions())
    assert [finding.subject for finding in getattr(caught.value, "findings", ())] == ["spark-2"]
    assert here.did("take") == []
