"""A start on two real nodes, one of which gets short of memory: a container with a limit, real files, real ssh.

Scaled to this machine: 0.7 to 3.3 GiB a node, and 0.8 GiB of files that are read again and again. The kernel gives
back clean page cache of a container cheaply, so pressure (PSI) stays below 10 % here: what stalls is a container at its
limit in which nothing may be killed, as a GB10 whose driver's memory is no task's.
"""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cluster.stage_drive import MIB, REAL, StageDriver, StageResult, put_folder, wait_for, wait_for_result
from patience import PATIENCE
from testbed import ContainerNode
from testbed.shell import wait_until

pytestmark = pytest.mark.full

FLOOR = 200  # MiB
RANK = "/home/spark/.local/state/sparkwright/deployments/tiny/rank1"
# An engine whose weights grow to HOLD MiB while it reads its files again and again; it never serves.
ENGINE = """
import glob, os
held, hold = [], int(open("/tmp/hold").read())
print("(Worker_TP0 pid=1) INFO 11-21 09:01:57 [gpu_model_runner.py:4857] Starting to load model m...", flush=True)
def read(file):
    try:
        return file.read(1 << 20)
    except OSError:  # no memory: again, as a driver does
        return b"."
for turn in range(1000000):
    for path in sorted(glob.glob(os.path.expanduser("~/models/tiny/*.safetensors"))):
        with open(path, "rb", buffering=0) as file:
            while block := read(file):
                if len(held) < hold:
                    held.append(bytearray(block))
    if len(held) == hold:
        open("/tmp/loaded", "w").close()
"""
RECIPE = {
    **REAL,
    "model": {"path": "tiny", "served_name": "tiny"},
    "engine": {**REAL["engine"], "entrypoint": ["python3", "-c", ENGINE]},
    "serving": {**REAL["serving"], "memory_fraction": 0.1},
}


@pytest.fixture
def driver(tmp_path: Path, ssh_config: Path) -> StageDriver:
    return StageDriver(tmp_path, ssh_config)


@contextmanager
def node_short_of_memory(nodes: list[ContainerNode], limit: int, hold: int) -> Iterator[ContainerNode]:
    """The second node has `limit` MiB, and its rank wants `hold`."""
    for node, size in zip(nodes, (64, hold), strict=True):
        put_folder(node, shards=3, size=256 * MIB)
        node.write("/tmp/hold", str(size))
        node.sh("rm -f /tmp/loaded")
    limited(nodes[1], f"{limit}m")
    try:
        yield nodes[1]
    finally:
        limited(nodes[1], "900g")


def limited(node: ContainerNode, size: str) -> None:
    node._daemon.docker("update", "--memory", size, "--memory-swap", size, node.spec.container)


def rank_commands(node: ContainerNode) -> list[str]:
    return [process.command for process in node.processes() if "gpu_model_runner" in process.command]


def recipe(drive: StageDriver, **loading: object) -> str:
    return drive.write("tiny.yaml", {**RECIPE, "loading": loading})


def answers(node: ContainerNode) -> bool:
    """True if a login over ssh takes less than thirty seconds; a stalled node never answers."""
    try:
        return node.ssh("true", check=False, timeout=30).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def killed(node: ContainerNode) -> str:
    return node.sh("sed -n 's/^oom_kill //p' /proc/vmstat")


def stopped(drive: StageDriver, node: ContainerNode, recipe: str) -> StageResult:
    """The load is stopped in order; while it runs, and after it, the node answers."""
    up = drive.start("up", recipe, "--force", "a test")
    while up.poll() is None:
        assert answers(node)
    assert answers(node)
    return wait_for_result(up)


