"""`up` leaves a supervisor on the head: the laptop may go, nodes may go, and it comes back automatically."""

import json
import re
import shlex
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from cluster.drive import NAME, RUNTIMES, CommandDriver, assert_clean, engines, read_lease, running
from patience import wait_until
from sparkwright.remote.service import service_host
from testbed import ContainerNode, harm
from testbed.settings import FABRIC_DEVICE, MGMT_DEVICE

RUNTIME = pytest.mark.parametrize("runtime", RUNTIMES)
STATE = "/home/spark/.local/state/sparkwright"
HOME = f"{STATE}/supervision/{NAME}"
UNIT = f"sparkwright-supervisor-{NAME}.service"
USER = "XDG_RUNTIME_DIR=/run/user/1000 systemctl --user"
SERVING = ("ready", "degraded")
TENTH = {"SPARKWRIGHT_SUPERVISOR_SCALE": "0.1"}
# Where nothing may be relaunched: at a tenth, an idle engine that has no turn for three seconds is an incident.
HALF = {"SPARKWRIGHT_SUPERVISOR_SCALE": "0.5"}


@pytest.fixture
def driver(driver: CommandDriver) -> CommandDriver:
    driver.supervise = True
    driver.env = dict(TENTH)
    return driver


def read_live(head: ContainerNode) -> dict[str, Any]:
    text = head.sh(f"cat {HOME}/live.json 2>/dev/null", check=False)
    found: dict[str, Any] = json.loads(text) if text else {}
    return found


def serves(head: ContainerNode, since: float) -> Callable[[], bool]:
    """It serves, if with a trouble that somebody should see, and was seen so after the given moment of its clock."""
    return lambda: read_live(head).get("phase") in SERVING and read_live(head)["at"] > since


def serves_after_a_relaunch(head: ContainerNode, since: float) -> Callable[[], bool]:
    """It serves, and has relaunched its ranks; the outage itself may be over before anybody looks."""
    return lambda: read_live(head).get("relaunches", 0) > 0 and serves(head, since)()


def node_clock(node: ContainerNode) -> float:
    return float(node.sh("date +%s.%N"))


@RUNTIME
def test_without_the_laptop_it_serves_again_after_a_killed_worker(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], runtime: str
) -> None:
    """The unit is active, and all that the laptop had is gone: home, recipe, cluster file, connections."""
    head, worker = testbed_nodes
    shown = driver.good("up", driver.recipe(runtime), "--json").json
    found = [finding["code"] for finding in shown["supervision"]["findings"]]
    assert shown["supervision"]["node"] == "spark-1" and not [code for code in found if code.startswith("SUP")], found
    assert head.sh(f"{USER} is-active {UNIT}", user="spark") == "active"
    before = running(testbed_nodes)
    shutil.rmtree(driver.folder / "home")
    head.sh("pkill -f '[s]shd: spark@notty' || :")
    at = node_clock(head)
    worker.sh("pkill -KILL -f '[s]parkwright.simulator serve'")
    wait_until(serves_after_a_relaunch(head, at), "to serve again")
    after = running(testbed_nodes)
    assert all(set(before[name]).isdisjoint(after[name]) for name in before) and all(after.values())
    driver.good("down", NAME)
    assert_clean(testbed_nodes)


def incident_reasons(driver: CommandDriver) -> list[str]:
    """The description of each incident; on a busy machine the gateway may have one of its own."""
    numbers = [str(one["number"]) for one in driver.good("incidents list", "--json").json["incidents"]]
    shown = [driver.good(f"incidents show {number}", "--json").json for number in numbers]
    return [one["incident"]["what"] for one in shown]


