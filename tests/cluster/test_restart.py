"""A person's actions on a deployment: a planned restart, and a `down` that somebody else watches."""

import pytest

from cluster.clients import asking, no_start_timed
from cluster.drive import NAME, RUNTIMES, SLOW, CommandDriver, assert_clean, running
from testbed import ContainerNode, harm

OPEN = {"expose": "all"}
RUNTIME = pytest.mark.parametrize("runtime", RUNTIMES)
SERVING = ("ready", "degraded")


@pytest.fixture
def driver(driver: CommandDriver) -> CommandDriver:
    driver.supervise = True
    driver.env = {"SPARKWRIGHT_SUPERVISOR_SCALE": "0.3"}
    return driver


@pytest.mark.full
def test_a_restart_is_planned_and_no_fault(driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """New ranks, no incident, nothing that counts; clients get a 503 that gives the reason."""
    driver.good("up", driver.recipe("process", serving={"expose": "all"}))
    before = running(testbed_nodes)
    no_start_timed(testbed_nodes[0])
    with asking(testbed_nodes[0], driver.folder / "home") as client:
        done = driver.good("restart")
        client.wait(200)
    assert done.out.startswith(f"{NAME}: ready again after"), str(done)
    assert all(set(before[name]).isdisjoint(found) and found for name, found in running(testbed_nodes).items())
    assert client.statuses() == {200, 503}
    assert any("a planned restart" in message for _, message, _ in client.refusals), client.refusals
    one = driver.shown()
    assert one["state"] in SERVING and one["supervised"]["live"]["incidents"] == 0
    state = testbed_nodes[0].sh(f"cat /home/spark/.local/state/sparkwright/supervision/{NAME}/state.json")
    assert '"launches": []' in state or '"launches":[]' in state, state
    unknown = driver.run("down", "anything")
    assert unknown.code == 2 and f"there are: {NAME}" in unknown.err and "stop" not in unknown.err, str(unknown)
    assert driver.good("down").out.startswith(f"{NAME}: 2 rank(s) removed")
    assert_clean(testbed_nodes)
    assert "no deployment" in driver.run("restart").err


@pytest.mark.full
@RUNTIME
def test_a_restart_without_a_supervisor_is_done_from_here(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], runtime: str
) -> None:
    """A restart starts it as before, by the record of `up --no-supervise`."""
    driver.supervise = False
    driver.good("up", driver.recipe(runtime))
    before = running(testbed_nodes)
    driver.good("restart", NAME)
    assert all(set(before[name]).isdisjoint(found) and found for name, found in running(testbed_nodes).items())
    driver.good("down", NAME)
    assert_clean(testbed_nodes)


@pytest.mark.full
def test_who_watches_an_up_reads_who_has_taken_it_down(
    driver: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """Guards the first operator, who else looks for a fault of the engine."""
    slow = SLOW | {"SPARKWRIGHT_SIMULATOR_TIME_SCALE": "1"}  # a busy machine takes it down late
    call = driver.start("up", driver.recipe("process", slow)).saw("engine")
    driver.good("down", NAME)
    done = call.finish()
    # On a busy machine the engine may be ready by then: `up` waits for the lease, and finds the deployment gone
    assert done.code == 5 and "taken down by " in done.err, str(done)
    assert "exited with code" not in done.err.partition("error:")[2] and f"sparkwright down {NAME}" not in done.err
    assert f"{NAME} was taken down by " in driver.run("status", NAME).out
    assert_clean(testbed_nodes)


@pytest.mark.full
def test_a_restart_that_cannot_work_is_refused_while_it_serves(
    driver: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """The worker's host keys changed: exit 3 with the cure, and clients are served all the time."""
    head, worker = testbed_nodes
    driver.good("up", driver.recipe("process", serving=OPEN))
    before = running(testbed_nodes)
    with asking(head, driver.folder / "home") as client:
        harm.change_host_keys(worker)
        try:
            done = driver.run("restart", NAME)
            without = driver.run("restart")
        finally:
            harm.restore_host_keys(worker)
        assert done.code == 3 and without.code == 3, f"{done}\n{without}"
        assert "has CHANGED" in done.err and f"{NAME} serves and was left as it is" in done.err, str(done)
        assert "ssh-keygen" in done.err.partition("hint:")[2], str(done)
    assert client.statuses() == {200}, client.around({200})
    assert running(testbed_nodes) == before and driver.shown()["supervised"]["live"]["incidents"] == 0
    driver.good("restart", NAME)
    driver.good("down", NAME)
    assert_clean(testbed_nodes)


@pytest.mark.full
def test_the_supervisor_refuses_what_only_it_cannot_do(
    driver: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """The laptop reaches the worker and the head does not: restart and switch end with exit 3, and clients notice
    nothing; what does not serve may be restarted, and an incident names the cure."""
    head, worker = testbed_nodes
    driver.good("up", driver.recipe("process", serving=OPEN))
    before = running(testbed_nodes)
    with asking(head, driver.folder / "home") as client:
        harm.cut_ssh(worker, head)
        try:
            restarted = driver.run("restart", NAME)
            changed = driver.run("up", driver.recipe("process", serving={**OPEN, "context": 16384}))
        finally:
            harm.restore_ssh(worker)
        for done in (restarted, changed):
            assert done.code == 3 and "spark-2" in done.err and "was left as it is" in done.err, str(done)
            assert "hint:" in done.err, str(done)
    assert client.statuses() == {200}, client.around({200})
    assert running(testbed_nodes) == before
    driver.good("down", NAME)
    assert_clean(testbed_nodes)
