"""A start on two real nodes, one of which gets short of memory: a container with a limit, real files, real ssh."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.stage_drive import MIB, REAL, Drive, Result, ended, put_folder, wait_for
from testbed import Node

LIMIT, FLOOR = 1024, 200  # MiB
STAT = "/sys/fs/cgroup/memory/memory.stat"
# An engine whose weights grow to HOLD MiB while it reads its files again and again; it never serves.
ENGINE = """
import glob, os, sys
held, hold = [], int(open("/tmp/hold").read())
print("(Worker_TP0 pid=1) INFO 11-21 09:01:57 [gpu_model_runner.py:4857] Starting to load model m...", flush=True)
while True:
    for path in sorted(glob.glob(os.path.expanduser("~/models/tiny/*.safetensors"))):
        with open(path, "rb", buffering=0) as file:
            while block := file.read(1 << 20):
                if len(held) < hold:
                    held.append(bytearray(block))
"""
RECIPE = {
    **REAL,
    "model": {"path": "tiny", "served_name": "tiny"},
    "engine": {**REAL["engine"], "entrypoint": ["python3", "-c", ENGINE]},
    "serving": {**REAL["serving"], "memory_fraction": 0.1},
}


@pytest.fixture
def drive(tmp_path: Path, ssh_config: Path) -> Drive:
    return Drive(tmp_path, ssh_config)


@pytest.fixture
def short(nodes: list[Node]) -> Iterator[Node]:
    """The second node has 1 GiB, and its rank wants nearly all of it."""
    for node, hold in zip(nodes, (64, 930), strict=True):
        put_folder(node, shards=3, size=256 * MIB)
        node.write("/tmp/hold", str(hold))
    limit(nodes[1], f"{LIMIT}m")
    yield nodes[1]
    limit(nodes[1], "900g")


def limit(node: Node, size: str) -> None:
    node._daemon.docker("update", "--memory", size, "--memory-swap", size, node.spec.container)


def ranks(node: Node) -> list[str]:
    return [process.command for process in node.processes() if "gpu_model_runner" in process.command]


def started(drive: Drive, guard: bool) -> Result:
    recipe = drive.write("tiny.yaml", {**RECIPE, "loading": {"guard": guard, "floor": f"{FLOOR}m"}})
    return drive.run("up", recipe, "--force", "a test", timeout=120)


def test_a_load_that_outgrows_its_node_is_stopped_before_the_node_stalls(
    drive: Drive, nodes: list[Node], short: Node
) -> None:
    """The reason, the curve and the setting are named; both ranks end in order, and the kernel killed none of them."""
    kills = short.sh("sed -n 's/^oom_kill //p' /proc/vmstat")
    told = started(drive, guard=True)
    told.is_one_message(5, "stopped while loading: spark-2 has", "the floor is 0.2 GiB")
    assert "lower serving.memory_fraction (0.1)" in told.text and "spark-2 -1 s: MemFree" in told.text
    assert [ranks(node) for node in nodes] == [[], []]
    assert short.sh("sed -n 's/^oom_kill //p' /proc/vmstat") == kills
    (kept,) = drive.folder.rglob("memory-spark-2.jsonl")
    samples = [json.loads(line) for line in kept.read_text().splitlines()]
    assert samples[-1]["available"] < FLOOR * MIB <= samples[0]["available"]
    assert drive.run("down", "tiny").code == 0


def test_a_load_that_fits_is_not_stopped(drive: Drive, nodes: list[Node], short: Node) -> None:
    """Page cache of the files fills the node: below the soft floor it is evicted, and nothing is stopped for it."""
    short.write("/tmp/hold", "300")
    recipe = drive.write("tiny.yaml", {**RECIPE, "loading": {"floor": f"{FLOOR}m"}})
    up = drive.start("up", recipe, "--force", "a test")
    try:
        wait_for(short, f"[ $(sed -n 's/^total_rss //p' {STAT}) -gt {330 * MIB} ]", 60)
        short.sh("sleep 3")
        assert up.poll() is None and ranks(short)
    finally:
        up.terminate()
        ended(up)
