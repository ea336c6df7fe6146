"""Real Docker: tags that move, an image that is another than its tag, and containers that keep weights."""

from typing import Any

import pytest

from cluster.drive import NAME, CommandDriver, containers
from cluster.stage_drive import FOLDER, put_folder
from cluster.test_supervised import TENTH, node_clock, serves_after_a_relaunch
from patience import wait_until
from testbed import ContainerNode, Testbed

pytestmark = pytest.mark.full
TAG = "acme/own:latest"


@pytest.fixture
def supervised(driver: CommandDriver) -> CommandDriver:
    driver.supervise = True
    driver.env = dict(TENTH)
    return driver


def commit(node: ContainerNode, base: str, tag: str, *changes: str, script: str = "true") -> str:
    """The id of an image made of another one, under a tag."""
    changed = " ".join(f"--change '{change}'" for change in changes)
    made = f"c=$(docker create --entrypoint sh {base} -c '{script}') && docker start -a $c >/dev/null"
    return node.sh(f"{made} && docker commit {changed} $c {tag} && docker rm $c >/dev/null").split()[-1]


def image_run(node: ContainerNode) -> str:
    return node.sh("docker inspect -f '{{.Image}}' $(docker ps -q --filter label=sparkwright.deployment)", check=False)


@pytest.fixture
def images(testbed_nodes: list[ContainerNode]) -> Any:
    yield
    for node in testbed_nodes:
        node.sh("docker rm -f $(docker ps -aq); docker images -q 'acme/*' | xargs -r docker image rm -f", check=False)
        node.sh(f"rm -rf {FOLDER}", check=False)


@pytest.mark.usefixtures("images")
def test_a_relaunch_keeps_the_image_though_somebody_pulled_a_new_latest(
    supervised: CommandDriver, testbed_nodes: list[ContainerNode], testbed: Testbed
) -> None:
    """`up` records which image the tag was; after `down` the next `up` takes what it is now."""
    head, worker = testbed_nodes
    first = commit(head, testbed.engine_image, TAG, "LABEL acme.build=1")
    recipe = supervised.recipe("docker", engine={"image": TAG, "image_note": None})
    said = supervised.good("up", recipe)
    assert "ENG034" in str(said) and "can move" in str(said)
    assert {image_run(node) for node in testbed_nodes} == {first}
    record = head.sh(f"cat /home/spark/.local/state/sparkwright/served/{NAME}.json")
    assert first in record
    second = commit(head, testbed.engine_image, TAG, "LABEL acme.build=2")
    assert second != first and head.image_id(TAG) == second
    at = node_clock(head)
    worker.sh("pkill -KILL -f '[s]parkwright.simulator serve'")
    wait_until(serves_after_a_relaunch(head, at), "to serve again")
    assert {image_run(node) for node in testbed_nodes} == {first}
    supervised.good("down", NAME)
    supervised.good("up", recipe)
    assert {image_run(node) for node in testbed_nodes} == {second}
    supervised.good("down", NAME)
    assert not any(containers(node) for node in testbed_nodes)


@pytest.mark.usefixtures("images")
def test_what_is_in_the_image_counts_and_neither_tag_nor_label(
    supervised: CommandDriver, testbed_nodes: list[ContainerNode], testbed: Testbed
) -> None:
    """The tag says 0.33.0, the label 0.20.2, the package in it 0.21.0: planned for what is there, said once."""
    supervised.supervise = False
    tag, site = "acme/vllm-openai:v0.33.0", "/usr/lib/python3/dist-packages/vllm-0.21.0.dist-info"
    script = f'mkdir -p {site} && printf "Metadata-Version: 2.1\\nName: vllm\\nVersion: 0.21.0\\n" >{site}/METADATA'
    commit(testbed_nodes[0], testbed.engine_image, tag, "LABEL org.opencontainers.image.version=0.20.2", script=script)
    entrypoint = ["sh", "-c", 'exec python3 -m sparkwright.simulator "$@"']
    engine = {"name": "vllm", "version": None, "image": tag, "image_note": None, "entrypoint": entrypoint}
    for node in testbed_nodes:
        put_folder(node)
    model = {"id": None, "path": FOLDER, "simulated": None, "size": None}
    recipe = supervised.recipe("docker", engine=engine, model=model, serving={"context": 2048})
    said = supervised.good("up", recipe, "--force", "no GPU here")
    assert str(said).count("has vllm 0.21.0, the recipe is for 0.33.0") >= 1, str(said)
    assert "0.20.2" not in str(said)
    supervised.good("down", NAME)
    assert not any(containers(node) for node in testbed_nodes)


def keepers(node: ContainerNode) -> str:
    return node.sh("docker ps -aq --no-trunc --filter label=sparkwright.keeper", check=False).strip()


def test_containers_that_keep_weights_outlive_the_ranks(
    supervised: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """One a node, before the ranks; the same ones after a relaunch; none after `down`."""
    head, worker = testbed_nodes
    supervised.good("up", supervised.recipe("docker", loading={"weight_cache": True}))
    before = [keepers(node) for node in testbed_nodes]
    assert all(len(one.split()) == 1 for one in before)
    mounts = worker.sh(f"docker inspect -f '{{{{.HostConfig.IpcMode}}}} {{{{json .Config.Cmd}}}}' {before[1]}")
    assert mounts.startswith("host ") and '"preload"' in mounts
    at = node_clock(head)
    worker.sh("pkill -KILL -f '[s]parkwright.simulator serve'")
    wait_until(serves_after_a_relaunch(head, at), "to serve again")
    assert [keepers(node) for node in testbed_nodes] == before
    supervised.good("down", NAME)
    assert [keepers(node) for node in testbed_nodes] == ["", ""]
    assert not any(containers(node) for node in testbed_nodes)
