"""Every engine that spans nodes, on two of them: started by its renderer's own commands, serving, hurt, taken down.

Ray and mpirun are the real ones, sshd and dockerd too; vLLM, SGLang, TensorRT-LLM and llama.cpp are the simulator,
which takes their flags, joins as they do and states that it is simulated.
"""

import re
from itertools import cycle
from pathlib import Path

import pytest

from cluster.drive import NAME, QUICK, RUNTIMES, CommandDriver, assert_clean, containers
from cluster.engines_drive import (
    ENGINES,
    HEADS,
    HOST_IP,
    WORKERS,
    cut_off,
    kill_engine,
    listening,
    put_models,
    recipe,
    streamed,
    variables,
)
from cluster.stage_drive import wait_for
from patience import wait_until
from testbed import ContainerNode
from testbed.settings import FABRIC_DEVICE

# Real Ray over two nodes always, the other engines where all is asked for.
ENGINE = pytest.mark.parametrize(
    "engine", [ENGINES[0], *(pytest.param(engine, marks=pytest.mark.full) for engine in ENGINES[1:])]
)
RUNTIME = pytest.mark.parametrize("runtime", RUNTIMES)
# Both runtimes for both sides, and each pair once: a start of Ray takes ten seconds.
VICTIMS = [
    *((engine, runtime, 1) for engine, runtime in zip(ENGINES, cycle(("docker", "process")), strict=False)),
    *(
        pytest.param(engine, runtime, 0, marks=pytest.mark.full)
        for engine, runtime in zip(ENGINES, cycle(("process", "docker")), strict=False)
    ),
]


@pytest.fixture(autouse=True)
def prepared(driver: CommandDriver, testbed_nodes: list[ContainerNode], tmp_path: Path) -> None:
    driver.simulated = True
    put_models(testbed_nodes, tmp_path)


@RUNTIME
@ENGINE
def test_it_serves_over_two_nodes_and_leaves_nothing(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], engine: str, runtime: str
) -> None:
    """Ready with a real streamed answer, both ranks in `status`, all of it marked, and after `down` no trace."""
    before = [listening(node) for node in testbed_nodes]
    told = driver.good("up", recipe(driver, engine, runtime), "--json").json
    assert told["done"] == "ready" and told["simulated"] and told["answer"]["completion_tokens"] > 0
    assert "simulated" in streamed(testbed_nodes[0])
    (found,) = driver.good("status", "--json").json["deployments"]
    assert found["state"] == "ready" and found["simulated"]
    ranks = [(r["rank"], r["node"], r["runtime"]) for r in found["ranks"]]
    assert ranks == [(0, "spark-1", runtime), (1, "spark-2", runtime)]
    assert "SIMULATED" in driver.good("logs", NAME, "--tail", "0").out
    if runtime == "docker":
        each_rank_has_its_own_nodes_fabric(testbed_nodes, engine)
    elif engine in ("llama-cpp", "sglang"):
        the_worker_opens_no_port_beyond_the_fabric(testbed_nodes[1], before[1], engine)
    driver.good("down", NAME)
    assert_clean(testbed_nodes)
    assert [listening(node) for node in testbed_nodes] == before


def each_rank_has_its_own_nodes_fabric(nodes: list[ContainerNode], engine: str) -> None:
    """Addresses and interfaces are the node's, never the head's; the mark is on every container."""
    for node in nodes:
        (found,) = containers(node)
        has = variables(found)
        assert found["Config"]["Labels"]["sparkwright.simulated"] == "true"
        if engine != "llama-cpp":
            assert (has["NCCL_SOCKET_IFNAME"], has["GLOO_SOCKET_IFNAME"]) == (FABRIC_DEVICE, FABRIC_DEVICE)
        if engine in HOST_IP:
            assert has[HOST_IP[engine]] == node.fabric
    if engine == "vllm-ray":
        told = f"rank 1 has VLLM_HOST_IP={nodes[1].fabric} NCCL_SOCKET_IFNAME={FABRIC_DEVICE}"
        wait_for(nodes[0], f"docker logs sparkwright-{NAME}-rank0 2>&1 | grep -q '{told}'")


def the_worker_opens_no_port_beyond_the_fabric(worker: ContainerNode, before: set[str], engine: str) -> None:
    """llama.cpp's RPC asks nobody for a key, and SGLang's worker has a server that nobody needs."""
    wait_until(lambda: listening(worker) - before, "the worker's port")  # `up` is ready by the head alone
    opened = {address.rpartition(":")[0] for address in listening(worker) - before}
    assert opened == {worker.fabric if engine == "llama-cpp" else "127.0.0.1"}


@pytest.mark.full
def test_the_mpi_agent_waits_on_the_fabric_only(driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """A worker's one port is the agent's before the head comes, on its fabric address."""
    before = listening(testbed_nodes[1])
    head = testbed_nodes[0]
    with cut_off(head, testbed_nodes[1].fabric):
        call = driver.start("up", recipe(driver, "trtllm", "docker")).saw("agent waits for the head")
        opened = listening(testbed_nodes[1]) - before
        call.kill()
    assert opened == {f"{testbed_nodes[1].fabric}:25000"}
    driver.good("down", NAME)
    assert_clean(testbed_nodes)


@pytest.mark.full
@pytest.mark.parametrize(("engine", "runtime", "rank"), VICTIMS)
def test_a_killed_rank_is_named_and_down_leaves_nothing(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], engine: str, runtime: str, rank: int
) -> None:
    """SIGKILL leaves no time for a message: `status` reports who is gone, and `down` clears both nodes."""
    driver.good("up", recipe(driver, engine, runtime))
    kill_engine(testbed_nodes[rank], (HEADS, WORKERS)[rank][engine])
    # A launcher ends some moments after what it launched, and its exit code is written after that
    wait_until(lambda: "exited with code 137" in driver.run("status").out, lambda: str(driver.run("status")))
    status = driver.run("status")
    assert status.code == 1 and re.search(r"degraded|failed", status.out), str(status)
    assert f"rank {rank} on {testbed_nodes[rank].name} exited with code 137" in status.out, str(status)
    driver.good("down", NAME)
    assert_clean(testbed_nodes)


@pytest.mark.full
def test_a_ray_cluster_of_one_node_is_named_before_weights(
    driver: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """The worker's node does not reach the head: how many nodes are there is reported, and vLLM never starts."""
    limits = {"start": {"stuck_after": "60s"}}
    with cut_off(testbed_nodes[1], testbed_nodes[0].fabric):
        done = driver.run("up", recipe(driver, "vllm-ray", "process", phases=limits))
    assert done.code == 5 and "1 of 2 nodes" in done.err, str(done)
    assert "loading" not in done.err.lower() and "vllm.entrypoints" not in done.err, str(done)
    driver.good("down", NAME)
    assert_clean(testbed_nodes)


@pytest.mark.full
def test_a_capture_that_hangs_is_called_stuck(driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """Report 001's half hour at 0 graphs: SGLang prints its bar once and no more."""
    hung = {**QUICK, "SPARKWRIGHT_SIMULATOR_FAULT": "rank=1:freeze@graphs"}
    done = driver.run("up", recipe(driver, "sglang", "process", hung, phases={"graphs": {"stuck_after": "2s"}}))
    assert done.code == 5 and "stuck" in done.err and "graphs" in done.err, str(done)
    driver.good("down", NAME)
    assert_clean(testbed_nodes)
