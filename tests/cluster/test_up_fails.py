"""Engines that do not come up: who, where, when, why, with the proof; ranks stopped, evidence kept, `down` cleans."""

import re
from pathlib import Path

import pytest

from cluster.drive import (
    BRISK,
    NAME,
    QUICK,
    RUNTIMES,
    SLOW,
    CallResult,
    CommandDriver,
    assert_clean,
    assert_stopped,
    engines,
)
from testbed import ContainerNode

RUNTIME = pytest.mark.parametrize("runtime", RUNTIMES)


def fault_env(text: str, **more: str) -> dict[str, str]:
    return {**QUICK, **more, "SPARKWRIGHT_SIMULATOR_FAULT": text}


def run_failing_up(drive: CommandDriver, recipe: str, nodes: list[ContainerNode]) -> CallResult:
    """A failed `up`: exit 5, all ranks stopped on both nodes, logs of both kept here."""
    done = drive.run("up", recipe)
    assert done.code == 5, str(done)
    assert_stopped(nodes)
    (line,) = re.findall(r"^logs: +(\S+)$", done.err, re.MULTILINE)
    # What the guard has sampled of a node lies there, too, where the start lasted long enough
    kept = sorted(path.name for path in Path(line).iterdir() if not path.name.startswith("memory-"))
    assert kept == ["diagnosis.json", "rank0-spark-1.log", "rank1-spark-2.log"]
    assert all(path.read_text().strip() for path in Path(line).iterdir())
    return done


def cleans(drive: CommandDriver, nodes: list[ContainerNode]) -> None:
    drive.good("down", NAME)
    assert_clean(nodes)


@RUNTIME
def test_a_worker_that_dies_while_loading_ends_the_wait(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], runtime: str
) -> None:
    """The rank that ended first is named with node, phase, code and last lines, and not the head that it took along."""
    done = run_failing_up(driver, driver.recipe(runtime, fault_env("rank=1:die@load:exit=3")), testbed_nodes)
    assert re.search(r"error: rank 1 on spark-2 exited with code 3 in phase (load|rendezvous)", done.err), str(done)
    assert "  | " in done.err and "Using AttentionBackendEnum" in done.err, str(done)
    assert f"sparkwright down {NAME}" in done.err
    assert driver.good("logs", NAME, "--rank", "1").out.startswith("1| ")
    status = driver.run("status")
    assert status.code == 1 and "failed" in status.out and "exited with code 3" in status.out, str(status)
    cleans(driver, testbed_nodes)


@pytest.mark.full
@RUNTIME
def test_a_head_that_dies_ends_the_wait(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], runtime: str
) -> None:
    """The head's own end is reported as its own, although its workers end with it."""
    done = run_failing_up(driver, driver.recipe(runtime, fault_env("rank=0:die@graphs:exit=7")), testbed_nodes)
    assert re.search(r"error: rank 0 on spark-1 exited with code 7 in phase (compile|warmup)", done.err), str(done)
    cleans(driver, testbed_nodes)


@pytest.mark.full
def test_an_engine_that_stalls_is_called_stuck(driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """The start ends after the phase's own limit, with the rank that the others wait for, and not after an hour."""
    limits = {name: {"stuck_after": "10s"} for name in ("rendezvous", "load", "compile", "warmup", "graphs")}
    done = run_failing_up(
        driver, driver.recipe("docker", fault_env("rank=1:freeze@load"), phases=limits), testbed_nodes
    )
    found = re.search(r"error: stuck: no rank has progressed for (\d+) s ", done.err)
    assert found and int(found[1]) >= 10 and "rank 1" in done.err, str(done)
    cleans(driver, testbed_nodes)


@pytest.mark.full
def test_a_server_that_never_answers_is_called_stuck(driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """All is up and /health reports 200; only the missing answer reports."""
    recipe = driver.recipe("process", fault_env("freeze_after=0"), phases={"answer": {"stuck_after": "2s"}})
    done = run_failing_up(driver, recipe, testbed_nodes)
    assert "(phase answer)" in done.err and "spark-1" in done.err, str(done)
    cleans(driver, testbed_nodes)


@pytest.mark.full
@RUNTIME
def test_out_of_memory_is_reported_with_the_engine_s_own_line(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], runtime: str
) -> None:
    """The proof is in the message: nobody has to look for it in a log."""
    done = run_failing_up(driver, driver.recipe(runtime, fault_env("rank=1:oom@load")), testbed_nodes)
    assert "error: rank 1 on spark-2 exited with code 1" in done.err, str(done)
    assert "torch.OutOfMemoryError: CUDA out of memory" in done.err, str(done)
    cleans(driver, testbed_nodes)


@pytest.mark.full
def test_the_kernel_s_kill_is_reported(driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """A container that was killed reports it with the signal."""
    call = driver.start("up", driver.recipe("docker", SLOW)).saw("rank 1 spark-2  rendezvous")
    testbed_nodes[1].sh(f"docker kill sparkwright-{NAME}-rank1")
    done = call.finish()
    assert done.code == 5 and "rank 1 on spark-2 exited with code 137 (SIGKILL" in done.err, str(done)
    cleans(driver, testbed_nodes)


@pytest.mark.full
def test_a_down_by_somebody_else_ends_the_wait(driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """A waiting `up` names who took the deployment down, and neither command leaves anything behind."""
    call = driver.start("up", driver.recipe("process", SLOW)).saw("rank 1 spark-2  rendezvous")
    driver.good("down", NAME)
    done = call.finish()
    assert done.code == 5 and re.search(r"error: drill was taken down by \S+@\S+ at .*, before it was ready", done.err)
    assert_clean(testbed_nodes)


@pytest.mark.full
def test_a_node_that_goes_away_ends_the_wait_and_is_named_by_all(
    driver: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """The ranks elsewhere are stopped, for they would wait for ever; then each verb reports which node is missing."""
    recipe = driver.recipe("process", fault_env("rank=0:freeze@load"))
    call = driver.start("up", recipe).saw("rank 1 spark-2  load")
    testbed_nodes[1].stop()
    done = call.finish()
    assert "trying again for 20 s" in done.err, str(done)
    assert engines(testbed_nodes[0]) == []
    calls = [driver.start("up", recipe), driver.start("status")]
    up, status, down = *(call.finish() for call in calls), driver.run("down", NAME)
    for told in (done, up, status, down):
        assert told.code == 3 and "spark-2: " in told.err and "Traceback" not in told.err, str(told)
    assert "rank 1 is on no node that answered" in status.out, str(status)
    assert "spark-1: nothing is left of drill" in down.err, str(down)
    assert_clean(testbed_nodes[:1])
    testbed_nodes[1].start()
    cleans(driver, testbed_nodes)


@pytest.mark.full
def test_a_broken_connection_is_no_broken_engine(driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """sshd's sessions end while the engine loads: `up` connects again, loses no line, and gets its answer."""
    call = driver.start("up", driver.recipe("docker", BRISK)).saw("rank 1 spark-2  rendezvous")
    testbed_nodes[1].sh("pkill -KILL -f '[s]shd.*: spark'")
    done = call.finish()
    assert done.code == 0 and "trying again" in done.err, str(done)
    cleans(driver, testbed_nodes)
