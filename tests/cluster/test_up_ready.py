"""`up` to an answering endpoint on two nodes, and everything that one does with it afterwards."""

import re
import subprocess
from typing import Any

import pytest

from cluster.drive import (
    LABELS,
    NAME,
    RUNTIMES,
    SLOW,
    CommandDriver,
    assert_clean,
    containers,
    engines,
    lift_memlock,
    read_lease,
    running,
)
from fakes.ports import free_port
from patience import PATIENCE, wait_until
from testbed import ContainerNode

RUNTIME = pytest.mark.parametrize("runtime", RUNTIMES)


@pytest.mark.both_runtimes
@RUNTIME
def test_up_serves_and_down_leaves_nothing(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], runtime: str
) -> None:
    """A recipe leads to tokens counted by the server, ranks on both nodes, their logs, and after `down` no trace."""
    recipe = driver.recipe(runtime)
    plan = driver.good("plan", recipe, "--json").json
    assert [(rank["rank"], rank["node"]) for rank in plan["ranks"]] == [(0, "spark-1"), (1, "spark-2")]
    told = driver.good("up", recipe, "--json").json
    assert told["done"] == "ready" and told["simulated"]
    assert told["answer"]["completion_tokens"] > 0 and told["answer"]["text"]
    assert [len(engines(node)) for node in testbed_nodes] == [1, 1]
    assert "--headless" in engines(testbed_nodes[1])[0] and "--headless" not in engines(testbed_nodes[0])[0]
    assert [read_lease(node) for node in testbed_nodes] == ["", ""]
    status = driver.good("status", "--json").json
    (found,) = status["deployments"]
    assert found["state"] == "ready" and status["unreachable"] == []
    assert [(r["rank"], r["node"], r["runtime"]) for r in found["ranks"]] == [
        (0, "spark-1", runtime),
        (1, "spark-2", runtime),
    ]
    logs = driver.good("logs", NAME, "--tail", "0").out
    assert "0| " in logs and "1| " in logs and "Application startup complete" in logs
    assert driver.good("down", NAME).out == f"{NAME}: 2 rank(s) removed\n"
    assert_clean(testbed_nodes)
    assert driver.good("status").out == "nothing runs\n"


def test_containers_are_what_an_engine_on_a_gb10_needs(
    driver: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """Host network and IPC, an init, no restart, lifted limits, shared memory, kept logs, and labels."""
    for node in testbed_nodes:
        lift_memlock(node)
    told = driver.good("up", driver.recipe("docker", shm="96m"), "--json").json
    for rank, node in enumerate(testbed_nodes):
        (found,) = containers(node)
        host: dict[str, Any] = found["HostConfig"]
        assert (host["NetworkMode"], host["IpcMode"], host["Init"]) == ("host", "host", True)
        assert host["RestartPolicy"]["Name"] == "no" and host["AutoRemove"] is False
        limits = {u["Name"]: u["Hard"] for u in host["Ulimits"]}
        assert limits == {"memlock": -1, "stack": 67108864}
        assert host["ShmSize"] == 96 << 20
        labels = found["Config"]["Labels"]
        assert {key: labels[f"sparkwright.{key}"] for key in LABELS} == {
            "deployment": NAME,
            "rank": str(rank),
            "recipe-hash": told["plan"]["recipe_hash"],
        }
        assert found["Name"] == f"/sparkwright-{NAME}-rank{rank}"
        assert "sparkwright.simulator" in " ".join([*found["Config"]["Entrypoint"], *found["Args"]])


@pytest.mark.full
@RUNTIME
def test_a_second_up_does_nothing(driver: CommandDriver, testbed_nodes: list[ContainerNode], runtime: str) -> None:
    """The same ranks go on, no lease is needed, and the answer is there at once."""
    recipe = driver.recipe(runtime)
    driver.good("up", recipe)
    before = running(testbed_nodes)
    again = driver.good("up", recipe)
    assert "already serving" in again.out
    assert running(testbed_nodes) == before
    notes = "".join(n.sh("cat /home/spark/.local/state/sparkwright/audit.log") for n in testbed_nodes)
    assert notes.count("take lease") == 2


@pytest.mark.full
@RUNTIME
def test_a_changed_recipe_replaces_the_ranks(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], runtime: str
) -> None:
    """The running ranks are those of the present recipe, and nothing of the old ranks is left next to them."""
    driver.good("up", driver.recipe(runtime))
    before = running(testbed_nodes)
    told = driver.good("up", driver.recipe(runtime, serving={"context": 16384}), "--json").json
    after = running(testbed_nodes)
    assert told["done"] == "ready"
    assert [len(ids) for ids in after.values()] == [1, 1]
    assert not {i for ids in before.values() for i in ids} & {i for ids in after.values() for i in ids}
    assert all("--max-model-len 16384" in engines(node)[0] for node in testbed_nodes)


