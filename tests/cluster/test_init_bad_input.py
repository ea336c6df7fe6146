"""`init` where something is in its way: other machines, firewalls, odd files, no rights."""

import subprocess
from collections.abc import Iterator

import pytest

from cluster import cable
from cluster.drive import CommandDriver
from testbed import ContainerNode

PASSWORD = "Correct-Horse-42"
FABRIC = ("--only", "fabric", "--only", "peers")


@pytest.mark.full
def test_machines_that_are_no_gb10(cabled_driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """Guards other people's machines: refused with their names, nothing changed, and prepared when asked with why."""
    before = cable.settings(testbed_nodes)
    testbed_nodes[1].set_shim("nvidia-smi", "absent")
    testbed_nodes[1].sh("rm -rf /opt/fixtures/sys/bus/pci")
    done = cabled_driver.run("init", "--yes")
    assert done.code == 1 and "spark-2: no GB10 was found there" in done.err, str(done)
    assert cable.settings(testbed_nodes) == before
    forced = cabled_driver.run("init", "--yes", "--json", "--only", "peers", "--force", "a bench")
    assert forced.code == 0, str(forced)
    assert [one["outcome"] for one in forced.json["steps"]] == ["done"] * 2, str(forced)
    assert "no GB10: a bench" in testbed_nodes[1].sh("cat ~spark/.local/state/sparkwright/audit.log")
    assert cabled_driver.run("init", "--undo", "--yes").code == 0


@pytest.mark.full
def test_firewall_on_the_new_path(cabled_driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """Guards that an address which answers pings and not ssh is not kept."""
    testbed_nodes[1].sh("iptables -I INPUT -p tcp -d 192.168.100.12 --dport 22 -j REJECT")
    try:
        done = cabled_driver.run("init", "--yes", *FABRIC)
    finally:
        testbed_nodes[1].sh("iptables -F INPUT")
    assert done.code == 1 and "spark-2 by ssh at 192.168.100.12" in done.out, str(done)
    assert cable.addresses(testbed_nodes) == [[], []]


@pytest.mark.full
def test_netplan_that_does_not_accept_its_own_files(
    cabled_driver: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """Guards a half-configured netplan: its own message is shown, and nothing is written next to it."""
    testbed_nodes[1].write(
        cable.NETPLAN, "network: {version: 2, ethernets: {eth9: {addresses: [nonsense]}}}\n", mode="600"
    )
    before = cable.settings(testbed_nodes)
    done = cabled_driver.run("init", "--yes", *FABRIC)
    assert done.code == 1 and "netplan does not accept its own files" in done.out, str(done)
    assert cabled_driver.run("init", "--undo", "--yes").code == 0
    assert cable.settings(testbed_nodes) == before


@pytest.mark.full
def test_without_sudo_nothing_of_root_is_changed(
    cabled_driver: CommandDriver, testbed_nodes: list[ContainerNode]
) -> None:
    """Guards nodes half set up: without root on one of them no fabric is touched, and the reason is printed."""
    before = cable.settings(testbed_nodes)
    testbed_nodes[1].sh(f"rm {cable.SUDOERS}")
    done = cabled_driver.run("init", "--yes", *FABRIC)
    assert done.code == 1 and "spark-2: sudo wants a password there (--ask-become-pass)" in done.err, str(done)
    assert "without root a neighbour is found only where both ports have IPv6" in done.err
    assert cabled_driver.run("init", "--undo", "--yes").code == 0
    assert cable.settings(testbed_nodes) == before


@pytest.fixture
def third_machine(cabled_driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> Iterator[str]:
    """Another machine on the cable, with the address that the first node would get; its MAC."""
    name, port = "sw-third", cable.PORTS[0]
    testbed_nodes[1].sh(f"ip link set {port} up")
    within = ("nsenter", "-t", cable.init_pid(testbed_nodes[1]), "-n", "ip", "link", "add", "third", "link", port)
    try:
        for words in (
            ("ip", "netns", "add", name),
            (*within, "netns", name, "type", "macvlan", "mode", "bridge"),
            ("ip", "-n", name, "addr", "add", "192.168.100.11/24", "dev", "third"),
            ("ip", "-n", name, "link", "set", "third", "up"),
        ):
            subprocess.run(words, check=True)
        shown = ("ip", "netns", "exec", name, "cat", "/sys/class/net/third/address")
        yield subprocess.run(shown, check=True, capture_output=True, text=True).stdout.strip()
    finally:
        subprocess.run(("ip", "netns", "delete", name), check=False)


@pytest.mark.full
def test_an_address_that_another_machine_has(
    cabled_driver: CommandDriver, testbed_nodes: list[ContainerNode], third_machine: str
) -> None:
    """Guards a switch that others are on, too: its network is passed over, and its MAC is printed."""
    done = cabled_driver.run("init", "--yes", "--json", *FABRIC)
    assert done.code == 0, str(done)
    assert f"another machine, {third_machine}, has 192.168.100.11" in " ".join(done.json["notes"]), str(done)
    assert [sorted(each) for each in cable.addresses(testbed_nodes)] == [
        ["192.168.101.11/24", "192.168.102.11/24"],
        ["192.168.101.12/24", "192.168.102.12/24"],
    ]


@pytest.fixture
def asking(cabled_driver: CommandDriver, testbed_nodes: list[ContainerNode]) -> Iterator[CommandDriver]:
    """Real sudo asks for a password on both nodes."""
    before = [node.sh("getent shadow spark | cut -d: -f2") for node in testbed_nodes]
    for node in testbed_nodes:
        node.write(cable.SUDOERS, "spark ALL=(root) PASSWD: ALL\n", mode="440")
        node.sh(f"echo 'spark:{PASSWORD}' | chpasswd")
    yield cabled_driver
    for node, hashed in zip(testbed_nodes, before, strict=True):
        node.exec(["usermod", "-p", hashed, "spark"])


@pytest.mark.full
def test_the_password_for_sudo(asking: CommandDriver, testbed_nodes: list[ContainerNode]) -> None:
    """Guards nodes whose sudo asks: a wrong one changes nothing, the right one is typed once and works both ways."""
    before = cable.settings(testbed_nodes)
    call = asking.start("init", "--yes", "--ask-become-pass", *FABRIC, tty=True)
    done = call.saw("password for sudo on the nodes").type("not-it").finish()
    assert (done.code, "sudo did not accept the password" in done.err) == (2, True), str(done)
    assert cable.settings(testbed_nodes) == before
    call = asking.start("init", "--yes", "--ask-become-pass", *FABRIC, tty=True)
    done = call.saw("password for sudo on the nodes").type(PASSWORD).finish()
    assert (done.code, done.err.count("password for sudo"), PASSWORD in done.err) == (0, 1, False), str(done)
    assert all(len(each) == 2 for each in cable.addresses(testbed_nodes))
    call = asking.start("init", "--undo", "--yes", "--ask-become-pass", tty=True)
    done = call.saw("password for sudo").type(PASSWORD).finish()
    assert done.code == 0 and cable.settings(testbed_nodes) == before, str(done)
