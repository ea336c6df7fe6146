"""A model that no node has is fetched once, by the hub's own client, on the head; the others get it from there."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster import hub_server
from cluster.drive import assert_clean
from cluster.stage_drive import (
    REAL,
    ROOT,
    StageDriver,
    StageResult,
    everything,
    put_hub_model,
    tree_checksums,
    wait_for,
    wait_for_result,
)
from testbed import ContainerNode

pytestmark = pytest.mark.full

PORT = 8999
LOG = "/run/hub.log"
TOKEN = "hf_a-token-that-nobody-may-see"


@pytest.fixture
def hub_node(testbed_nodes: list[ContainerNode]) -> Iterator[ContainerNode]:
    """A hub on the head's own loopback."""
    head = testbed_nodes[0]
    head.write("/run/hub.py", Path(hub_server.__file__).read_text())
    pid = head.sh(f"rm -f {LOG}; python3 /run/hub.py {PORT} {LOG} >/run/hub.out 2>&1 & echo $!")
    wait_for(head, f"python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {PORT}))' 2>/dev/null")
    yield head
    head.sh(f"kill {pid}")


@pytest.fixture
def driver(tmp_path: Path, ssh_config: Path) -> StageDriver:
    drive = StageDriver(tmp_path, ssh_config)
    point_at_hub(drive)
    return drive


def point_at_hub(drive: StageDriver, port: int = PORT) -> None:
    env = {"HF_ENDPOINT": f"http://127.0.0.1:{port}"}
    drive.cluster(*({"name": name, "env": env} for name in ("spark-1", "spark-2")))


def up(drive: StageDriver, model: str = "acme/tiny") -> StageResult:
    recipe: dict[str, Any] = {**REAL, "model": {"id": model, "served_name": "tiny", "size": "10MiB"}}
    return drive.up(recipe)


def test_it_is_fetched_once_and_copied(
    driver: StageDriver, hub_node: ContainerNode, testbed_nodes: list[ContainerNode]
) -> None:
    """Each shard leaves the hub once; both nodes end with the same entry; progress is reported; no token shows."""
    driver.env["HF_TOKEN"] = TOKEN
    told = up(driver)
    assert told.code == 0, told.text
    requests = hub_node.sh(f"cat {LOG}").splitlines()
    fetched = [line for line in requests if line.startswith("GET") and "00001-of-00002" in line]
    assert len(fetched) == 1 and f"Bearer {TOKEN}" in fetched[0]
    assert tree_checksums(testbed_nodes[0], ROOT) == tree_checksums(testbed_nodes[1], ROOT)
    assert testbed_nodes[1].sh(f"cat {ROOT}/refs/main") == hub_server.REVISION
    arrived = " ".join(tree_checksums(testbed_nodes[1], ROOT))
    assert all(hashlib.sha256(content).hexdigest() in arrived for content in hub_server.FILES.values())
    assert "download acme/tiny" in told.err
    assert TOKEN not in told.text
    for node in testbed_nodes:
        held = node.sh(f"grep -rlF {TOKEN} /home/spark /tmp /run/lock /dev/shm 2>/dev/null || true")
        assert held == "", held
        assert TOKEN not in " ".join(process.command for process in node.processes())


@pytest.mark.full
def test_the_other_node_receives_while_the_download_comes(
    driver: StageDriver, hub_node: ContainerNode, testbed_nodes: list[ContainerNode]
) -> None:
    """A shard that the head has is on the other node before the hub gives the next one."""
    hub_node.sh(f"touch {LOG}.hold")
    first = hub_server.content_etag(hub_server.FILES[hub_server.SHARDS[0]])
    recipe = driver.write("tiny.yaml", {**REAL, "model": {"id": "acme/tiny", "served_name": "tiny", "size": "10MiB"}})
    try:
        with driver.running("up", recipe, "--detach") as process:
            wait_for(testbed_nodes[1], f"[ -e {ROOT}/blobs/{first} ]")
            hub_node.sh(f"rm {LOG}.hold")
            told = wait_for_result(process)
    finally:
        hub_node.sh(f"rm -f {LOG}.hold")
    assert told.code == 0, told.text
    assert tree_checksums(testbed_nodes[0], ROOT) == tree_checksums(testbed_nodes[1], ROOT)