@pytest.mark.full
def test_a_change_of_runtime_leaves_no_rank_of_the_old_one(
    driver: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """A deployment is its name: as processes it replaces what ran as containers, secrets and all."""
    driver.good("up", driver.recipe("docker"))
    driver.good("up", driver.recipe("process"))
    assert [containers(node) for node in testbed_nodes] == [[], []]
    assert [len(engines(node)) for node in testbed_nodes] == [1, 1]


@pytest.mark.full
@RUNTIME
def test_up_attaches_to_ranks_that_are_still_loading(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], runtime: str
) -> None:
    """A second caller watches the first one's ranks and gets the same endpoint."""
    recipe = driver.recipe(runtime, SLOW | {"SPARKWRIGHT_SIMULATOR_TIME_SCALE": "1"})  # the machine may be busy
    first = driver.start("up", recipe).saw("rendezvous")
    before = running(testbed_nodes)
    second = driver.run("up", recipe)
    assert second.code == 0 and "watching them" in second.err and "answer" in second.out, str(second)
    assert first.finish().code == 0
    assert running(testbed_nodes) == before


@pytest.mark.full
def test_detach_returns_once_the_ranks_run(driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """--detach does not wait for the engine, and `status` reports the truth before and after."""
    slow = SLOW | {"SPARKWRIGHT_SIMULATOR_TIME_SCALE": "1"}  # a busy machine asks late
    told = driver.good("up", driver.recipe("process", slow), "--detach", "--json").json
    assert told["done"] == "detached" and told["answer"] is None
    assert driver.shown()["state"] == "loading"
    wait_until(lambda: driver.shown()["state"] == "ready", "ready")


@pytest.mark.full
@RUNTIME
def test_a_reboot_of_the_worker_is_reported_and_cleaned_up(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], runtime: str
) -> None:
    """The endpoint is degraded after the reboot, whatever /health reports, and `down` clears both nodes."""
    driver.good("up", driver.recipe(runtime))
    testbed_nodes[1].reboot()
    status = driver.run("status")
    assert status.code == 1 and "degraded" in status.out and "rank 1 on spark-2 exited" in status.out, str(status)
    driver.good("down", NAME)
    assert_clean(testbed_nodes)


@pytest.mark.full
def test_a_server_that_gives_no_token_is_degraded(driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """/health reports 200 and both ranks run; only a real token reports that the engine is still."""
    frozen = {"SPARKWRIGHT_SIMULATOR_TIME_SCALE": "0", "SPARKWRIGHT_SIMULATOR_FAULT": "freeze_after=1"}
    driver.good("up", driver.recipe("process", frozen))
    assert testbed_nodes[0].sh("curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8000/health") == "200"
    status = driver.run("status")
    assert status.code == 1 and "degraded" in status.out and "no token within 5 s" in status.out, str(status)


@pytest.mark.full
def test_the_request_that_up_prints_works_as_pasted(driver: CommandDriver) -> None:
    """The whole block in a plain shell on this machine: tunnel, authority, key, and tokens of the model come back."""
    driver.supervise = True
    said = driver.good("up", driver.recipe("process", serving={"door": {"port": free_port()}})).out
    block = said.partition("try it\n")[2].replace(" sleep 600", " sleep 20")
    home = {"HOME": str(driver.folder / "home"), "PATH": "/usr/bin:/bin"}
    with (driver.folder / "pasted").open("w+") as out:  # a pipe would stay open as long as the tunnel does
        subprocess.run(["bash", "-e", "-c", block], stdout=out, stderr=out, env=home, timeout=PATIENCE, check=False)
        out.seek(0)
        answer = out.read()
    assert re.search(r'"completion_tokens": ?[1-9]', answer), (said, answer)
