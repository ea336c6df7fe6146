"""An image built on one node and copied to the other over the fabric: the same one, and ranks serve from it."""

import json
import platform
from typing import Any

import pytest

from cluster.drive import NAME, CommandDriver, containers, read_lease
from patience import wait_until
from testbed import ContainerNode, Testbed

pytestmark = pytest.mark.full
PLATFORM = {"x86_64": "linux/amd64", "aarch64": "linux/arm64"}[platform.machine()]


def recipe(drive: CommandDriver, testbed: Testbed, **build: Any) -> str:
    """The simulator in an image of its own: the testbed's engine image, and a file more."""
    section = {"base": testbed.engine_image, "unpinned": "made by the testbed", "platform": PLATFORM, "cuda_arch": ""}
    steps = {"steps": ["echo built > /opt/built"]}
    return drive.recipe("docker", engine={"image": None, "image_note": ""}, build={**section, **steps, **build})


def remove(nodes: list[ContainerNode], name: str) -> None:
    for node in nodes:
        node.sh("docker rm -f $(docker ps -aq)", check=False)
        node.sh(f"docker image rm -f {name}; rm -rf /home/*/.local/state/sparkwright/images", check=False)


def test_built_once_the_same_everywhere_and_served(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], testbed: Testbed
) -> None:
    """`up` names the verb that is missing; after it one image id, one record on both nodes, and ranks that answer."""
    path = recipe(driver, testbed)
    early = driver.run("up", path)
    assert early.code == 1 and f"sparkwright build {NAME}" in early.err, str(early)
    made = driver.good("build", path, "--json").json
    try:
        assert made["built"] and made["copied"] == ["spark-2"]
        assert [node.image_id(made["image"]) for node in testbed_nodes] == [
            made["ids"][node.name] for node in testbed_nodes
        ]
        assert len(set(made["ids"].values())) == 1
        records = [json.loads(node.sh("cat /home/*/.local/state/sparkwright/images/*.json")) for node in testbed_nodes]
        assert records[0] == records[1] and records[0]["id"] == made["ids"]["spark-1"]
        assert records[0]["provenance"]["base"] == testbed.engine_image
        again = driver.good("build", path, "--json").json
        assert not again["built"] and again["copied"] == []
        assert "ready" in driver.good("up", path).out
        assert [c["Image"] for node in testbed_nodes for c in containers(node)] == list(made["ids"].values())
        driver.good("down", NAME)
    finally:
        remove(testbed_nodes, made["image"])


def test_an_interrupted_build_leaves_no_container_and_no_lease(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], testbed: Testbed
) -> None:
    """Ctrl-C while a step runs on the node: Docker ends the step, and the next build is not kept out."""
    path = recipe(driver, testbed, steps=["sleep 300"])
    call = driver.start("build", path, tty=True)
    while not testbed_nodes[0].sh("docker ps --quiet"):
        assert call.process.poll() is None, str(call.finish())
    done = call.interrupt().finish()
    assert done.code == 130 and "no image" in done.err, str(done)
    wait_until(lambda: testbed_nodes[0].sh("docker ps --all --quiet") == "", "Docker removes the step's container")
    assert not testbed_nodes[0].sh("docker images --quiet sparkwright/drill")
    assert [read_lease(node) for node in testbed_nodes] == ["", ""]
