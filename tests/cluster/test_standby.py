"""The head and its standby on three system containers: a split network, a power cut, a rank that ends meanwhile, and
the way back."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cluster.clients import PollingClient
from cluster.drive import NAME, CommandDriver, assert_clean, running
from cluster.test_replicas import ONE, until_all_serve
from patience import wait_until
from testbed import ContainerNode, Testbed

pytestmark = pytest.mark.full
PORT, EVERY = 8443, 0.2


@pytest.fixture
def three_nodes(driver: CommandDriver, testbed: Testbed) -> Iterator[list[ContainerNode]]:
    with testbed.third():
        head, standby, other = testbed.nodes
        driver.supervise, driver.standby = True, standby.name
        driver.env = {"SPARKWRIGHT_SUPERVISOR_SCALE": "0.3"}
        yield [head, standby, other]


def client_of(drive: CommandDriver, node: ContainerNode) -> PollingClient:
    keys = drive.folder / "home/.local/state/sparkwright/keys/testbed"
    return PollingClient(node.mgmt, PORT, next(keys.glob("*.key")).read_text().strip())


@contextmanager
def asking_both(drive: CommandDriver, nodes: list[ContainerNode]) -> Iterator[list[list[tuple[float, float]]]]:
    """Asks each of two gateways all the time; begin and end of each request that was answered with 200."""
    over, good = threading.Event(), [list[tuple[float, float]](), list[tuple[float, float]]()]

    def go(client: PollingClient, found: list[tuple[float, float]]) -> None:
        while not over.wait(EVERY):
            began = time.monotonic()
            if client.once()[0] == 200:
                found.append((began, time.monotonic()))

    threads = [
        threading.Thread(target=go, args=(client_of(drive, node), found))
        for node, found in zip(nodes, good, strict=True)
    ]
    for thread in threads:
        thread.start()
    try:
        yield good
    finally:
        over.set()
        for thread in threads:
            thread.join()


def never_both(head: list[tuple[float, float]], standby: list[tuple[float, float]]) -> None:
    """No request that began at one after the other's first answer of this part is answered."""
    assert head and standby
    late = [one for one in head if one[0] > standby[0][1]]
    assert not late, (late[:3], standby[0])


@contextmanager
def cut_off(node: ContainerNode, others: list[ContainerNode]) -> Iterator[None]:
    """The node reaches none of the others, by no network; clients reach all."""
    rules = [
        (chain, flag, address)
        for other in others
        for address in (other.mgmt, other.fabric, other.fabric_b)
        for chain, flag in (("INPUT", "-s"), ("OUTPUT", "-d"))
    ]
    for chain, flag, address in rules:
        node.exec(["iptables", "-I", chain, flag, address, "-j", "DROP"])
    try:
        yield
    finally:
        for chain in ("INPUT", "OUTPUT"):
            node.exec(["iptables", "-F", chain])


def restarted_without_the_head(drive: CommandDriver, client: PollingClient, nodes: list[ContainerNode]) -> None:
    """The standby's supervisor starts the replica again that is left, and `status` says whose it is."""
    before = running(nodes)
    (node,) = (one for one in nodes if before[one.name])
    wait_until(lambda: f"supervised on {nodes[0].name}" in drive.run("status").out, lambda: drive.run("status").out)
    node.sh("pkill -KILL -f '[s]parkwright.simulator serve'")
    wait_until(
        lambda: client.once()[0] == 200 and running(nodes)[node.name] not in ([], before[node.name]),
        lambda: drive.run("status").out,
        poll=1,
    )


def test_a_split_network_and_a_dead_head(driver: CommandDriver, three_nodes: list[ContainerNode]) -> None:
    """The life of the role: never both serve while the network is split; the head stays away afterwards and gets the
    role back by `up`; requests at the second address succeed after a power cut, and a replica that is killed then is
    started again; nothing is left at the end."""
    head, standby, other = three_nodes
    recipe = driver.recipe("process", serving={"expose": "all"}, **ONE)
    said = driver.good("up", recipe, "--replicas", "2", "--json").json["replicas"]
    assert said[-1]["supervision"]["reach"]["second"] == f"https://{standby.mgmt}:{PORT}/v1", said
    first, second = client_of(driver, head), client_of(driver, standby)
    first.wait(200)
    assert second.once()[0] == 0, "the standby does not listen while the head serves"
    with asking_both(driver, [head, standby]) as good:
        with cut_off(head, [standby, other]):
            wait_until(lambda: good[1], "the standby to serve while the head is cut off")
            time.sleep(3)
            assert first.once()[:2] == (503, "gateway_fenced")
        time.sleep(6)
    never_both(*good)
    assert first.once()[:2] == (503, "gateway_fenced"), "it stays away when it is back"
    told = f"{standby.name} serves in its place"
    wait_until(lambda: told in driver.run("status", NAME).out, lambda: driver.run("status", NAME).out, poll=2)
    until_all_serve(driver)
    driver.good("up", recipe, "--replicas", "2", "--json")
    first.wait(200)
    assert second.once()[0] == 0
    head.power_cut()
    print(f"second address after {wait_until(lambda: second.once()[0] == 200, 'the standby to serve'):.1f} s")
    restarted_without_the_head(driver, second, [standby, other])
    listed = standby.sh("cat /home/spark/.local/state/sparkwright/incidents/*/*/incident.json", user="spark")
    assert "has taken its gateway and supervision over" in listed
    head.start()
    wait_until(lambda: first.once()[:2] == (503, "gateway_fenced"), "the head to be back, and to stay away")
    assert second.once()[0] == 200
    wait_until(lambda: driver.run("status", NAME).code != 3, "sshd of the head, which begins after the gateway", poll=2)
    before = running([standby, other])
    driver.good("up", recipe, "--replicas", "2", "--json")
    first.wait(200)
    assert running([standby, other]) == before, "the head takes up what the standby has started"
    driver.good("down", NAME)
    assert_clean(three_nodes)