@pytest.mark.full
@pytest.mark.parametrize(
    ("runtime", "which"),
    [
        pytest.param("process", 0, marks=pytest.mark.full, id="head"),
        pytest.param("process", 1, marks=pytest.mark.full, id="worker"),
        pytest.param("docker", 1, id="worker-docker"),
    ],
)
def test_a_full_disk_costs_history_and_not_service(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], runtime: str, which: int
) -> None:
    """Not a byte is left where a node keeps our state: reported while it serves and while it does not. A rank that is
    killed with its wrapper is back, and no exit code is made up."""
    (head, worker), full = testbed_nodes, testbed_nodes[which]
    harm.small_state(full, "48m")  # the program and its archive take 20
    driver.env |= HALF  # on a busy machine a tenth of the waits takes a killed rank for a stall
    driver.env["FULL_KEY"] = "sk-of-the-engine"  # so that a relaunch has a secret to write
    driver.good("up", driver.recipe(runtime, serving={"api_key_env": "FULL_KEY"}))
    harm.fill_state(full)
    # tenths of a MiB come back when a file ends that was being replaced while the disk was filled
    said = re.compile(rf"disk full on spark-{which + 1}: 0\.\d MiB free in ~/\.local/state/sparkwright")

    def troubles() -> list[str]:
        return [text for _, text in read_live(head).get("troubles", ())]

    wait_until(lambda: any(map(said.search, troubles())), lambda: f"the full disk to be said: {troubles()}")
    status = driver.run("status")
    assert status.code == 1 and said.search(status.out) and read_live(head)["phase"] == "degraded"
    before, at = running(testbed_nodes), node_clock(head)
    worker.sh("pkill -KILL -f '[n]ode-rank 1'")
    whys = set[str]()

    def again() -> bool:
        whys.add(read_live(head).get("why", ""))
        return serves_after_a_relaunch(head, at + 1)()

    wait_until(again, "to serve again")
    assert all(set(before[name]).isdisjoint(running(testbed_nodes)[name]) for name in before)
    assert any(map(said.search, whys)), whys
    told = whys
    if which:
        told = set[str]()

        def is_written() -> bool:
            told.update(incident_reasons(driver))
            return any("rank 1" in what for what in told)

        wait_until(is_written, lambda: f"rank 1 in {told}")
    what = "".join(what for what in told if not which or "rank 1" in what)
    assert runtime == "docker" or ("left no exit code" in what and "137" not in what), what
    harm.empty_state(full)
    wait_until(lambda: read_live(head).get("phase") == "ready", "the trouble to be over")
    driver.good("down", NAME)
    assert_clean(testbed_nodes)
    assert not [
        node.name for node in testbed_nodes if node.sh("ls -d /run/lock/sparkwright-1000/* 2>/dev/null", check=False)
    ]


@pytest.mark.full
@pytest.mark.parametrize(
    "which",
    [
        pytest.param((0,), marks=pytest.mark.full, id="head"),
        pytest.param((1,), marks=pytest.mark.full, id="worker"),
        pytest.param((0, 1), id="both"),
    ],
)
def test_after_a_reboot_it_comes_back_by_itself(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], which: tuple[int, ...]
) -> None:
    """The deployment comes back whichever node was away: nobody logs in, nobody calls."""
    driver.good("up", driver.recipe("docker"))
    at = node_clock(testbed_nodes[0])
    for number in which:
        testbed_nodes[number].stop()
    for number in which:
        testbed_nodes[number].start()
    wait_until(lambda: [len(engines(node)) for node in testbed_nodes] == [1, 1], "both ranks")
    wait_until(serves(testbed_nodes[0], at + 1), "to serve again")
    assert driver.run("status", "--json").json["deployments"][0]["state"] in SERVING


