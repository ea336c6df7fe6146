"""Room for the weights: refused before anything is copied, and reported plainly when it runs out on the way."""

from pathlib import Path

import pytest

from cluster.stage_drive import (
    FOLDER,
    MIB,
    REAL,
    StageDriver,
    everything,
    put_folder,
    restore_fabric,
    slow_fabric,
    tree_checksums,
    wait_for,
    wait_for_result,
)
from patience import wait_until
from testbed import ContainerNode

GIB = 1 << 30
MODELS = "/home/spark/models"
BY_PATH = {**REAL, "model": {"path": "tiny", "served_name": "tiny"}}


@pytest.fixture
def driver(tmp_path: Path, ssh_config: Path) -> StageDriver:
    return StageDriver(tmp_path, ssh_config)


@pytest.mark.full
def test_a_node_without_room_is_refused_before_a_byte_moves(
    driver: StageDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """DISK001 reports what is expected and what is free, on which file system; both nodes stay as they are."""
    here, there = testbed_nodes
    put_folder(there, size=20 * MIB)
    here.fill_disk(MODELS, leave_bytes=8 * MIB)
    before = [everything(node) for node in testbed_nodes]
    told = driver.up(BY_PATH)
    told.is_one_message(1, "DISK001", "spark-1", "weights 60.0 MiB", "needed, 8.0 MiB free on /home/spark/models")

    def is_unchanged() -> bool:
        return [everything(node) for node in testbed_nodes] == before

    # As in assert_clean: the last commands of `up` end a moment later
    wait_until(is_unchanged, lambda: f"{before}, but {[everything(node) for node in testbed_nodes]}")


@pytest.mark.full
def test_a_path_of_its_own_is_looked_at_where_it_lies(driver: StageDriver, testbed_nodes: list[ContainerNode]) -> None:
    """A model outside the usual folders: the file system of that very path counts."""
    here, there = testbed_nodes
    put_folder(there, path="/home/spark/data/tiny")
    here.fill_disk("/home/spark/data", leave_bytes=MIB)
    told = driver.up({**REAL, "model": {"path": "~/data/tiny", "served_name": "tiny"}})
    told.is_one_message(1, "DISK001", "free on /home/spark/data")
    assert tree_checksums(here, "/home/spark/data/tiny") == []


@pytest.mark.full
def test_a_disk_that_fills_up_on_the_way(driver: StageDriver, testbed_nodes: list[ContainerNode]) -> None:
    """Room for all of it is taken before the first byte: what else fills the disk meanwhile ends no copy of hours."""
    here, there = testbed_nodes
    put_folder(there, size=24 * MIB)
    here.fill_disk(MODELS, leave_bytes=2 * GIB + 250 * MIB, size=f"{2 * GIB + 260 * MIB}")
    slow_fabric(there, "80mbit")
    try:
        with driver.running("up", driver.write("tiny.yaml", BY_PATH), "--detach") as running:
            wait_for(here, f"[ $(ls {FOLDER}/.sparkwright-partial/*.journal 2>/dev/null | wc -l) -ge 3 ]")
            free = f"$(($(stat -f -c '%a * %S' {MODELS}) - {8 * MIB}))"
            wait_for(here, f"fallocate -l {free} {MODELS}/.other 2>/dev/null")
            told = wait_for_result(running)
    finally:
        restore_fabric(there)
    assert told.code == 0, told.text
    assert tree_checksums(here, FOLDER) == tree_checksums(there, FOLDER)
