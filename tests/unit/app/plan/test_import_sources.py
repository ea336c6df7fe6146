"""`recipes import` asks a node for a running container, and an image for its engine's version."""

import json

import pytest

from sparkwright.app.plan.import_sources import inspect_container, version_in_image
from sparkwright.domain.command import Completed
from sparkwright.domain.errors import CommandFailed, UsageError
from sparkwright.domain.recipe import EngineChoice, Model, Recipe
from sparkwright.recipes.importers.draft import ImportOptions
from sparkwright.recipes.importers.importer import import_recipe
from unit.app.scene import make_scene

IMAGE = "sha256:" + "0" * 64
ROW = {
    "Image": IMAGE,
    "Config": {"Image": "example/fork:x", "Cmd": ["vllm", "serve", "org/name"], "Env": ["A_BASE=1", "VLLM_USE_V1=1"]},
    "HostConfig": {},
}


async def test_a_container_is_inspected_with_its_image() -> None:
    """The image's own variables are known from the image, and only those of the call are imported."""
    here = make_scene()
    here.nodes[0].on(("docker", "inspect"), Completed(0, json.dumps([ROW])))
    here.nodes[0].on(
        ("docker", "image", "inspect", IMAGE), Completed(0, json.dumps([{"Config": {"Env": ["A_BASE=1"]}}]))
    )
    text = await inspect_container(here.services, "spark-1", "vllm")
    made = import_recipe(text, "vllm", ImportOptions())
    assert made.errors == () and "VLLM_USE_V1" in made.text and "A_BASE" not in made.text


async def test_a_name_that_is_none_and_a_container_that_is_not_there() -> None:
    """An option in place of a name never reaches docker; docker's own answer is passed on."""
    here = make_scene()
    with pytest.raises(UsageError, match="no name of a container"):
        await inspect_container(here.services, "spark-1", "--format={{.}}")
    assert here.nodes[0].commands == []
    here.nodes[0].on(("docker", "inspect"), Completed(1, "", "Error: No such container: x"))
    with pytest.raises(CommandFailed, match="No such container"):
        await inspect_container(here.services, "spark-1", "x")


async def test_an_image_tells_its_version() -> None:
    """It is run once on the node; an image that does not tell leaves the version open."""
    recipe = Recipe("r", "R", Model("org/name"), EngineChoice("vllm", "0.33.0", image="example/fork:x"))
    here = make_scene()
    here.nodes[0].on(lambda command: True, Completed(0, "@@ arch\narm64\n@@ found\nvllm 0.26.0\n@@ end\n"))
    assert await version_in_image(here.services, "spark-1", recipe) == "0.26.0"
    here.nodes[0].on(lambda command: True, Completed(0, "@@ arch\narm64\n@@ found\n@@ end\n"))
    assert await version_in_image(here.services, "spark-1", recipe) == ""
