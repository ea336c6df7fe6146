"""The engine's image on every node: the same one, and never half of it."""

from pathlib import Path
from typing import Any

import pytest

from cluster.drive import assert_clean
from cluster.stage_drive import TWIN, StageDriver, everything, interrupt, restore_fabric, slow_fabric, wait_for
from testbed import ContainerNode, Testbed


@pytest.fixture
def driver(tmp_path: Path, ssh_config: Path) -> StageDriver:
    return StageDriver(tmp_path, ssh_config)


def recipe(image: str) -> dict[str, Any]:
    engine = {"name": "simulator", "version": "0.21.0", "runtime": "docker", "image": image}
    note = {} if "@" in image else {"image_note": "made by the testbed"}
    return {**TWIN, "model": {**TWIN["model"], "id": "sparkwright/twin-tiny"}, "engine": {**engine, **note}}


def small_image(node: ContainerNode, name: str) -> str:
    """An image that no other node has: the engine's, under a name and with an id of its own."""
    made = node.sh(f"c=$(docker create {name}) && docker commit -m own $c acme/own:1 && docker rm $c >/dev/null")
    return made.split()[0]


def test_an_image_goes_from_the_node_that_has_it(
    driver: StageDriver, testbed_nodes: list[ContainerNode], testbed: Testbed
) -> None:
    """Saved here and loaded there: the same id on both, and ranks run exactly it."""
    here, there = testbed_nodes
    wanted = small_image(there, testbed.engine_image)
    try:
        told = driver.up(recipe("acme/own:1"))
        assert told.code == 0, told.text
        assert "image to spark-1" in told.err
        assert here.image_id("acme/own:1") == there.image_id("acme/own:1") == wanted
        for node in testbed_nodes:
            assert node.sh("docker inspect -f '{{.Image}}' $(docker ps -aq)") == wanted
        again = driver.run("plan", "./tiny.yaml")
        assert "image: copied" not in again.out
    finally:
        for node in testbed_nodes:
            node.sh("docker rm -f $(docker ps -aq); docker image rm -f acme/own:1", check=False)


@pytest.mark.full
def test_the_same_tag_for_another_image_is_replaced_by_the_heads(
    driver: StageDriver, testbed_nodes: list[ContainerNode], testbed: Testbed
) -> None:
    """A tag can mean two images on two nodes; ranks of one model never run different ones."""
    here, there = testbed_nodes
    wanted = small_image(here, testbed.engine_image)
    other = small_image(there, testbed.engine_image)
    try:
        assert wanted != other
        told = driver.up(recipe("acme/own:1"))
        assert told.code == 0, told.text
        assert there.image_id("acme/own:1") == wanted
    finally:
        for node in testbed_nodes:
            node.sh("docker rm -f $(docker ps -aq); docker image rm -f acme/own:1", check=False)
            node.sh(f"docker image rm -f {other}", check=False)


@pytest.mark.full
def test_an_image_known_by_its_digest_keeps_a_name(
    driver: StageDriver, testbed_nodes: list[ContainerNode], testbed: Testbed
) -> None:
    """Docker forgets the digest of a copied image: it is found again on the other node, and copied once only."""
    here, there = testbed_nodes
    small_image(there, testbed.engine_image)
    digest = "acme/own@sha256:" + "ab" * 32
    copied = "acme/own:sparkwright-" + "ab" * 8
    try:
        # Without a registry no image has a digest: the source here has it as from an earlier copy.
        there.sh(f"docker tag acme/own:1 {copied}")
        told = driver.up(recipe(digest))
        assert told.code == 0, told.text
        assert here.image_id(copied) == there.image_id(copied) != ""
        assert "image: " not in driver.run("plan", "./tiny.yaml").out
    finally:
        for node in testbed_nodes:
            node.sh(f"docker rm -f $(docker ps -aq); docker image rm -f acme/own:1 {copied}", check=False)


@pytest.mark.full
def test_an_image_that_nobody_has(driver: StageDriver, testbed_nodes: list[ContainerNode]) -> None:
    """`docker pull` is tried on the head, its own text is passed on, and nothing is started."""
    before = [everything(node) for node in testbed_nodes]
    told = driver.up(recipe("registry.invalid/acme/absent:1"))
    told.is_one_message(
        1, "spark-1: image registry.invalid/acme/absent:1 is on no node", "`docker pull` failed", "registry login"
    )
    assert "registry.invalid" in told.err.partition("failed:")[2]
    assert [everything(node) for node in testbed_nodes] == before


@pytest.mark.full
def test_a_killed_image_copy_leaves_no_lease(
    driver: StageDriver, testbed_nodes: list[ContainerNode], testbed: Testbed
) -> None:
    """Ctrl-C in the middle: no process, no lease, no image under the name."""
    here, there = testbed_nodes
    small_image(there, testbed.engine_image)
    slow_fabric(there, "80mbit")
    try:
        with driver.running("up", driver.write("tiny.yaml", recipe("acme/own:1")), "--detach") as running:
            wait_for(here, "pgrep -f '[d]ocker load' >/dev/null")
            stopped = interrupt(running)
        assert stopped.code == 130, stopped.text
        assert_clean(testbed_nodes)
        assert here.image_id("acme/own:1") == ""
    finally:
        restore_fabric(there)
        there.sh("docker image rm -f acme/own:1", check=False)
