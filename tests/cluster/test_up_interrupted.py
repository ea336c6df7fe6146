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
    Done,
    Drive,
    assert_clean,
    engines,
    lease,
    running,
    slowed,
)
from testbed import Node


def interrupted(call: Call) -> Done:
    """Exit 130 after the interrupt, and no traceback."""
    done = call.interrupt().finish()
    assert done.code == 130, str(done)
    assert "Traceback" not in done.err, str(done)
    return done


def goes_on(drive: Drive, nodes: list[Node], recipe: str, done: Done) -> None:
    """The ranks run without us; the message states how to go on, and `up` does."""
    assert "continue to run" in done.err and f"sparkwright down {NAME}" in done.err, str(done)
    assert [lease(n) for n in nodes] == ["", ""]
    before = running(nodes)
    assert [len(ids) for ids in before.values()] == [1, 1]
    again = drive.good("up", recipe).out
    assert "already serving" in again or "ready after" in again, "by then, or watched until then"
    assert running(nodes) == before


@pytest.mark.full
@pytest.mark.parametrize("tty", [False, True], ids=["pipe", "terminal"])
def test_ctrl_c_while_facts_are_gathered_changes_nothing(drive: Drive, nodes: list[Node], tty: bool) -> None:
    """Even when a node hangs: the call ends at once and was never a change."""
    nodes[1].freeze()
    call = drive.start("up", drive.recipe("process"), tty=tty).saw("facts: asking")
    time.sleep(0.5)
    interrupted(call)
    nodes[1].thaw()
    assert_clean(nodes)


@pytest.mark.full
def test_ctrl_c_while_an_image_is_copied_frees_the_leases(drive: Drive, nodes: list[Node]) -> None:
    """Staging ends with its call, on both nodes."""
    nodes[1].sh(f"docker image rm --force {drive.testbed.engine_image} sparkwright/testbed-base:dev")
    call = drive.start("up", drive.recipe("docker")).saw("stage ...")
    time.sleep(0.5)
    done = interrupted(call)
    assert f"nothing of {NAME} is running" in done.err, str(done)
    assert_clean(nodes)


@pytest.mark.parametrize(
    ("runtime", "slow"),
    [pytest.param("docker", 1, marks=pytest.mark.full), ("process", 0)],
    ids=["docker-worker", "process-head"],
)
def test_ctrl_c_while_ranks_start_takes_them_away(drive: Drive, nodes: list[Node], runtime: str, slow: int) -> None:
    """A start that is on its way is waited for and then undone: it cannot appear afterwards."""
    with slowed(nodes[slow], "docker" if runtime == "docker" else "setsid", 2, "run*|sh*"):
        call = drive.start("up", drive.recipe(runtime)).saw("start ranks")
        time.sleep(0.5)
        done = interrupted(call)
    assert f"nothing of {NAME} is running" in done.err, str(done)
    time.sleep(1)
    assert_clean(nodes)


@pytest.mark.parametrize(
    ("runtime", "tty"),
    [pytest.param("docker", True, marks=pytest.mark.full), ("process", False)],
    ids=["terminal", "pipe"],
)
def test_ctrl_c_while_the_engine_loads_leaves_it_loading(
    drive: Drive, nodes: list[Node], runtime: str, tty: bool
) -> None:
    """It only stops watching: the same ranks come up, and `up` watches on."""
    recipe = drive.recipe(runtime, BRISK)
    call = drive.start("up", recipe, tty=tty).saw("engine: simulator")
    done = interrupted(call)
    goes_on(drive, nodes, recipe, done)
    drive.good("down", NAME)
    assert_clean(nodes)


@pytest.mark.full
def test_ctrl_c_while_it_answers_leaves_it_serving(drive: Drive, nodes: list[Node]) -> None:
    """A slow first answer is no reason to lose the engine."""
    recipe = drive.recipe(
        "process", {"SPARKWRIGHT_SIMULATOR_TIME_SCALE": "0", "SPARKWRIGHT_SIMULATOR_TOKEN_SCALE": "12"}
    )
    done = interrupted(drive.start("up", recipe).saw("asking for a real completion"))
    goes_on(drive, nodes, recipe, done)


@pytest.mark.full
def test_down_works_while_an_interrupted_engine_loads(drive: Drive, nodes: list[Node]) -> None:
    """Nobody who changed their mind waits for the engine."""
    interrupted(drive.start("up", drive.recipe("docker", SLOW)).saw("engine: simulator"))
    drive.good("down", NAME)
    assert_clean(nodes)


@pytest.mark.full
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=["SIGTERM", "SIGHUP"])
def test_a_closed_terminal_is_an_interrupt(drive: Drive, nodes: list[Node], number: signal.Signals) -> None:
    """A lost ssh session or a service manager's stop leaves no lease and no half-started rank either."""
    with slowed(nodes[0], "setsid", 2, "sh*"):
        call = drive.start("up", drive.recipe("process")).saw("start ranks")
        call.process.send_signal(number)
        done = call.finish()
    assert done.code == 130, str(done)
    assert_clean(nodes)


@pytest.mark.full
def test_a_killed_watcher_does_not_matter(drive: Drive, nodes: list[Node]) -> None:
    """SIGKILL while the engine loads: the ranks go on, no lease is left, and `up` watches on."""
    recipe = drive.recipe("docker", BRISK)
    drive.start("up", recipe).saw("engine: simulator").kill()
    assert [lease(n) for n in nodes] == ["", ""]
    before = running(nodes)
    drive.good("up", recipe)
    assert running(nodes) == before
    assert len(engines(nodes[0])) == 1


@pytest.mark.full
def test_ctrl_c_in_down_is_finished_by_the_next(drive: Drive, nodes: list[Node]) -> None:
    """An interrupted `down` frees its leases; the next one goes on, and ends also what ignores SIGTERM."""
    stubborn = {"SPARKWRIGHT_SIMULATOR_TIME_SCALE": "0", "SPARKWRIGHT_SIMULATOR_FAULT": "ignore_sigterm"}
    drive.good("up", drive.recipe("process", stubborn))
    call = drive.start("down", NAME).saw("stop: 2 rank")
    time.sleep(0.5)
    done = interrupted(call)
    assert not re.search("error", done.err), str(done)
    assert [lease(n) for n in nodes] == ["", ""]
    drive.good("down", NAME)
    assert_clean(nodes)
