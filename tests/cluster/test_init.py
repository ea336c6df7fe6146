"""`init` and `--undo` on two nodes with a cable: real NetworkManager, netplan, networkd, sudo and sshd."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from cluster import cable
from cluster.drive import SPARKWRIGHT, CommandDriver, hold_program, read_lease, slowed
from patience import CALL, wait_until
from testbed import ContainerNode, Testbed

# The testbed's GPU and kernel settings are fixtures.
WORDS = ("--skip", "sysctl", "--skip", "clock")
PENDING = "/var/lib/sparkwright/fabric/pending"
QUICK = {"SPARKWRIGHT_SUPERVISOR_SCALE": "0.25"}  # heals after 15 s
PASSWORD = "Correct-Horse-42"
WANTED = [["192.168.101.11/24", "192.168.100.11/24"], ["192.168.101.12/24", "192.168.100.12/24"]]


def wait_for_success(node: ContainerNode, script: str) -> None:
    wait_until(lambda: node.exec(["sh", "-c", script], check=False).returncode == 0, f"{node.name}: {script}", poll=0.1)


@pytest.mark.parametrize("netplan", [True, pytest.param(False, marks=pytest.mark.full)])
def test_from_the_box_and_back(cabled_driver: CommandDriver, testbed_nodes: list[ContainerNode], netplan: bool) -> None:
    """Guards the whole way: topology found, both ends set by what rules them, kept over a restart of it, a second run
    that changes nothing, and every file and address as before after --undo."""
    if not netplan:
        testbed_nodes[1].sh("mv /usr/sbin/netplan /usr/sbin/netplan.away; rm /etc/netplan/*")
    try:
        before = cable.settings(testbed_nodes)
        done = cabled_driver.run("init", "--yes", "--json", *WORDS)
        assert (done.code, done.json["topology"]) == (0, "two nodes, one cable"), str(done)
        assert cable.addresses(testbed_nodes) == WANTED
        assert [one["outcome"] for one in done.json["steps"]] == ["done"] * 4, str(done)
        made = cable.settings(testbed_nodes)
        testbed_nodes[0].sh("systemctl restart NetworkManager && nm-online -s -q")
        testbed_nodes[1].sh("systemctl restart systemd-networkd")
        wait_until(
            lambda: cable.addresses(testbed_nodes) == WANTED, lambda: f"{cable.addresses(testbed_nodes)}, {made}"
        )
        for node in testbed_nodes:
            wait_for_success(node, f"grep -qx 9000 /sys/class/net/{cable.PORTS[0]}/mtu")
        again = cabled_driver.run("init", "--yes", "--json", *WORDS)
        assert (again.code, again.json["steps"]) == (0, []), str(again)
        undone = cabled_driver.run("init", "--undo", "--yes", "--json")
        assert undone.code == 0, str(undone)
        assert cable.settings(testbed_nodes) == before
        assert cabled_driver.good("init", "--undo", "--yes").out == "nothing is recorded that init has changed\n"
    finally:
        testbed_nodes[1].sh("[ ! -e /usr/sbin/netplan.away ] || mv /usr/sbin/netplan.away /usr/sbin/netplan")


@pytest.mark.full
def test_cable_cut_and_caller_killed(cabled_driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """Guards that a wrong setting heals itself: nobody is left who could take it back, and both nodes do."""
    before = cable.settings(testbed_nodes)
    with slowed(testbed_nodes[0], "ping", 30, "*8972*"), slowed(testbed_nodes[1], "ping", 30, "*8972*"):
        call = cabled_driver.start("init", "--yes", "--only", "fabric", "--only", "peers", env=QUICK)
        call.saw("reaches it at")
        assert cable.addresses(testbed_nodes) == WANTED
        testbed_nodes[1].set_link(up=False)
        call.kill()
    for node in testbed_nodes:
        wait_for_success(node, f"[ ! -e {PENDING} ] && ! systemctl is-active -q sparkwright-fabric.service")
    testbed_nodes[1].set_link(up=True)
    assert cable.addresses(testbed_nodes) == [[], []]
    for node in testbed_nodes:
        assert read_lease(node)
        node.sh("touch -d '-61 seconds' /run/lock/sparkwright/lease")  # as a minute later
    undone = cabled_driver.run("init", "--undo", "--yes")
    assert undone.code == 0 and "held the lease for `init` and is gone since" in undone.err, str(undone)
    assert cable.settings(testbed_nodes) == before


@pytest.mark.full
def test_cable_cut_before_the_confirmation(cabled_driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """Guards the same with a caller that is still there: an error with the reason, and both nodes as before."""
    with hold_program(testbed_nodes[0], "ping", "*8972*"), hold_program(testbed_nodes[1], "ping", "*8972*"):
        call = cabled_driver.start("init", "--yes", "--only", "fabric", "--only", "peers")
        call.saw("reaches it at")
        testbed_nodes[1].set_link(up=False)
    done = call.finish()
    testbed_nodes[1].set_link(up=True)
    assert done.code == 1 and "is not reached over the new path" in done.out, str(done)
    assert "everything is as before here" in done.out
    assert cable.addresses(testbed_nodes) == [[], []]
    assert [node.sh("ls /var/lib/sparkwright 2>/dev/null", check=False) for node in testbed_nodes] == ["", ""]


@pytest.mark.full
def test_management_network_that_blinks(cabled_driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """Guards the ssh sessions of init: nothing passes for some seconds in the middle of the step, and it is kept."""
    with slowed(testbed_nodes[0], "ping", 8, "*8972*"):
        call = cabled_driver.start("init", "--yes", "--only", "fabric", "--only", "peers")
        call.saw("spark-1 reaches it at")
        testbed_nodes[1].sh("for c in INPUT OUTPUT; do iptables -I $c -p tcp -m multiport --ports 22 -j DROP; done")
        testbed_nodes[1].sh("sleep 6; iptables -F")
        done = call.finish()
    assert done.code == 0, str(done)
    assert cable.addresses(testbed_nodes) == WANTED


@pytest.mark.full
def test_what_is_printed_can_be_pasted(cabled_driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """Guards --dry-run as instructions: its lines, pasted into a shell on each node, are what the step would do."""
    shown = cabled_driver.run("init", "--dry-run", "--json", "--only", "fabric")
    assert shown.code == 0, str(shown)
    for node, step in zip(testbed_nodes, shown.json["steps"], strict=True):
        node.exec(["su", "spark", "-c", "sh -e"], input="\n".join(f"    {line}" for line in step["commands"]) + "\n")
    wait_until(lambda: cable.addresses(testbed_nodes) == WANTED, lambda: f"{cable.addresses(testbed_nodes)}")
    after = cabled_driver.run("init", "--yes", "--json", "--only", "fabric")
    assert (after.code, after.json["steps"]) == (0, []), str(after)
    assert [one["node"] for one in after.json["ready"] if one["step"] == "fabric"] == ["spark-1", "spark-2"]


@pytest.mark.full
def test_docker_without_sudo_and_back(driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """Guards the step docker: the next call on the node has the new group, although its ssh connection was open."""
    driver.users = {testbed_nodes[0].name: "nodocker"}
    testbed_nodes[0].write(cable.SUDOERS, "nodocker ALL=(root) NOPASSWD: ALL\n", mode="440")
    group = testbed_nodes[0].sh("sha256sum /etc/group")
    try:
        assert "no rights" in driver.run("facts", "--json").out
        done = driver.run("init", "--yes", "--json", "--only", "docker")
        assert [(one["node"], one["outcome"]) for one in done.json["steps"]] == [("spark-1", "done")], str(done)
        assert "no rights" not in driver.run("facts", "--json").out
        assert driver.run("init", "--undo", "--yes").code == 0
        assert testbed_nodes[0].sh("sha256sum /etc/group") == group
    finally:
        testbed_nodes[0].sh(f"rm -f {cable.SUDOERS}; gpasswd -d nodocker docker", check=False)


@pytest.mark.full
def test_ring_of_three_to_a_cluster_file_that_check_accepts(driver: CommandDriver, testbed: Testbed) -> None:
    """Guards three whole nodes: every pair reached by each cable, a cluster file with each node's address, which
    check, status and a plan take; the way back; and that without one of the cables the missing one is named."""
    with testbed.third():
        nodes = testbed.nodes
        try:
            cable.plug_cables(nodes, cable.RING)
            before = cable.settings(nodes)
            file = driver.folder / "ring.yaml"
            where = ("--cluster", str(file))
            done = driver.run("init", "--yes", "--json", *where, *WORDS, *(node.name for node in nodes))
            assert (done.code, done.json["topology"]) == (0, "3 nodes in a ring"), str(done)
            assert {one["outcome"] for one in done.json["steps"]} == {"done"}
            assert len(yaml.safe_load(file.read_text())["nodes"]) == 3 and "fabric:" in file.read_text()
            far = [one.partition("/")[0] for node in cable.addresses(nodes) for one in node]
            for node in nodes:
                for address in far:
                    node.sh(f"ping -n -q -c 1 -W 5 -M do -s 8972 {address}")
            checked = driver.run("check", "--json", *where)
            assert checked.code in (0, 1), str(checked)
            about = [one for one in checked.json["findings"] if one["code"][:3] in ("FAB", "NET", "RCP")]
            assert not [one for one in about if one["severity"] == "error"], about
            assert driver.run("status", *where).code == 0
            assert driver.run("init", "--undo", "--yes", *where).code == 0
            assert cable.settings(nodes) == before
            nodes[2].sh(f"for i in {' '.join(cable.PORTS)}; do ip link del $i; done")
            broken = driver.run("init", "--dry-run", "--json", *where, "--only", "fabric")
            assert (broken.code, broken.json["steps"]) == (1, []), str(broken)
            assert "spark-1 and spark-3 have no cable or switch between them" in " ".join(broken.json["notes"])
        finally:
            cable.unplug(nodes)


@pytest.fixture
def stranger(driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> Iterator[Path]:
    """An ssh configuration of somebody who has only the password; the file of host keys is empty."""
    first = testbed_nodes[0]
    hashed = first.sh("getent shadow spark | cut -d: -f2")
    first.sh(f"echo 'spark:{PASSWORD}' | chpasswd; mv ~spark/.ssh ~spark/.ssh.away")
    first.write("/etc/ssh/sshd_config.d/00-init.conf", "PasswordAuthentication yes\n")
    first.sh("systemctl reload ssh")
    config = driver.folder / "ssh_config"
    known = driver.folder / "known_hosts"
    config.write_text(f"Host *\n  User spark\n  UserKnownHostsFile {known}\n  GlobalKnownHostsFile /dev/null\n")
    yield config
    first.sh("rm -rf ~spark/.ssh /etc/ssh/sshd_config.d/00-init.conf; mv ~spark/.ssh.away ~spark/.ssh")
    first.sh("systemctl reload ssh")
    first.exec(["usermod", "-p", hashed, "spark"])


def init_command(drive: CommandDriver, config: Path, *words: str) -> tuple[str, ...]:
    where = ("--cluster", str(drive.folder / "new.yaml"), "--ssh-config", str(config))
    return (*SPARKWRIGHT, "init", *where, *words)


@pytest.mark.full
def test_first_login_by_password_and_back(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], stranger: Path
) -> None:
    """Guards the first step: host key shown and accepted once, the password typed into ssh itself, a cluster file, and
    no trace on the node after --undo."""
    from cluster.drive import Call

    first, env = (
        testbed_nodes[0],
        {"HOME": str(driver.folder / "home"), "TERM": "dumb", "PATH": "/usr/bin:/bin:/usr/sbin"},
    )
    (driver.folder / "home").mkdir()
    words = init_command(driver, stranger, f"a={first.mgmt}", "--skip", "sysctl", "--skip", "clock")
    asked = Call(words, env, driver.folder, tty=True)
    asked.saw("host keys of").saw("SHA256:").saw("are they the node's?").type("y")
    asked.saw("password:").type(PASSWORD)
    done = asked.finish()
    assert done.code == 0 and "cluster file written" in done.err, str(done)
    assert f"ssh: '{first.mgmt}'" in (driver.folder / "new.yaml").read_text()
    assert first.sh("stat -c '%a %U' ~spark/.ssh ~spark/.ssh/authorized_keys").split() == [
        "700",
        "spark",
        "600",
        "spark",
    ]
    seen = (*SPARKWRIGHT, "check", "--cluster", str(driver.folder / "new.yaml"), "--json")
    assert subprocess.run(seen, env=env, capture_output=True, timeout=CALL).returncode in (0, 1)
    undo = subprocess.run(
        init_command(driver, stranger, "--undo", "--yes"), env=env, capture_output=True, text=True, timeout=CALL
    )
    assert undo.returncode == 0, undo.stderr
    assert first.sh("ls -A ~spark/.ssh 2>/dev/null", check=False) == ""
    assert not (driver.folder / "home/.config/sparkwright/ssh").exists()


@pytest.mark.full
def test_wrong_password_installs_nothing(
    driver: CommandDriver, testbed_nodes: list[ContainerNode], stranger: Path
) -> None:
    """Guards the attempt that fails: ssh's three tries, an error with a hint, nothing on the node."""
    from cluster.drive import Call

    env = {"HOME": str(driver.folder / "home"), "TERM": "dumb", "PATH": "/usr/bin:/bin:/usr/sbin"}
    (driver.folder / "home").mkdir()
    asked = Call(init_command(driver, stranger, f"a={testbed_nodes[0].mgmt}"), env, driver.folder, tty=True)
    asked.saw("are they the node's?").type("y")
    for _ in range(3):
        seen = asked.err.count("password:")
        end = time.monotonic() + 60
        while asked.err.count("password:") == seen and time.monotonic() < end:
            time.sleep(0.05)
        asked.type("wrong")
    done = asked.finish()
    assert done.code == 3 and "our key could not be installed" in done.err, str(done)
    assert testbed_nodes[0].sh("ls -A ~spark/.ssh 2>/dev/null", check=False) == ""
