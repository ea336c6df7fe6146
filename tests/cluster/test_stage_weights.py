"""Weights that one node has come to the others: over the fabric, whole, resumable, and with a clean page cache."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.drive import assert_clean
from cluster.stage_drive import (
    FOLDER,
    HUB,
    MIB,
    REAL,
    ROOT,
    TWIN,
    StageDriver,
    cached_bytes,
    everything,
    interrupt,
    put_folder,
    put_hub_model,
    received,
    restore_fabric,
    slow_fabric,
    tree_checksums,
    wait_for,
)
from testbed import ContainerNode, Testbed

BY_PATH = {**TWIN, "model": {"path": "tiny", "served_name": "tiny", "simulated": True}}


@pytest.fixture
def driver(tmp_path: Path, ssh_config: Path) -> StageDriver:
    return StageDriver(tmp_path, ssh_config)


@pytest.fixture
def slow_sender(testbed_nodes: list[ContainerNode]) -> Iterator[ContainerNode]:
    """The second node sends slowly over the fabric: a copy from it can be met on its way."""
    slow_fabric(testbed_nodes[1], "48mbit")
    yield testbed_nodes[1]
    restore_fabric(testbed_nodes[1])


def test_a_hub_model_goes_over_the_fabric(driver: StageDriver, testbed_nodes: list[ContainerNode]) -> None:
    """The whole entry arrives identical, links kept, by the fast network, reported as it goes, and leaves no page
    cache."""
    here, there = testbed_nodes
    put_hub_model(there, size=12 * MIB)
    before = received(here)
    told = driver.up(TWIN)
    fabric, mgmt = (after - was for after, was in zip(received(here), before, strict=True))
    assert told.code == 0, told.text
    # Looking into three shards' headers reads ahead a little of each.
    assert max(cached_bytes(here, ROOT), cached_bytes(there, ROOT)) <= 3 * MIB
    assert tree_checksums(here, ROOT) == tree_checksums(there, ROOT)
    assert len([entry for entry in tree_checksums(here, ROOT) if ">../../blobs/" in entry]) == 5
    assert fabric > 36 * MIB and mgmt < 2 * MIB, (fabric, mgmt)
    assert "weights to spark-1 at" in told.err
    assert here.sh(f"stat -c %U {ROOT}/refs/main") == "spark"


@pytest.mark.full
def test_a_folder_is_copied_and_served_as_a_process(driver: StageDriver, testbed_nodes: list[ContainerNode]) -> None:
    """A model given by path goes to the same place on the other node, is loaded there, and is not copied twice."""
    here, there = testbed_nodes
    put_folder(here)
    assert driver.up(BY_PATH, detach=False).code == 0
    assert tree_checksums(there, FOLDER) == tree_checksums(here, FOLDER) != []
    assert f"serve {FOLDER}" in "".join(process.command for process in there.processes())
    again = driver.up(BY_PATH, detach=False)
    assert again.code == 0 and "already serving" in again.text and "weights" not in again.err
    assert driver.run("down", "tiny").code == 0
    assert_clean(testbed_nodes)


@pytest.mark.full
def test_a_folder_is_served_in_a_container_that_cannot_change_it(
    driver: StageDriver, testbed_nodes: list[ContainerNode], testbed: Testbed
) -> None:
    """The docker runtime mounts the staged folder read-only, and the simulator loads from it."""
    here, there = testbed_nodes
    put_folder(there)
    engine = {"name": "simulator", "version": "0.21.0", "runtime": "docker", "image": testbed.engine_image}
    told = driver.up({**BY_PATH, "engine": {**engine, "image_note": "made here"}}, detach=False)
    assert told.code == 0, told.text
    assert tree_checksums(there, FOLDER) == tree_checksums(here, FOLDER)
    for node, rank in ((here, 0), (there, 1)):
        name = f"sparkwright-tiny-rank{rank}"
        assert f"{FOLDER}:/models/tiny:ro" in node.sh(f"docker inspect -f '{{{{.HostConfig.Binds}}}}' {name}")
        assert node.exec(["docker", "exec", name, "touch", "/models/tiny/x"], check=False).returncode != 0


@pytest.mark.full
def test_blobs_that_lie_outside_the_model_come_along(driver: StageDriver, testbed_nodes: list[ContainerNode]) -> None:
    """huggingface_hub 2 keeps blobs in a store of all models and links to it: the other node gets the bytes."""
    here, there = testbed_nodes
    put_hub_model(there, size=MIB)
    before = loaded(there)
    store = f"{HUB}/blobs/ab"
    there.sh(
        f"mkdir -p {store} && cd {ROOT}/blobs && for b in $(find . -size +100k -printf '%f '); do"
        f" mv $b {store}/$b && ln -s ../../blobs/ab/$b $b; done",
        user="spark",
    )
    told = driver.up(TWIN)
    assert told.code == 0, told.text
    assert loaded(here) == loaded(there) == before


def loaded(node: ContainerNode) -> str:
    """The checksums of the snapshot that an engine would read."""
    return node.sh(f"cd {ROOT}/snapshots/*/ && sha256sum *")


# Pieces of 8 MiB: three for each file that has its name, and those that journals of files without one name; in this
# order, for a file gets its name before its journal goes.
ARRIVED = (
    f"expr 3 '*' $(find {ROOT}/blobs -size +1M 2>/dev/null | wc -l) + $(cd {ROOT}/.sparkwright-partial 2>/dev/null;"
    ' for j in *.journal; do [ ! -e "${j%.journal}" ] || cat "$j" 2>/dev/null; done | grep -vc of)'
)


def test_an_interrupted_copy_goes_on_where_it_stopped(
    driver: StageDriver, testbed_nodes: list[ContainerNode], slow_sender: ContainerNode
) -> None:
    """Ctrl-C leaves no lease and no half model that counts as whole; the next start copies only the rest."""
    here, there = testbed_nodes
    put_hub_model(there, shards=2, size=24 * MIB)
    with driver.running("up", driver.write("tiny.yaml", TWIN), "--detach") as first:
        wait_for(here, f"[ $({ARRIVED}) -ge 4 ]")
        stopped = interrupt(first)
    assert stopped.code == 130 and "Traceback" not in stopped.text
    assert_clean(testbed_nodes)
    assert "ssh -o BatchMode" not in " ".join(process.command for node in testbed_nodes for process in node.processes())
    assert "weights: copied from spark-2 to spark-1" in driver.run("plan", "./tiny.yaml").out
    before = received(here)[0]
    restore_fabric(slow_sender)
    told = driver.up(TWIN)
    assert told.code == 0, told.text
    assert received(here)[0] - before < 20 * MIB
    assert tree_checksums(here, ROOT) == tree_checksums(there, ROOT)


@pytest.mark.full
def test_a_full_page_cache_is_evicted_before_the_load(driver: StageDriver, testbed_nodes: list[ContainerNode]) -> None:
    """Cached pages of model files go if MemFree is below the load's need, and it is reported."""
    for node in testbed_nodes:
        put_hub_model(node, size=12 * MIB)
        node.set_fixture("memory-cached")
        node.sh(f"cat {ROOT}/blobs/* > /dev/null")
        assert cached_bytes(node, f"{ROOT}/blobs") == 36 * MIB
    told = driver.up(REAL, "--force", "a test")
    assert told.code == 0, told.text
    for node in testbed_nodes:
        assert f"{node.name}: MemFree 29.0 GiB, the load takes" in told.err
        # Looking into three shards' headers reads ahead a little of each.
        assert cached_bytes(node, f"{ROOT}/blobs") <= 3 * MIB
    assert told.err.count("of page cache of model files evicted") == 2