@pytest.mark.full
def test_what_is_wrong_with_its_own_files_and_its_gateway_is_in_status(
    driver: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """One sentence each with its hint, the engine serves on, and it is over as soon as it is fixed."""
    head = testbed_nodes[0]
    driver.good("up", driver.recipe("docker"))
    caddy, newer = "sparkwright-caddy-_gateway-8443.service", "python3 -c \"import sqlite3; c = sqlite3.connect('{}'); "
    newer += "c.execute('PRAGMA user_version=99'); c.commit()\""
    head.sh(f"{USER} stop {UNIT}", user="spark")
    head.sh(f"printf '{{ torn' > {HOME}/state.json; {newer.format(STATE + '/store.sqlite')}", user="spark")
    head.sh(f"{USER} start {UNIT}; {USER} stop {caddy}", user="spark")
    words = ("state.json was corrupt", "has version 99", "the gateway does not answer")

    def shown() -> bool:
        found = driver.run("status", "--json").json["deployments"][0]
        return found["state"] == "degraded" and all(any(w in said for said in found["problems"]) for w in words)

    wait_until(shown, "all three in status")
    assert all(word in driver.run("status").out for word in words) and [len(engines(n)) for n in testbed_nodes] == [
        1,
        1,
    ]
    head.sh(f"rm {HOME}/state.json.bad {STATE}/store.sqlite*; {USER} start {caddy}", user="spark")
    wait_until(lambda: read_live(head).get("phase") == "ready", "all of it to be over")


# What a test leaves on the nodes for the time after their reboot.
SUDO, KERNEL_LOG = "/etc/sudoers.d/anything", "/opt/fixtures/var/log/dmesg"
BOOTED = {
    "/etc/tmpfiles.d/testbed-kernel-log.conf": f"r! {KERNEL_LOG}\n",
    "/etc/systemd/system/docker.service.d/testbed.conf": "[Service]\nExecStartPre=/bin/sleep 6\n",
    "/etc/systemd/system/testbed-late-fabric.service": "[Unit]\nAfter=node-net.service\n[Service]\nExecStart="
    f"/bin/sh -c 'ip link set {FABRIC_DEVICE} down; sleep 9; ip link set {FABRIC_DEVICE} up'\n"
    "[Install]\nWantedBy=multi-user.target\n",
}
XID = "[ 4711.000001] NVRM: Xid (PCI:000f:01:00): 119, pid=41207, name=VLLM::EngineCor, Timeout after 6s of waiting\n"


@contextmanager
def rebootable(nodes: list[ContainerNode]) -> Iterator[None]:
    """Lets the user reboot the nodes while open; Docker and the fabric are late then. Somebody switches them on
    again."""
    done = threading.Event()

    def switch_on(node: ContainerNode) -> None:
        while not done.wait(0.3):
            if node.state() == "exited":
                node.start()

    for node in nodes:
        node.write(SUDO, "spark ALL=(root) NOPASSWD: ALL\n", mode="440")
        for path, text in BOOTED.items():
            node.write(path, text)
        node.sh("systemctl enable -q testbed-late-fabric")
    with ThreadPoolExecutor() as pool:
        keepers = [pool.submit(switch_on, node) for node in nodes]
        try:
            yield
        finally:
            done.set()
            for keeper in keepers:
                keeper.result()
            for node in nodes:
                node.recover()
                node.sh(
                    f"systemctl disable -q testbed-late-fabric; rm {SUDO} {' '.join(BOOTED)}; systemctl daemon-reload"
                )


@pytest.mark.full
def test_where_it_may_it_reboots_all_nodes_and_serves_again(
    driver: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """A rank ended by a fault that outlives it: both nodes go, and what is late after their start is waited for.

    An Xid alone stops nothing while tokens come.
    """
    head, worker = testbed_nodes
    with rebootable(testbed_nodes):
        worker.write(KERNEL_LOG, "")
        driver.env |= HALF  # on a busy machine a tenth of the waits takes late tokens for none
        driver.good("up", driver.recipe("docker"), "--allow-reboot")
        before, at = [node.pid1_started() for node in testbed_nodes], node_clock(head)
        wait_until(lambda: read_live(head).get("canary"), "its own first look")
        worker.exec(["tee", "-a", KERNEL_LOG], input=XID)
        wait_until(lambda: any(kind == "xid" for kind, _ in read_live(head)["troubles"]), "the Xid to be seen")
        worker.sh(f"docker kill sparkwright-{NAME}-rank1")
        started = "cut -d' ' -f22 /proc/1/stat"  # the node may be off
        wait_until(lambda: head.sh(started, check=False) not in ("", before[0]), "the head's reboot")
        wait_until(lambda: [node.state() for node in testbed_nodes] == ["running"] * 2, "both to be on again")
        wait_until(serves(head, at + 20), "to serve again")
        assert all(node.pid1_started() != then for node, then in zip(testbed_nodes, before, strict=True))
        (incident,) = driver.good("incidents list", NAME, "--json").json["incidents"]
        assert (incident["open"], incident["outcome"]) == (False, "serving again")
        driver.good("down", NAME)


@pytest.mark.full
def test_a_killed_supervisor_is_back_and_goes_on(driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """systemd starts it again; the ranks, one of them its own child's child, never notice."""
    head = testbed_nodes[0]
    driver.env |= HALF
    driver.good("up", driver.recipe("process"))
    before, pid = running(testbed_nodes), read_live(head)["pid"]
    head.sh(f"kill -KILL {pid}")
    wait_until(lambda: read_live(head).get("pid") not in (None, pid) and serves(head, 0)(), "the next one")
    assert running(testbed_nodes) == before
    assert [read_lease(node) for node in testbed_nodes] == ["", ""]


@pytest.mark.full
def test_ranks_that_the_supervisor_launched_outlive_its_unit(
    driver: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """`systemctl kill`, or a unit that runs out of memory, ends every process of its control group."""
    head = testbed_nodes[0]
    driver.env |= HALF
    driver.good("up", driver.recipe("process"))
    at = node_clock(head)
    head.sh("pkill -KILL -f '[n]ode-rank 0'")
    wait_until(lambda: read_live(head).get("relaunches") == 1 and serves(head, at + 1)(), "the relaunch")
    before, pid = running(testbed_nodes), read_live(head)["pid"]
    head.sh(f"{USER} kill --signal KILL sparkwright-supervisor-{NAME}.service", user="spark")
    wait_until(lambda: read_live(head).get("pid") not in (None, pid) and serves(head, 0)(), "the next supervisor")
    assert running(testbed_nodes) == before


@pytest.mark.full
def test_up_again_leaves_it_alone_and_another_up_replaces_it(
    driver: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """The same request restarts nothing; another one ends the old supervisor before it touches a rank."""
    head = testbed_nodes[0]
    driver.env |= HALF
    driver.good("up", driver.recipe("process"))
    before, pid = running(testbed_nodes), read_live(head)["pid"]
    again = driver.good("up", driver.recipe("process"))
    assert "already serving" in again.out and "on spark-1 by this user's systemd" in again.out
    assert (running(testbed_nodes), read_live(head)["pid"]) == (before, pid)
    driver.good("up", driver.recipe("process", serving={"context": 16384}))
    assert read_live(head)["pid"] != pid and read_live(head)["incidents"] == 0
    wait_until(serves(head, 0), "to see that it serves")
    driver.good("up", driver.recipe("process", serving={"context": 16384}), "--no-supervise")
    assert head.sh(f"ls {HOME} 2>/dev/null", check=False) == ""


@pytest.mark.full
def test_a_lost_management_network_is_not_a_lost_worker(
    driver: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """The head goes on over the fabric: the node is seen again, and nothing was stopped."""
    head, worker = testbed_nodes
    driver.env |= HALF
    driver.good("up", driver.recipe("docker"))
    before, seen = running(testbed_nodes), lambda: [node["reached"] for node in read_live(head)["nodes"]]
    wait_until(lambda: seen() == [True, True], "both to be seen")
    worker.set_link(MGMT_DEVICE, up=False)
    try:
        wait_until(lambda: False in seen(), "the loss to be seen")
        wait_until(lambda: seen() == [True, True], "the worker to be seen over the fabric")
        assert running(testbed_nodes) == before
    finally:
        worker.set_link(MGMT_DEVICE, up=True)


@pytest.mark.full
def test_without_a_users_systemd_it_is_a_system_unit(driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """The unit runs as the user if sudo asks for no password, and `down` takes it away."""
    head = testbed_nodes[0]
    head.write("/etc/sudoers.d/anything", "spark ALL=(root) NOPASSWD: ALL\n", mode="440")
    head.sh("ln -s /dev/null /etc/systemd/system/user@.service; systemctl daemon-reload; systemctl stop user@1000")
    try:
        assert driver.good("up", driver.recipe("process"), "--json").json["supervision"]["manager"] == "system"
        assert head.sh(f"systemctl show -P User {UNIT}") == "spark"
        wait_until(serves(head, 0), "to see that it serves")
        driver.good("down", NAME)
    finally:
        head.sh("rm /etc/systemd/system/user@.service /etc/sudoers.d/anything; systemctl daemon-reload")
    assert_clean(testbed_nodes)


@pytest.mark.full
def test_a_users_systemd_that_begins_just_now_is_waited_for(testbed_nodes: list[ContainerNode]) -> None:
    """Guards `up` on a busy node or right after a boot: the user's systemd ends for 4 s and begins again meanwhile."""
    head = testbed_nodes[0]
    head.sh("loginctl enable-linger spark && systemctl start user@1000")
    head.sh(f"{USER.replace('systemctl', 'systemd-run')} --unit w -p ExecStop='/bin/sleep 4' sleep 900", user="spark")
    try:
        head.sh("systemctl restart --no-block user@1000")
        asked = shlex.join(service_host("~/.local/state/sparkwright").argv)
        said = head.sh(f"systemctl show -P ActiveState user@1000; {asked}", user="spark", timeout=120)
        assert said.startswith("deactivating") and "@@ manager\nuser\n" in said
    finally:
        head.sh("loginctl disable-linger spark; systemctl stop user@1000")


@pytest.mark.full
def test_where_nodes_do_not_know_each_other_a_narrow_key_is_made(
    driver: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """It runs commands only, from the head only, and `down` takes it away again, also when half of it is gone."""
    head, worker = testbed_nodes
    driver.users = {"spark-1": "nodocker", "spark-2": "nodocker"}
    driver.good("up", driver.recipe("process"))
    (line,) = [
        row for row in worker.sh("cat /home/nodocker/.ssh/authorized_keys").splitlines() if "sparkwright:" in row
    ]
    assert line.startswith("restrict,from=") and head.fabric in line and line.endswith(f"sparkwright:testbed/{NAME}")
    home = HOME.replace("/spark/", "/nodocker/")
    assert head.sh(f"stat -c %a {home} {home}/ssh/id_ed25519 {home}/secrets.json") == "700\n600\n600"
    worker.sh("pkill -KILL -f '[s]parkwright.simulator serve'")

    def serves_again() -> bool:
        live = json.loads(head.sh(f"cat {home}/live.json"))
        return live["relaunches"] > 0 and live["phase"] in SERVING

    wait_until(serves_again, "to serve again")
    head.sh(f"until rm -rf {home}; do sleep 0.05; done")  # the supervisor writes there
    driver.good("down", NAME)
    assert_clean(testbed_nodes)
