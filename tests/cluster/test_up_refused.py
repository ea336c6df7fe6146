"""Calls of `up` that cannot work: one clear message, the right exit code, and nodes as they were."""

import json
import time

import pytest

from cluster.drive import (
    NAME,
    RUNTIMES,
    CommandDriver,
    assert_clean,
    containers,
    hold_program,
    lift_memlock,
    read_lease,
    running,
    slowed,
)
from cluster.engines_drive import listening
from patience import wait_until
from testbed import ContainerNode, Testbed

RUNTIME = pytest.mark.parametrize("runtime", RUNTIMES)


def only_a_message(text: str) -> None:
    assert "Traceback" not in text
    assert "error: " in text


@pytest.mark.full
def test_an_image_that_is_nowhere_is_named(driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """No node has the image and it cannot be pulled: the error names it, where it was looked for, and what to do."""
    image = "127.0.0.1:1/nobody/nothing:1.0"
    done = driver.run("up", driver.recipe("docker", engine={"image": image}))
    assert done.code == 1 and image in done.err and "on no node" in done.err and "hint:" in done.err, str(done)
    only_a_message(done.err)
    assert_clean(testbed_nodes)


@pytest.mark.full
@RUNTIME
def test_a_taken_port_is_reported_with_its_owner(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], runtime: str
) -> None:
    """The error names the port, the process that holds it and the node, before anything starts."""
    testbed_nodes[0].ssh("setsid python3 -m http.server 8000 --bind 127.0.0.1 >/dev/null 2>&1 </dev/null &")
    wait_until(lambda: "127.0.0.1:8000" in listening(testbed_nodes[0]), "the port to be taken")
    done = driver.run("up", driver.recipe(runtime))
    assert done.code == 1 and "8000" in done.err and "python3" in done.err and "spark-1" in done.err, str(done)
    only_a_message(done.err)
    assert [n.containers() for n in testbed_nodes] == [[], []] and [read_lease(n) for n in testbed_nodes] == ["", ""]