@pytest.mark.full
def test_the_token_is_in_no_argument_list_while_it_is_used(
    driver: StageDriver, hub_node: ContainerNode, testbed_nodes: list[ContainerNode]
) -> None:
    """Anyone who lists processes during the download sees the client, not the token."""
    driver.env["HF_TOKEN"] = TOKEN
    script = "while :; do cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '; sleep 0.02; done > /run/seen"
    watcher = hub_node.sh(f"({script}) >/dev/null 2>&1 & echo $!")
    try:
        told = up(driver)
    finally:
        hub_node.sh(f"kill {watcher}")
    assert told.code == 0, told.text
    seen = hub_node.sh("cat /run/seen; rm /run/seen")
    assert "hf download acme/tiny" in seen
    assert TOKEN not in seen


@pytest.mark.full
def test_an_unfinished_download_is_finished(
    driver: StageDriver, hub_node: ContainerNode, testbed_nodes: list[ContainerNode]
) -> None:
    """The leftovers of an earlier download are no model: it is fetched to its end, and they do not stay in the way."""
    head = testbed_nodes[0]
    put_hub_model(head, size=1 << 20)
    head.sh(f"rm {ROOT}/snapshots/*/model-00001*; echo x > {ROOT}/blobs/abc.12345678.incomplete", user="spark")
    told = up(driver)
    assert told.code == 0, told.text
    assert head.sh(f"find {ROOT} -name '*.incomplete'") == ""
    assert tree_checksums(testbed_nodes[0], ROOT) == tree_checksums(testbed_nodes[1], ROOT)


@pytest.mark.full
@pytest.mark.parametrize(("model", "reason"), [("acme/gated", "requires approval"), ("acme/nothing", "not found")])
def test_a_model_that_the_hub_does_not_give(
    driver: StageDriver, hub_node: ContainerNode, testbed_nodes: list[ContainerNode], model: str, reason: str
) -> None:
    """Gated or unknown: the hub's own text, where the token is to be set, and no ranks."""
    told = up(driver, model)
    told.is_one_message(1, f"{model} is complete on no node", "`hf download` failed", "HF_TOKEN")
    assert reason in told.err.lower()
    assert_clean(testbed_nodes)


@pytest.mark.full
def test_a_hub_that_cannot_be_reached(driver: StageDriver, testbed_nodes: list[ContainerNode]) -> None:
    """The client's reason is passed on, with what the node lacks; nothing is left on the nodes."""
    point_at_hub(driver, port=8998)
    before = [everything(node) for node in testbed_nodes]
    told = up(driver)
    told.is_one_message(1, "acme/tiny is complete on no node (here: nothing of it is there)", "`hf download` failed")
    assert "refused" in told.err.lower() or "connect" in told.err.lower()
    after = [[line for line in everything(node) if not line.startswith("./.cache")] for node in testbed_nodes]
    assert after == before


@pytest.mark.full
def test_no_client_on_the_node(driver: StageDriver, testbed_nodes: list[ContainerNode]) -> None:
    """The message reports how to get `hf` if there is none."""
    before = [everything(node) for node in testbed_nodes]
    testbed_nodes[0].sh("mv /usr/local/bin/hf /usr/local/bin/hf.away")
    try:
        told = up(driver)
    finally:
        testbed_nodes[0].sh("mv /usr/local/bin/hf.away /usr/local/bin/hf")
    told.is_one_message(1, "there is no `hf` to fetch it with", "pipx install huggingface_hub")
    assert [everything(node) for node in testbed_nodes] == before
