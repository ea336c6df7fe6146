"""Ctrl-C in every phase: before the ranks run all is undone, after that they go on; nothing is ever left half done."""

import re
import signal
import time

import pytest

from cluster.drive import (
    BRISK,
    NAME,
    SLOW,
    Call,
    CallResult,
    CommandDriver,
    assert_clean,
    engines,
    read_lease,
    running,
    slowed,
)
from testbed import ContainerNode


def interrupted(call: Call) -> CallResult:
    """Exit 130 after the interrupt, and no traceback."""
    done = call.interrupt().finish()
    assert done.code == 130, str(done)
    assert "Traceback" not in done.err, str(done)
    return done


def goes_on(drive: CommandDriver, nodes: list[ContainerNode], recipe: str, done: CallResult) -> None:
    """The ranks run without us; the message states how to go on, and `up` does."""
    assert "continue to run" in done.err and f"sparkwright down {NAME}" in done.err, str(done)
    assert [read_lease(n) for n in nodes] == ["", ""]
    before = running(nodes)
    assert [len(ids) for ids in before.values()] == [1, 1]
    again = drive.good("up", recipe).out
    assert "already serving" in again or "ready after" in again, "by then, or watched until then"
    assert running(nodes) == before


@pytest.mark.full
@pytest.mark.parametrize("tty", [False, True], ids=["pipe", "terminal"])
def test_ctrl_c_while_facts_are_gathered_changes_nothing(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], tty: bool
) -> None:
    """Even when a node hangs: the call ends at once and was never a change."""
    testbed_nodes[1].freeze()
    call = driver.start("up", driver.recipe("process"), tty=tty).saw("facts: asking")
    time.sleep(0.5)
    interrupted(call)
    testbed_nodes[1].thaw()
    assert_clean(testbed_nodes)


@pytest.mark.full
def test_ctrl_c_while_an_image_is_copied_frees_the_leases(
    driver: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """Staging ends with its call, on both nodes."""
    testbed_nodes[1].sh(f"docker image rm --force {driver.testbed.engine_image} sparkwright/testbed-base:dev")
    call = driver.start("up", driver.recipe("docker")).saw("stage ...")
    time.sleep(0.5)
    done = interrupted(call)
    assert f"nothing of {NAME} is running" in done.err, str(done)
    assert_clean(testbed_nodes)


@pytest.mark.parametrize(
    ("runtime", "slow"),
    [pytest.param("docker", 1, marks=pytest.mark.full), ("process", 0)],
    ids=["docker-worker", "process-head"],
)
def test_ctrl_c_while_ranks_start_takes_them_away(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], runtime: str, slow: int
) -> None:
    """A start that is on its way is waited for and then undone: it cannot appear afterwards."""
    with slowed(testbed_nodes[slow], "docker" if runtime == "docker" else "setsid", 6, "run*|sh*"):
        call = driver.start("up", driver.recipe(runtime)).saw("start ranks")
        time.sleep(0.5)
        done = interrupted(call)
    assert f"nothing of {NAME} is running" in done.err, str(done)
    time.sleep(1)
    assert_clean(testbed_nodes)


@pytest.mark.parametrize(
    ("runtime", "tty"),
    [pytest.param("docker", True, marks=pytest.mark.full), ("process", False)],
    ids=["terminal", "pipe"],
)
def test_ctrl_c_while_the_engine_loads_leaves_it_loading(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], runtime: str, tty: bool
) -> None:
    """It only stops watching: the same ranks come up, and `up` watches on."""
    recipe = driver.recipe(runtime, BRISK)
    call = driver.start("up", recipe, tty=tty).saw("engine: simulator")
    done = interrupted(call)
    goes_on(driver, testbed_nodes, recipe, done)
    driver.good("down", NAME)
    assert_clean(testbed_nodes)


@pytest.mark.full
def test_ctrl_c_while_it_answers_leaves_it_serving(driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """A slow first answer is no reason to lose the engine."""
    recipe = driver.recipe(
        "process", {"SPARKWRIGHT_SIMULATOR_TIME_SCALE": "0", "SPARKWRIGHT_SIMULATOR_TOKEN_SCALE": "12"}
    )
    done = interrupted(driver.start("up", recipe).saw("asking for a real completion"))
    goes_on(driver, testbed_nodes, recipe, done)


@pytest.mark.full
def test_down_works_while_an_interrupted_engine_loads(
    driver: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """Nobody who changed their mind waits for the engine."""
    interrupted(driver.start("up", driver.recipe("docker", SLOW)).saw("engine: simulator"))
    driver.good("down", NAME)
    assert_clean(testbed_nodes)


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["SIGTERM", "SIGHUP"])
def test_a_closed_terminal_is_an_interrupt(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], number: signal.Signals
) -> None:
    """A lost ssh session or a service manager's stop leaves no lease and no half-started rank either."""
    with slowed(testbed_nodes[0], "setsid", 6, "sh*"):
        call = driver.start("up", driver.recipe("process")).saw("start ranks")
        call.process.send_signal(number)
        done = call.finish()
    assert done.code == 130, str(done)
    assert_clean(testbed_nodes)


@pytest.mark.full
def test_a_killed_watcher_does_not_matter(driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """SIGKILL while the engine loads: the ranks go on, no lease is left, and `up` watches on."""
    recipe = driver.recipe("docker", BRISK)
    driver.start("up", recipe).saw("engine: simulator").kill()
    assert [read_lease(n) for n in testbed_nodes] == ["", ""]
    before = running(testbed_nodes)
    driver.good("up", recipe)
    assert running(testbed_nodes) == before
    assert len(engines(testbed_nodes[0])) == 1


@pytest.mark.full
def test_ctrl_c_in_down_is_finished_by_the_next(driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """An interrupted `down` frees its leases; the next one goes on, and ends also what ignores SIGTERM."""
    stubborn = {"SPARKWRIGHT_SIMULATOR_TIME_SCALE": "0", "SPARKWRIGHT_SIMULATOR_FAULT": "ignore_sigterm"}
    driver.good("up", driver.recipe("process", stubborn))
    call = driver.start("down", NAME).saw("stop: 2 rank")
    time.sleep(0.5)
    done = interrupted(call)
    assert not re.search("error", done.err), str(done)
    assert [read_lease(n) for n in testbed_nodes] == ["", ""]
    driver.good("down", NAME)
    assert_clean(testbed_nodes)