def test_a_changed_host_key_is_never_accepted(driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """The error says that the key changed and how to verify it. Nobody logs in to that machine."""
    testbed_nodes[1].regenerate_host_key()
    before = testbed_nodes[1].sh("journalctl -u ssh --no-pager 2>/dev/null | grep -c Accepted", check=False)
    done = driver.run("up", driver.recipe("process"))
    assert done.code == 3 and "CHANGED" in done.err, str(done)
    assert "ssh-keygen" in done.err and "fingerprint" in done.err, str(done)
    assert testbed_nodes[1].sh("journalctl -u ssh --no-pager 2>/dev/null | grep -c Accepted", check=False) == before
    assert_clean(testbed_nodes)


@pytest.mark.full
def test_a_node_that_does_not_exist_is_named(driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """A typing mistake in the cluster file, in a node or in the head, is named before anything is done."""
    cluster = driver.folder / "typo.yaml"
    cluster.write_text("nodes: [spark-1, sprak-2.invalid]\n")
    done = driver.run("up", driver.recipe("process"), "--cluster", str(cluster))
    assert done.code == 3 and "sprak-2.invalid" in done.err and "hint:" in done.err, str(done)
    cluster.write_text("head: spark-9\nnodes: [spark-1, spark-2]\n")
    done = driver.run("up", driver.recipe("process"), "--cluster", str(cluster))
    assert done.code == 2 and "spark-9" in done.err and "typo.yaml:1" in done.err, str(done)
    assert_clean(testbed_nodes)


def test_a_lease_that_somebody_holds_is_respected(driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """A second call during the first changes nothing; its error names the holder, the purpose and the time."""
    testbed_nodes[1].sh(f"docker image rm --force {driver.testbed.engine_image}")
    with hold_program(testbed_nodes[1], "docker", "load*"):  # the lease is held until the ranks run
        first = driver.start("up", driver.recipe("docker")).saw("stage")
        second = driver.run("up", driver.recipe("docker"), "--name", "other")
        third = driver.run("down", NAME)
    assert second.code == 4 and "holds the lease for `up drill` since" in second.err, str(second)
    assert "--break-lease" in second.err and "root@" in second.err, str(second)
    assert third.code == 4, str(third)
    assert first.finish().code == 0
    assert all(len(ids) == 1 for ids in running(testbed_nodes).values())


@pytest.mark.full
@RUNTIME
def test_a_killed_call_leaves_a_lease_that_can_be_broken(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], runtime: str
) -> None:
    """A killed call of another machine leaves its lease. The next one says that the holder looks dead, and works with
    --break-lease."""
    program = "docker" if runtime == "docker" else "setsid"
    with slowed(testbed_nodes[0], program, 2, "run*|sh*"):
        driver.start("up", driver.recipe(runtime)).saw("start ranks").kill()
        time.sleep(3)  # what was on its way to the node still happens there
        wait_until(lambda: not starting(testbed_nodes[0], program), lambda: f"{starting(testbed_nodes[0], program)}")
    assert all(read_lease(n) for n in testbed_nodes)
    for node in testbed_nodes:
        node.sh('sed -i \'s/"process": "/&0/\' /run/lock/sparkwright/lease')  # of another boot
        node.sh("touch -d '5 minutes ago' /run/lock/sparkwright/lease")
    refused = driver.run("up", driver.recipe(runtime))
    assert refused.code == 4 and "looks dead" in refused.err and "--break-lease" in refused.err, str(refused)
    driver.good("down", NAME, "--break-lease")
    assert_clean(testbed_nodes)


def starting(node: ContainerNode, program: str) -> list[str]:
    """Commands on the node that start a rank and have not come to their end."""
    commands = [process.command for process in node.processes()]
    return [one for one in commands if f"/usr/local/bin/{program} " in one or "docker run " in one]


@pytest.mark.full
def test_a_killed_call_of_this_machine_is_followed_by_the_next(
    driver: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """A killed `up` holds nobody up who calls again on the same machine: its lease is taken over, and said to be."""
    with slowed(testbed_nodes[0], "setsid", 2, "run*|sh*"):
        driver.start("up", driver.recipe("process")).saw("start ranks").kill()
    assert all(read_lease(n) for n in testbed_nodes)
    again = driver.good("up", driver.recipe("process"))
    assert "that process of this machine has ended" in again.err + again.out, str(again)
    driver.good("down", NAME)
    assert_clean(testbed_nodes)


@pytest.mark.full
def test_a_lease_of_another_account_can_be_broken(driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """Two accounts on a node share one lease: each sees who holds it, and may take it over."""
    content = json.dumps({"holder": "ann@laptop", "why": "up big", "since": int(time.time()) - 60, "nonce": "aa"})
    testbed_nodes[0].ssh("true")
    driver.good("down", "nothing", "--break-lease")  # makes the lease's folder, as spark
    testbed_nodes[0].exec(["sh", "-c", "cat > /run/lock/sparkwright/lease"], user="nodocker", input=content)
    busy = driver.run("up", driver.recipe("process"))
    assert busy.code == 4 and "ann@laptop holds the lease for `up big` since " in busy.err, str(busy)
    driver.good("up", driver.recipe("process"), "--break-lease")
    driver.good("down", NAME)
    assert_clean(testbed_nodes)


@pytest.mark.full
def test_a_user_without_docker_rights_is_shown_the_hint(
    driver: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """The error names the node, the missing right and the command that grants it."""
    driver.users = {"spark-2": "nodocker"}
    done = driver.run("up", driver.recipe("docker"))
    assert done.code == 1 and "spark-2" in done.err and "docker" in done.err and "usermod" in done.err, str(done)
    only_a_message(done.err)
    assert_clean(testbed_nodes)


def can_lift_memlock(testbed: Testbed, node: ContainerNode) -> bool:
    node.set_shim("runc", "real")
    return node.ssh(f"docker run --rm --ulimit memlock=-1 {testbed.engine_image} true", check=False).returncode == 0


@pytest.mark.full
def test_a_daemon_that_cannot_lift_memlock_is_known_beforehand(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], testbed: Testbed
) -> None:
    """The container is started without that limit, and the ranks run. DOCK004 reports it where RDMA needs it."""
    if can_lift_memlock(testbed, testbed_nodes[1]):
        pytest.skip("this machine can lift memlock: nothing is refused here")
    driver.good("up", driver.recipe("docker"))
    for node in testbed_nodes:
        (found,) = containers(node)
        assert [limit["Name"] for limit in found["HostConfig"]["Ulimits"]] == ["stack"]


@pytest.mark.full
def test_a_worker_whose_container_is_refused_is_undone(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], testbed: Testbed
) -> None:
    """Both nodes are cleaned and the error quotes runc if it refuses a rank on one of them."""
    if can_lift_memlock(testbed, testbed_nodes[1]):
        pytest.skip("this machine can lift memlock: nothing is refused here")
    lift_memlock(testbed_nodes[1])
    done = driver.run("up", driver.recipe("docker"))
    assert done.code == 1 and "spark-2: rank 1 could not be started" in done.err, str(done)
    assert "rlimit" in done.err.lower(), str(done)
    only_a_message(done.err)
    assert_clean(testbed_nodes)


@pytest.mark.full
@RUNTIME
def test_a_start_that_fails_half_way_is_undone(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], runtime: str
) -> None:
    """The head cannot be started while the worker runs already: nothing of either stays."""
    program = "docker" if runtime == "docker" else "setsid"
    testbed_nodes[0].write(
        f"/usr/local/bin/{program}", broken(testbed_nodes[0].sh(f"command -v {program}")), mode="755"
    )
    try:
        done = driver.run("up", driver.recipe(runtime))
    finally:
        testbed_nodes[0].sh(f"rm /usr/local/bin/{program}")
    assert done.code == 1 and "spark-1: rank 0 could not be started" in done.err, str(done)
    only_a_message(done.err)
    assert_clean(testbed_nodes)


def broken(real: str) -> str:
    return f'#!/bin/sh\ncase "$1" in run|sh) echo "no, not today" >&2; exit 125 ;; esac\nexec {real} "$@"\n'
