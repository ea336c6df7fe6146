"""A person's actions on a deployment: a planned restart, and a `down` that somebody else watches."""

import pytest

from cluster.clients import asking
from cluster.drive import NAME, RUNTIMES, SLOW, Drive, assert_clean, running
from testbed import Node, harm

OPEN = {"expose": "all"}
RUNTIME = pytest.mark.parametrize("runtime", RUNTIMES)
SERVING = ("ready", "degraded")


@pytest.fixture
def drive(drive: Drive) -> Drive:
    drive.supervise = True
    drive.env = {"SPARKWRIGHT_SUPERVISOR_SCALE": "0.3"}
    return drive


def test_a_restart_is_planned_and_no_fault(drive: Drive, nodes: list[Node]) -> None:
    """New ranks, no incident, nothing that counts; clients get a 503 that gives the reason."""
    drive.good("up", drive.recipe("process", serving={"expose": "all"}))
    before = running(nodes)
    with asking(nodes[0], drive.folder / "home") as client:
        done = drive.good("restart")
        client.wait(200)
    assert done.out.startswith(f"{NAME}: ready again after"), str(done)
    assert all(set(before[name]).isdisjoint(found) and found for name, found in running(nodes).items())
    assert client.statuses() == {200, 503}
    assert any("a planned restart" in message for _, message, _ in client.refusals), client.refusals
    one = drive.shown()
    assert one["state"] in SERVING and one["supervised"]["live"]["incidents"] == 0
    state = nodes[0].sh(f"cat /home/spark/.local/state/sparkwright/supervision/{NAME}/state.json")
    assert '"launches": []' in state or '"launches":[]' in state, state
    unknown = drive.run("down", "anything")
    assert unknown.code == 2 and f"there are: {NAME}" in unknown.err and "stop" not in unknown.err, str(unknown)
    assert drive.good("down").out.startswith(f"{NAME}: 2 rank(s) removed")
    assert_clean(nodes)
    assert "no deployment" in drive.run("restart").err


@pytest.mark.full
@RUNTIME
def test_a_restart_without_a_supervisor_is_done_from_here(drive: Drive, nodes: list[Node], runtime: str) -> None:
    """A restart starts it as before, by the record of `up --no-supervise`."""
    drive.supervise = False
    drive.good("up", drive.recipe(runtime))
    before = running(nodes)
    drive.good("restart", NAME)
    assert all(set(before[name]).isdisjoint(found) and found for name, found in running(nodes).items())
    drive.good("down", NAME)
    assert_clean(nodes)


@pytest.mark.full
def test_who_watches_an_up_reads_who_has_taken_it_down(drive: Drive, nodes: list[Node]) -> None:
    """Guards the first operator, who else looks for a fault of the engine."""
    call = drive.start("up", drive.recipe("process", SLOW)).saw("engine")
    drive.good("down", NAME)
    done = call.finish()
    # On a busy machine the engine may be ready by then: `up` waits for the lease, and finds the deployment gone
    assert done.code == 5 and "taken down by " in done.err, str(done)
    assert "exited with code" not in done.err.partition("error:")[2] and f"sparkwright down {NAME}" not in done.err
    assert f"{NAME} was taken down by " in drive.run("status", NAME).out
    assert_clean(nodes)


@pytest.mark.full
def test_a_restart_that_cannot_work_is_refused_while_it_serves(drive: Drive, nodes: list[Node]) -> None:
    """The worker's host keys changed: exit 3 with the cure, and clients are served all the time."""
    head, worker = nodes
    drive.good("up", drive.recipe("process", serving=OPEN))
    before = running(nodes)
    with asking(head, drive.folder / "home") as client:
        harm.change_host_keys(worker)
        try:
            done = drive.run("restart", NAME)
            without = drive.run("restart")
        finally:
            harm.restore_host_keys(worker)
        assert done.code == 3 and without.code == 3, f"{done}\n{without}"
        assert "has CHANGED" in done.err and f"{NAME} serves and was left as it is" in done.err, str(done)
        assert "ssh-keygen" in done.err.partition("hint:")[2], str(done)
    assert client.statuses() == {200}, client.around({200})
    assert running(nodes) == before and drive.shown()["supervised"]["live"]["incidents"] == 0
    drive.good("restart", NAME)
    drive.good("down", NAME)
    assert_clean(nodes)


@pytest.mark.full
def test_the_supervisor_refuses_what_only_it_cannot_do(drive: Drive, nodes: list[Node]) -> None:
    """The laptop reaches the worker and the head does not: restart and switch end with exit 3, and clients notice
    nothing; what does not serve may be restarted, and an incident names the cure."""
    head, worker = nodes
    drive.good("up", drive.recipe("process", serving=OPEN))
    before = running(nodes)
    with asking(head, drive.folder / "home") as client:
        harm.cut_ssh(worker, head)
        try:
            restarted = drive.run("restart", NAME)
            changed = drive.run("up", drive.recipe("process", serving={**OPEN, "context": 16384}))
        finally:
            harm.restore_ssh(worker)
        for done in (restarted, changed):
            assert done.code == 3 and "spark-2" in done.err and "was left as it is" in done.err, str(done)
            assert "hint:" in done.err, str(done)
    assert client.statuses() == {200}, client.around({200})
    assert running(nodes) == before
    drive.good("down", NAME)
    assert_clean(nodes)