def test_a_load_that_outgrows_its_node_is_stopped_before_the_node_stalls(
    driver: StageDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """The reason, the curve and the setting are named; both ranks end in order, and the kernel killed none of them."""
    with node_short_of_memory(testbed_nodes, 1024, hold=930) as node:
        before = killed(node)
        done = stopped(driver, node, recipe(driver, floor=f"{FLOOR}m"))
        done.is_one_message(5, "stopped while loading: spark-2 has", "the floor is 0.2 GiB")
        assert "lower serving.memory_fraction (0.1)" in done.text and "spark-2 -1 s: MemFree" in done.text
        assert [rank_commands(one) for one in testbed_nodes] == [[], []]
        assert killed(node) == before
    (kept,) = driver.folder.rglob("memory-spark-2.jsonl")
    samples = [json.loads(line) for line in kept.read_text().splitlines()]
    assert samples[-1]["available"] < FLOOR * MIB <= samples[0]["available"]
    assert driver.run("down", "tiny").code == 0


@pytest.mark.full
def test_a_detached_start_is_guarded_by_the_node_itself(
    driver: StageDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """The node stops its own rank while ssh answers, and keeps the reason where the rank's log is."""
    with node_short_of_memory(testbed_nodes, 1024, hold=930) as node:
        words = ("--detach", "--no-supervise", "--force", "a test")
        assert wait_for_result(driver.start("up", recipe(driver, floor=f"{FLOOR}m"), *words)).code == 0
        wait_for(node, f"grep -q 'Starting to load model' {RANK}/log")
        wait_until(lambda: answers(node) and not rank_commands(node), "the rank to be stopped", PATIENCE)
        kept = node.sh(f"cat {RANK}/stopped-for-memory.jsonl")
        assert json.loads(kept.splitlines()[-1])["stop"] == "memory"
        wait_until(lambda: not node.sh("pgrep -u spark -f 'Samples this node' || true"), "the guard to end", PATIENCE)


@pytest.mark.full
def test_without_the_guard_the_same_load_stalls_its_node(
    driver: StageDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """ssh does not answer and nothing is killed, as owners report it: only a power cycle would help them."""
    with node_short_of_memory(testbed_nodes, 1024, hold=2000) as node, nothing_killed(node) as cgroup:
        before = killed(node)
        up = driver.start("up", recipe(driver, guard=False), "--force", "a test")
        try:
            full = cgroup / "memory.oom_control"
            wait_until(lambda: "under_oom 1" in full.read_text() or up.poll() is not None, "a full node", PATIENCE)
            assert up.poll() is None, wait_for_result(up).text
            assert not answers(node)
            assert killed(testbed_nodes[0]) == before
        finally:
            up.terminate()
            limited(node, "900g")
            wait_for_result(up)


@contextmanager
def nothing_killed(node: ContainerNode) -> Iterator[Path]:
    """The node's memory cgroup, with the kernel's OOM killer off."""
    name = node._daemon.docker("inspect", "-f", "{{.Id}}", node.spec.container)
    cgroup = Path("/sys/fs/cgroup/memory/docker", name)
    switch = cgroup / "memory.oom_control"
    if not switch.exists():
        pytest.skip("hardware: this kernel has no OOM killer that can be switched off for a container (cgroup v1)")
    switch.write_text("1")
    try:
        yield cgroup
    finally:
        switch.write_text("0")


def test_floors_come_from_the_plan(driver: StageDriver, testbed_nodes: list[ContainerNode]) -> None:
    """A recipe without a floor of its own is stopped at the one that its ledger gives."""
    with node_short_of_memory(testbed_nodes, 3300, hold=2500) as node:
        done = stopped(driver, node, recipe(driver))
        done.is_one_message(5, "stopped while loading: spark-2 has", "the floor is 2.4 GiB")
        assert [rank_commands(one) for one in testbed_nodes] == [[], []]
    assert driver.run("down", "tiny").code == 0


@pytest.mark.full
def test_a_load_that_fits_ends(driver: StageDriver, testbed_nodes: list[ContainerNode]) -> None:
    """Files of more than the node has: their pages are evicted while it reads, and nothing is stopped for them."""
    with node_short_of_memory(testbed_nodes, 700, hold=300) as node:
        up = driver.start("up", recipe(driver, floor=f"{FLOOR}m"), "--force", "a test")
        try:
            wait_for(node, "[ -e /tmp/loaded ]")
            assert up.poll() is None and rank_commands(node) and answers(node)
        finally:
            up.terminate()
            wait_for_result(up)
