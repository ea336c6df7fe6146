"""`init` and `--undo` on two nodes with a cable: real NetworkManager, netplan, networkd, sudo and sshd."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from cluster import cable
from cluster.drive import SPARKWRIGHT, Drive, lease, slowed
from patience import wait_until
from testbed import Node, Testbed

# The testbed's GPU and kernel settings are fixtures.
WORDS = ("--skip", "sysctl", "--skip", "clock")
PENDING = "/var/lib/sparkwright/fabric/pending"
QUICK = {"SPARKWRIGHT_SUPERVISOR_SCALE": "0.25"}  # heals after 15 s
PASSWORD = "Correct-Horse-42"
WANTED = [["192.168.101.11/24", "192.168.100.11/24"], ["192.168.101.12/24", "192.168.100.12/24"]]


def until(node: Node, script: str) -> None:
    wait_until(lambda: node.exec(["sh", "-c", script], check=False).returncode == 0, f"{node.name}: {script}", poll=0.1)


@pytest.mark.parametrize("netplan", [True, pytest.param(False, marks=pytest.mark.full)])
def test_from_the_box_and_back(wired: Drive, nodes: list[Node], netplan: bool) -> None:
    """Guards the whole way: topology found, both ends set by what rules them, kept over a restart of it, a second run
    that changes nothing, and every file and address as before after --undo."""
    if not netplan:
        nodes[1].sh("mv /usr/sbin/netplan /usr/sbin/netplan.away; rm /etc/netplan/*")
    try:
        before = cable.settings(nodes)
        done = wired.run("init", "--yes", "--json", *WORDS)
        assert (done.code, done.json["topology"]) == (0, "two nodes, one cable"), str(done)
        assert cable.addresses(nodes) == WANTED
        assert [one["outcome"] for one in done.json["steps"]] == ["done"] * 4, str(done)
        made = cable.settings(nodes)
        nodes[0].sh("systemctl restart NetworkManager && nm-online -s -q")
        nodes[1].sh("systemctl restart systemd-networkd")
        for node, now in zip(nodes, made, strict=True):
            until(node, f"ip -4 -o addr show dev {cable.PORTS[1]} | grep -q 192.168.101")
            assert node.sh(f"cat /sys/class/net/{cable.PORTS[0]}/mtu") == "9000", now
        again = wired.run("init", "--yes", "--json", *WORDS)
        assert (again.code, again.json["steps"]) == (0, []), str(again)
        undone = wired.run("init", "--undo", "--yes", "--json")
        assert undone.code == 0, str(undone)
        assert cable.settings(nodes) == before
        assert wired.good("init", "--undo", "--yes").out == "nothing is recorded that init has changed\n"
    finally:
        nodes[1].sh("[ ! -e /usr/sbin/netplan.away ] || mv /usr/sbin/netplan.away /usr/sbin/netplan")


@pytest.mark.full
def test_cable_cut_and_caller_killed(wired: Drive, nodes: list[Node]) -> None:
    """Guards that a wrong setting heals itself: nobody is left who could take it back, and both nodes do."""
    before = cable.settings(nodes)
    with slowed(nodes[0], "ping", 30, "*8972*"), slowed(nodes[1], "ping", 30, "*8972*"):
        call = wired.start("init", "--yes", "--only", "fabric", "--only", "peers", env=QUICK)
        call.saw("reaches it at")
        assert cable.addresses(nodes) == WANTED
        nodes[1].set_link(up=False)
        call.kill()
    for node in nodes:
        until(node, f"[ ! -e {PENDING} ] && ! systemctl is-active -q sparkwright-fabric.service")
    nodes[1].set_link(up=True)
    assert cable.addresses(nodes) == [[], []]
    for node in nodes:
        assert lease(node)
        node.sh("touch -d '-61 seconds' /run/lock/sparkwright/lease")  # as a minute later
    undone = wired.run("init", "--undo", "--yes")
    assert undone.code == 0 and "held the lease for `init` and is gone since" in undone.err, str(undone)
    assert cable.settings(nodes) == before


@pytest.mark.full
def test_cable_cut_before_the_confirmation(wired: Drive, nodes: list[Node]) -> None:
    """Guards the same with a caller that is still there: an error with the reason, and both nodes as before."""
    with slowed(nodes[0], "ping", 3, "*8972*"), slowed(nodes[1], "ping", 3, "*8972*"):
        call = wired.start("init", "--yes", "--only", "fabric", "--only", "peers")
        call.saw("reaches it at")
        nodes[1].set_link(up=False)
        done = call.finish()
    nodes[1].set_link(up=True)
    assert done.code == 1 and "is not reached over the new path" in done.out, str(done)
    assert "everything is as before here" in done.out
    assert cable.addresses(nodes) == [[], []]
    assert [node.sh("ls /var/lib/sparkwright 2>/dev/null", check=False) for node in nodes] == ["", ""]


@pytest.mark.full
def test_management_network_that_blinks(wired: Drive, nodes: list[Node]) -> None:
    """Guards the ssh sessions of init: nothing passes for some seconds in the middle of the step, and it is kept."""
    with slowed(nodes[0], "ping", 8, "*8972*"):
        call = wired.start("init", "--yes", "--only", "fabric", "--only", "peers")
        call.saw("spark-1 reaches it at")
        nodes[1].sh("for c in INPUT OUTPUT; do iptables -I $c -p tcp -m multiport --ports 22 -j DROP; done")
        nodes[1].sh("sleep 6; iptables -F")
        done = call.finish()
    assert done.code == 0, str(done)
    assert cable.addresses(nodes) == WANTED


@pytest.mark.full
def test_what_is_printed_can_be_pasted(wired: Drive, nodes: list[Node]) -> None:
    """Guards --dry-run as instructions: its lines, pasted into a shell on each node, are what the step would do."""
    shown = wired.run("init", "--dry-run", "--json", "--only", "fabric")
    assert shown.code == 0, str(shown)
    for node, step in zip(nodes, shown.json["steps"], strict=True):
        node.exec(["su", "spark", "-c", "sh -e"], input="\n".join(f"    {line}" for line in step["commands"]) + "\n")
        until(node, f"ip -4 -o addr show dev {cable.PORTS[1]} | grep -q 192.168.101")
    assert cable.addresses(nodes) == WANTED
    after = wired.run("init", "--yes", "--json", "--only", "fabric")
    assert (after.code, after.json["steps"]) == (0, []), str(after)
    assert [one["node"] for one in after.json["ready"] if one["step"] == "fabric"] == ["spark-1", "spark-2"]


@pytest.mark.full
def test_docker_without_sudo_and_back(drive: Drive, nodes: list[Node]) -> None:
    """Guards the step docker: the next call on the node has the new group, although its ssh connection was open."""
    drive.users = {nodes[0].name: "nodocker"}
    nodes[0].write(cable.SUDOERS, "nodocker ALL=(root) NOPASSWD: ALL\n", mode="440")
    group = nodes[0].sh("sha256sum /etc/group")
    try:
        assert "no rights" in drive.run("facts", "--json").out
        done = drive.run("init", "--yes", "--json", "--only", "docker")
        assert [(one["node"], one["outcome"]) for one in done.json["steps"]] == [("spark-1", "done")], str(done)
        assert "no rights" not in drive.run("facts", "--json").out
        assert drive.run("init", "--undo", "--yes").code == 0
        assert nodes[0].sh("sha256sum /etc/group") == group
    finally:
        nodes[0].sh(f"rm -f {cable.SUDOERS}; gpasswd -d nodocker docker", check=False)


@pytest.mark.full
def test_ring_of_three_to_a_cluster_file_that_check_accepts(drive: Drive, testbed: Testbed) -> None:
    """Guards three whole nodes: every pair reached by each cable, a cluster file with each node's address, which
    check, status and a plan take; the way back; and that without one of the cables the missing one is named."""
    with testbed.third():
        nodes = testbed.nodes
        try:
            cable.plug(nodes, cable.RING)
            before = cable.settings(nodes)
            file = drive.folder / "ring.yaml"
            where = ("--cluster", str(file))
            done = drive.run("init", "--yes", "--json", *where, *WORDS, *(node.name for node in nodes))
            assert (done.code, done.json["topology"]) == (0, "3 nodes in a ring"), str(done)
            assert {one["outcome"] for one in done.json["steps"]} == {"done"}
            assert len(yaml.safe_load(file.read_text())["nodes"]) == 3 and "fabric:" in file.read_text()
            far = [one.partition("/")[0] for node in cable.addresses(nodes) for one in node]
            for node in nodes:
                for address in far:
                    node.sh(f"ping -n -q -c 1 -W 5 -M do -s 8972 {address}")
            checked = drive.run("check", "--json", *where)
            assert checked.code in (0, 1), str(checked)
            about = [one for one in checked.json["findings"] if one["code"][:3] in ("FAB", "NET", "RCP")]
            assert not [one for one in about if one["severity"] == "error"], about
            assert drive.run("status", *where).code == 0
            assert drive.run("init", "--undo", "--yes", *where).code == 0
            assert cable.settings(nodes) == before
            nodes[2].sh(f"for i in {' '.join(cable.PORTS)}; do ip link del $i; done")
            broken = drive.run("init", "--dry-run", "--json", *where, "--only", "fabric")
            assert (broken.code, broken.json["steps"]) == (1, []), str(broken)
            assert "spark-1 and spark-3 have no cable or switch between them" in " ".join(broken.json["notes"])
        finally:
            cable.unplug(nodes)


@pytest.fixture
def stranger(drive: Drive, nodes: list[Node]) -> Iterator[Path]:
    """An ssh configuration of somebody who has only the password; the file of host keys is empty."""
    first = nodes[0]
    hashed = first.sh("getent shadow spark | cut -d: -f2")
    first.sh(f"echo 'spark:{PASSWORD}' | chpasswd; mv ~spark/.ssh ~spark/.ssh.away")
    first.write("/etc/ssh/sshd_config.d/00-init.conf", "PasswordAuthentication yes\n")
    first.sh("systemctl reload ssh")
    config = drive.folder / "ssh_config"
    known = drive.folder / "known_hosts"
    config.write_text(f"Host *\n  User spark\n  UserKnownHostsFile {known}\n  GlobalKnownHostsFile /dev/null\n")
    yield config
    first.sh("rm -rf ~spark/.ssh /etc/ssh/sshd_config.d/00-init.conf; mv ~spark/.ssh.away ~spark/.ssh")
    first.sh("systemctl reload ssh")
    first.exec(["usermod", "-p", hashed, "spark"])


def call(drive: Drive, config: Path, *words: str) -> tuple[str, ...]:
    where = ("--cluster", str(drive.folder / "new.yaml"), "--ssh-config", str(config))
    return (*SPARKWRIGHT, "init", *where, *words)


@pytest.mark.full
def test_first_login_by_password_and_back(drive: Drive, nodes: list[Node], stranger: Path) -> None:
    """Guards the first step: host key shown and accepted once, the password typed into ssh itself, a cluster file, and
    no trace on the node after --undo."""
    from cluster.drive import Call

    first, env = nodes[0], {"HOME": str(drive.folder / "home"), "TERM": "dumb", "PATH": "/usr/bin:/bin:/usr/sbin"}
    (drive.folder / "home").mkdir()
    words = call(drive, stranger, f"a={first.mgmt}", "--skip", "sysctl", "--skip", "clock")
    asked = Call(words, env, drive.folder, tty=True)
    asked.saw("host keys of").saw("SHA256:").saw("are they the node's?").type("y")
    asked.saw("password:").type(PASSWORD)
    done = asked.finish()
    assert done.code == 0 and "cluster file written" in done.err, str(done)
    assert f"ssh: '{first.mgmt}'" in (drive.folder / "new.yaml").read_text()
    assert first.sh("stat -c '%a %U' ~spark/.ssh ~spark/.ssh/authorized_keys").split() == [
        "700",
        "spark",
        "600",
        "spark",
    ]
    seen = (*SPARKWRIGHT, "check", "--cluster", str(drive.folder / "new.yaml"), "--json")
    assert subprocess.run(seen, env=env, capture_output=True, timeout=60).returncode in (0, 1)
    undo = subprocess.run(call(drive, stranger, "--undo", "--yes"), env=env, capture_output=True, text=True, timeout=60)
    assert undo.returncode == 0, undo.stderr
    assert first.sh("ls -A ~spark/.ssh 2>/dev/null", check=False) == ""
    assert not (drive.folder / "home/.config/sparkwright/ssh").exists()


@pytest.mark.full
def test_wrong_password_installs_nothing(drive: Drive, nodes: list[Node], stranger: Path) -> None:
    """Guards the attempt that fails: ssh's three tries, an error with a hint, nothing on the node."""
    from cluster.drive import Call

    env = {"HOME": str(drive.folder / "home"), "TERM": "dumb", "PATH": "/usr/bin:/bin:/usr/sbin"}
    (drive.folder / "home").mkdir()
    asked = Call(call(drive, stranger, f"a={nodes[0].mgmt}"), env, drive.folder, tty=True)
    asked.saw("are they the node's?").type("y")
    for _ in range(3):
        seen = asked.err.count("password:")
        end = time.monotonic() + 60
        while asked.err.count("password:") == seen and time.monotonic() < end:
            time.sleep(0.05)
        asked.type("wrong")
    done = asked.finish()
    assert done.code == 3 and "our key could not be installed" in done.err, str(done)
    assert nodes[0].sh("ls -A ~spark/.ssh 2>/dev/null", check=False) == ""