@pytest.mark.full
def test_the_copy_uses_the_users_agent(
    driver: StageDriver, testbed_nodes: list[ContainerNode], testbed: Testbed
) -> None:
    """Nodes without keys of their own are let into each other by the user's ssh agent, reserved for the copy."""
    put_hub_model(testbed_nodes[1])
    without_keys(testbed_nodes)
    agent = subprocess.run(["ssh-agent", "-s"], capture_output=True, text=True, check=True).stdout
    variables = dict(part.split("=") for part in agent.replace("\n", ";").split(";") if part.startswith("SSH_"))
    try:
        driver.env |= variables
        key = str(testbed.ssh_config.with_name("id_ed25519"))
        subprocess.run(["ssh-add", "-q", key], env=driver.environment(), check=True)
        told = driver.up(TWIN)
    finally:
        subprocess.run(["kill", variables["SSH_AGENT_PID"]], check=True)
    assert told.code == 0, told.text
    assert tree_checksums(testbed_nodes[0], ROOT) == tree_checksums(testbed_nodes[1], ROOT)


@pytest.mark.full
def test_no_way_between_the_nodes_is_reported_with_its_hint(
    driver: StageDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """A call without agent and without keys ends with exit 1, both ways out are named, and the nodes are as they
    were."""
    put_hub_model(testbed_nodes[1])
    without_keys(testbed_nodes)
    before = [everything(node) for node in testbed_nodes]
    told = driver.up(TWIN)
    told.is_one_message(1, "could not be copied there from spark-2", "Permission denied", "ssh-add", "ssh-copy-id")
    assert [everything(node) for node in testbed_nodes] == before


@pytest.mark.full
def test_a_damaged_blob_goes_no_further(driver: StageDriver, testbed_nodes: list[ContainerNode]) -> None:
    """A blob of the hub is named by the publisher's checksum: a flipped bit on the source's disk is found."""
    here, there = testbed_nodes
    put_hub_model(there)
    there.sh(f"printf x | dd of=$(readlink -f {ROOT}/snapshots/*/{SHARD}) conv=notrunc bs=1 seek=100000 status=none")
    told = driver.up(TWIN)
    told.is_one_message(1, "could not be copied there from spark-2", "its content is not what its checksum promises")
    assert here.sh(f"find {ROOT}/blobs -size +1M | wc -l") in ("0", "1", "2")
    assert_clean(testbed_nodes)


@pytest.mark.full
def test_two_revisions_are_made_one(driver: StageDriver, testbed_nodes: list[ContainerNode]) -> None:
    """Ranks with different weights would answer nonsense: the head's revision goes to a node with another one."""
    here, there = testbed_nodes
    put_hub_model(here)
    put_hub_model(there, revision="f" * 40)
    assert driver.up(TWIN).code == 0
    assert there.sh(f"cat {ROOT}/refs/main") == here.sh(f"cat {ROOT}/refs/main")
    assert set(tree_checksums(here, ROOT)) < set(tree_checksums(there, ROOT))


SHARD = "model-00002-of-00003.safetensors"
SNAPSHOT = f"{ROOT}/snapshots/*"
GAPS = {
    "missing shard": (f"rm {SNAPSHOT}/{SHARD}", SHARD),
    "broken link": (f"rm $(readlink -f {SNAPSHOT}/{SHARD})", f"{SHARD} (broken link)"),
    "empty shard": (f": > $(readlink -f {SNAPSHOT}/{SHARD})", f"{SHARD} (empty)"),
    "unfinished": (f"echo x > {ROOT}/blobs/abc.1234.incomplete", "blobs/abc.1234.incomplete (unfinished download)"),
    "no ref": (f"rm {ROOT}/refs/main", "refs/main (absent"),
    "newline in ref": (f"echo >> {ROOT}/refs/main", "refs/main (ends with a newline)"),
}


FIRST = ("missing shard", "newline in ref")


@pytest.mark.full
@pytest.mark.parametrize("gap", [pytest.param(gap, marks=() if gap in FIRST else pytest.mark.full) for gap in GAPS])
def test_a_gap_is_named_and_filled_from_the_other_node(
    driver: StageDriver, testbed_nodes: list[ContainerNode], gap: str
) -> None:
    """An incomplete model is never launched: what lacks is known by name, and comes from a node that has it."""
    here, there = testbed_nodes
    harm, named = GAPS[gap]
    for node in testbed_nodes:
        put_hub_model(node, size=MIB)
        node.sh(f"cp -a {ROOT} {ROOT}.whole; {harm}", user="spark")
    both = driver.run("plan", driver.write("real.yaml", REAL))
    code = "MODEL005" if "ref" in gap else "MODEL001"
    assert code in both.out and named in both.out
    there.sh(f"rm -r {ROOT}; mv {ROOT}.whole {ROOT}", user="spark")
    told = driver.up(TWIN)
    assert told.code == 0, told.text
    assert tree_checksums(here, ROOT) == tree_checksums(there, ROOT) == tree_checksums(here, f"{ROOT}.whole")


@pytest.mark.full
def test_a_model_that_is_whole_nowhere_is_refused(driver: StageDriver, testbed_nodes: list[ContainerNode]) -> None:
    """A folder has no other source than the nodes: the start reports which file lacks where, and touches nothing."""
    for node in testbed_nodes:
        put_folder(node, size=MIB)
        node.sh(f"rm {FOLDER}/model-00003-of-00003.safetensors {FOLDER}/model.safetensors.index.json")
    before = [everything(node) for node in testbed_nodes]
    told = driver.up({**REAL, "model": {"path": "tiny", "served_name": "tiny"}})
    told.is_one_message(1, "MODEL001", "spark-1", "spark-2", "model-00003-of-00003.safetensors (absent")
    simulated = driver.up(BY_PATH)
    simulated.is_one_message(1, "tiny is complete on no node", "model-00003-of-00003.safetensors (absent")
    assert [everything(node) for node in testbed_nodes] == before


@pytest.mark.full
def test_a_model_in_several_gguf_files_is_one_model(driver: StageDriver, testbed_nodes: list[ContainerNode]) -> None:
    """It is named by its first file; all parts count and travel, a part that lacks is named."""
    here, there = testbed_nodes
    there.sh(
        "mkdir -p models && cd models && for n in 1 2 3; do head -c 1M /dev/urandom > big-0000$n-of-00003.gguf; done",
        user="spark",
    )
    here.sh("mkdir -p models && echo mine > models/other.gguf", user="spark")
    recipe = {**BY_PATH, "model": {**BY_PATH["model"], "path": "big-00001-of-00003.gguf"}}
    driver.up(recipe)  # the twin cannot load a file: only staging is looked at
    assert len(tree_checksums(here, "/home/spark/models")) == 4
    assert set(tree_checksums(there, "/home/spark/models")) < set(tree_checksums(here, "/home/spark/models"))
    assert driver.run("down", "tiny").code == 0  # its ranks may run still
    for node in testbed_nodes:
        node.sh("rm /home/spark/models/big-00002-of-00003.gguf")
    told = driver.up(recipe, "--name", "other")
    told.is_one_message(1, "big-00002-of-00003.gguf (absent")


def without_keys(nodes: list[ContainerNode]) -> None:
    for node in nodes:
        node.sh("rm -f /home/spark/.ssh/id_*")
