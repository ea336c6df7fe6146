"""Rings and switches in network namespaces: neighbours found, the plan's addresses and routes set by real `ip`."""

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import IPv4Interface
from pathlib import Path

import pytest

from functional.netns import MISSING, run_ip_command
from sparkwright.app.setup.init_layout import PingWay, unseen, with_reached
from sparkwright.domain.command import Command, Completed
from sparkwright.domain.facts import Unknown
from sparkwright.facts.cabling import Cabling, parse, parse_claimed, parse_reached
from sparkwright.planner.addressing import Layout, Port, plan_addresses
from sparkwright.remote.cabling import claimed, fabric_fix, reached, read_wires, send_hello

pytestmark = pytest.mark.skipif(MISSING, reason="network namespaces take root and ip")
Wire = Sequence[tuple[str, int]]  # (node, cage)
# A responder as avahi is one: answers a one-shot question to the asker alone, here its second one.
RESPONDER = """
import socket, struct, sys
sys.path[:0] = sys.argv[1:]
from unit.adapters.test_mdns import answer
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.bind(("::", 5353))
group = socket.inet_pton(socket.AF_INET6, "ff02::fb") + struct.pack("@I", socket.if_nametoindex("enp1s0f0np0"))
s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, group)
print("ready", flush=True)
seen = set()
while (asker := s.recvfrom(9000)[1]) not in seen:
    seen.add(asker)
s.sendto(answer("spark-2.local"), asker)
"""
# Its clock is slow: an answer has three seconds in place of one before the next question, or the end.
ASKER = """
import time
from sparkwright.adapters.mdns import find_ssh_hosts
monotonic = time.monotonic
time.monotonic = lambda: monotonic() / 3
print(*find_ssh_hosts())
"""
RING: Sequence[Wire] = ([("a", 0), ("b", 1)], [("b", 0), ("c", 1)], [("c", 0), ("a", 1)])
CABLES: Sequence[Wire] = ([("a", 0), ("b", 0)], [("a", 1), ("b", 1)])
FOUR: Sequence[Wire] = (*RING[:2], [("c", 0), ("d", 1)], [("d", 0), ("a", 1)])
SWITCH: Sequence[Wire] = ([("a", 0), ("b", 0), ("c", 1), ("d", 0)],)


@contextmanager
def wire_namespaces(tag: str, cables: Sequence[Wire]) -> Iterator[Mapping[str, str]]:
    """Node -> namespace. Both functions of a cage are on its wire, which is a bridge, as on the real NIC."""
    nodes = sorted({node for wire in cables for node, _ in wire})
    spaces = {node: f"{tag}{node}{os.getpid()}" for node in (*nodes, "wire")}
    try:
        for space in spaces.values():
            run_ip_command("netns", "add", space)
        for number, wire in enumerate(cables):
            run_ip_command("-n", spaces["wire"], "link", "add", f"w{number}", "type", "bridge")
            run_ip_command("-n", spaces["wire"], "link", "set", f"w{number}", "mtu", "9000", "up")
            for node, cage in wire:
                for domain in ("", "P2"):
                    name, end = f"en{domain}p1s0f{cage}np{cage}", f"{node}{cage}{domain or 'P0'}"
                    far = ("peer", "name", end, "netns", spaces["wire"])
                    run_ip_command("link", "add", name, "netns", spaces[node], "type", "veth", *far)
                    run_ip_command(
                        "-n", spaces["wire"], "link", "set", end, "mtu", "9000", "master", f"w{number}", "up"
                    )
                    run_ip_command("-n", spaces[node], "link", "set", name, "up")
        yield {node: spaces[node] for node in nodes}
    finally:
        for space in spaces.values():
            subprocess.run(("ip", "netns", "delete", space), check=False, capture_output=True)


def run_in_namespace(space: str, command: Command, *, nobody: bool = False) -> Completed:
    """nobody: as a user without rights, who may ping, as on Ubuntu and Debian."""
    user = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups") if nobody else ()
    argv = ("ip", "netns", "exec", space, *user, *command.argv)
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    return Completed(done.returncode, done.stdout, done.stderr)


def interfaces(space: str) -> list[str]:
    done = subprocess.run(("ip", "-n", space, "-o", "link"), capture_output=True, text=True, check=True)
    return sorted(name for line in done.stdout.splitlines() if (name := line.split()[1].split("@")[0])[:2] == "en")


def find_cabling(spaces: Mapping[str, str], *, pings: bool) -> dict[str, Cabling]:
    """The cabling found by frames of our own on all nodes at once, or by pings alone as without root."""

    def one(space: str) -> Cabling:
        names = interfaces(space)
        told = (
            run_in_namespace(space, read_wires(names if pings else []), nobody=True).stdout
            + run_in_namespace(space, send_hello([] if pings else names)).stdout
        )
        macs = run_in_namespace(space, Command(("sh", "-c", "cd /sys/class/net; grep -H . en*/address"))).stdout
        lines = [line.replace("/address:", " mac ") for line in macs.splitlines()]
        cabling = parse(Completed(0, "\n".join([*lines, told])))
        assert cabling
        return cabling

    with ThreadPoolExecutor() as pool:
        return dict(zip(spaces, pool.map(one, spaces.values()), strict=True))


def planned(spaces: Mapping[str, str], cables: Mapping[str, Cabling]) -> Layout:
    ports = [Port(n, name, mac, cables[n].seen[name]) for n in spaces for name, mac in cables[n].macs.items()]
    return plan_addresses(tuple(spaces), ports)


def apply_layout(spaces: Mapping[str, str], layout: Layout) -> None:
    for port in layout.ports:
        run_ip_command("-n", spaces[port.node], "addr", "add", str(port.address), "dev", port.name)
        run_ip_command("-n", spaces[port.node], "link", "set", port.name, "mtu", "9000")
    for port in layout.ports:
        for route in port.routes:
            way = ("via", route.gateway, "dev", route.interface)
            run_ip_command("-n", spaces[port.node], "route", "add", route.destination, *way)


def unreached(spaces: Mapping[str, str], layout: Layout) -> Iterable[tuple[str, str, str]]:
    """The unreached (node, other node, address)."""
    for node, space in spaces.items():
        for port in layout.ports:
            ping = ("ping", "-n", "-q", "-c", "1", "-W", "5", "-M", "do", "-s", "8972", str(port.address.ip))
            if port.node != node and not run_in_namespace(space, Command(ping)).ok:
                yield node, port.node, f"{port.name} {port.address}"


@pytest.mark.full
@pytest.mark.parametrize(
    "tag, cables, topology",
    [
        ("sc", CABLES, "two nodes, 2 cables"),
        ("sr", RING, "3 nodes in a ring"),
        ("ss", SWITCH, "4 nodes on a switch"),
    ],
    ids=["cables", "ring", "switch"],
)
def test_every_address_is_reached_from_every_node(tag: str, cables: Sequence[Wire], topology: str) -> None:
    """Guards topologies that need more than a cable: found by our frames, set by `ip`, each address reached with jumbo
    frames from each node, and reported by each node as the step wants it."""
    with wire_namespaces(tag, cables) as spaces:
        layout = planned(spaces, find_cabling(spaces, pings=False))
        assert (layout.topology, layout.apart) == (topology, ())
        apply_layout(spaces, layout)
        assert list(unreached(spaces, layout)) == []
        for node, space in spaces.items():
            settings = [(port.name, str(port.address), port.routes) for port in layout.of(node)]
            fix = fabric_fix(node, "networkd", settings)
            assert run_in_namespace(space, fix.look).stdout.strip() == fix.sets


LATE = """
import socket, time
class Late(socket.socket):
    def bind(self, address):
        time.sleep(0.5)
        super().bind(address)
socket.socket = Late
"""


def test_a_port_hears_nothing_of_the_others(tmp_path: Path) -> None:
    """A busy node makes its sockets while the others send already: a frame of one port is no neighbour of another."""
    (tmp_path / "sitecustomize.py").write_text(LATE)
    with wire_namespaces("sl", RING) as spaces, ThreadPoolExecutor() as pool:
        said = {
            node: pool.submit(
                run_in_namespace,
                space,
                with_python_path(send_hello(interfaces(space)), tmp_path)
                if node == "a"
                else send_hello(interfaces(space)),
            )
            for node, space in spaces.items()
        }
        macs = {
            n: run_in_namespace(space, Command(("sh", "-c", "cat /sys/class/net/en*f0*/address"))).stdout.split()
            for n, space in spaces.items()
        }
        seen = [line.split() for line in said["a"].result().stdout.splitlines()]
        assert {mac for _, _, mac in seen} & set(macs["c"]), seen
        assert [line for line in seen if "f0" in line[0] and line[2] in macs["c"]] == []


def with_python_path(command: Command, folder: Path) -> Command:
    return replace(command, argv=("env", f"PYTHONPATH={folder}", *command.argv))


@pytest.mark.full
def test_a_ring_of_four_lacks_two_ways() -> None:
    """Guards four nodes without a switch: addresses and routes reach all neighbours, and only those; the two pairs
    without a cable are named, so that `init` leaves the fabric alone: RoCE is not routed."""
    with wire_namespaces("s4", FOUR) as spaces:
        layout = planned(spaces, find_cabling(spaces, pings=False))
        assert (layout.topology, layout.apart) == ("4 nodes, not all connected", (("a", "c"), ("b", "d")))
        apply_layout(spaces, layout)
        missed = {(here, there) for here, there, _ in unreached(spaces, layout)}
        assert missed == {("a", "c"), ("c", "a"), ("b", "d"), ("d", "b")}


@pytest.mark.full
def test_pings_find_the_same_without_root() -> None:
    """Guards the way for users without sudo: neighbours by IPv6 link-local addresses, the same plan."""
    with wire_namespaces("sp", RING) as spaces:
        settled = Command(("sh", "-c", HAS_ADDRESSES))
        assert all(run_in_namespace(space, settled).ok for space in spaces.values())
        for space in spaces.values():
            assert run_in_namespace(space, Command(("sysctl", "-qw", "net.ipv4.ping_group_range=0 2147483647"))).ok
        assert planned(spaces, find_cabling(spaces, pings=True)) == planned(spaces, find_cabling(spaces, pings=False))


def test_addresses_that_answer_are_a_cable() -> None:
    """Guards nodes with addresses and no IPv6, for a user without root: `init` said that there is no cable."""
    with wire_namespaces("sq", [[("a", 0), ("b", 0)]]) as spaces:
        for number, space in enumerate(spaces.values(), 1):
            for name in interfaces(space):
                assert run_in_namespace(space, Command(("sysctl", "-qw", f"net.ipv6.conf.{name}.disable_ipv6=1"))).ok
            assert run_in_namespace(space, Command(("sysctl", "-qw", "net.ipv4.ping_group_range=0 2147483647"))).ok
            run_ip_command("-n", space, "addr", "add", f"10.5.0.{number}/24", "dev", "enp1s0f0np0")
        heard = {
            node: parse(run_in_namespace(space, read_wires(interfaces(space)), nobody=True))
            for node, space in spaces.items()
        }
        cables = {node: one for node, one in heard.items() if not isinstance(one, Unknown)}
        assert [macs for one in cables.values() for macs in one.seen.values() if macs] == []
        ports = [
            Port(n, name, mac, addresses=(IPv4Interface(f"10.5.0.{k}/24"),) if name == "enp1s0f0np0" else ())
            for k, (n, one) in enumerate(cables.items(), 1)
            for name, mac in one.macs.items()
        ]
        ways = [*unseen("a", ports), PingWay("enp1s0f0np0", "10.5.0.9", "02:00:00:00:00:09", frozenset())]
        asked = run_in_namespace(spaces["a"], reached([(way.name, way.address) for way in ways]), nobody=True)
        known = {**cables, "a": with_reached(cables["a"], ways, parse_reached(asked))}
        layout = planned(spaces, known)
        assert (layout.topology, layout.apart) == ("two nodes, one cable", ())
        assert [port.name for port in layout.ports] == ["enp1s0f0np0", "enp1s0f0np0"]


# Right after a port has come up it has no address at all, and then one that may not be sent from yet.
HAS_ADDRESSES = """until ip -6 addr show scope link | grep -q inet6 && [ -z "$(ip -6 addr show tentative)" ]; do
  sleep 0.1; done"""


def test_the_neighbour_on_the_cable_answers_to_its_name() -> None:
    """Guards `init` without names on a node whose only neighbour is at the other end of a bare cable; the first
    question gets lost."""
    with wire_namespaces("sm", [[("a", 0), ("b", 0)]]) as spaces:
        settled = Command(("sh", "-c", HAS_ADDRESSES))
        assert all(run_in_namespace(space, settled).ok for space in spaces.values())
        argv = ("ip", "netns", "exec", spaces["b"], sys.executable, "-c", RESPONDER, *sys.path)
        with subprocess.Popen(argv, stdout=subprocess.PIPE) as answering:
            try:
                assert answering.stdout and answering.stdout.readline() == b"ready\n"
                found = run_in_namespace(spaces["a"], Command((sys.executable, "-c", ASKER)))
                assert found.stdout.split() == ["spark-2.local"], found
            finally:
                answering.kill()


def test_an_address_of_another_machine_is_noticed() -> None:
    """Guards a switch that others are on: who has an address already is found by ARP, and only who has it."""
    with wire_namespaces("st", SWITCH) as spaces:
        port, name = spaces["d"], "enp1s0f0np0"
        run_ip_command("-n", port, "addr", "add", "192.168.100.12/24", "dev", name)
        asked = claimed([(name, "192.168.100.12"), ("enP2p1s0f0np0", "192.168.101.12")])
        ((wire, address, mac),) = parse_claimed(run_in_namespace(spaces["a"], asked))
        assert (wire, address) == (name, "192.168.100.12")
        assert mac in run_in_namespace(port, Command(("ip", "link"))).stdout
        assert parse_claimed(run_in_namespace(spaces["a"], claimed([(name, "192.168.100.11")]))) == ()


def test_an_address_is_found_through_a_port_that_is_off() -> None:
    """Guards a node from the box: another machine's address is not taken because the own port was off."""
    with wire_namespaces("sx", [[("a", 0), ("b", 0)]]) as spaces:
        name = "enp1s0f0np0"
        run_ip_command("-n", spaces["b"], "addr", "add", "192.168.100.12/24", "dev", name)
        run_ip_command("-n", spaces["a"], "link", "set", name, "down")
        asked = run_in_namespace(spaces["a"], claimed([(name, "192.168.100.12")]))
        assert [address for _, address, _ in parse_claimed(asked)] == ["192.168.100.12"], asked
        assert name not in run_in_namespace(spaces["a"], Command(("ip", "-o", "link", "show", "up"))).stdout


def test_a_port_that_is_off_is_found_and_off_again() -> None:
    """Guards nodes from the box under networkd, which leaves ports without a configuration off."""
    with wire_namespaces("so", [[("a", 0), ("b", 0)]]) as spaces:
        for name in interfaces(spaces["b"]):
            run_ip_command("-n", spaces["b"], "link", "set", name, "down")
        layout = planned(spaces, find_cabling(spaces, pings=False))
        assert (layout.topology, len(layout.ports)) == ("two nodes, one cable", 4)
        assert run_in_namespace(spaces["b"], Command(("ip", "-o", "link", "show", "up"))).stdout == ""


def test_the_way_in_and_the_way_out_are_guarded() -> None:
    """Guards against cutting off the user: the port of the default route, what a bridge with the ssh session's address
    is made of, and neither of the others."""
    with wire_namespaces("sg", [[("a", 0), ("b", 0)], [("a", 1), ("b", 1)]]) as spaces:
        space = spaces["a"]
        run_ip_command("-n", space, "addr", "add", "10.9.0.1/24", "dev", "enp1s0f0np0")
        run_ip_command("-n", space, "route", "add", "default", "via", "10.9.0.2")
        run_ip_command("-n", space, "link", "add", "br0", "type", "bridge")
        run_ip_command("-n", space, "link", "set", "enp1s0f1np1", "master", "br0")
        run_ip_command("-n", space, "addr", "add", "10.8.0.1/24", "dev", "br0")
        session = replace(read_wires([]), env={"SSH_CONNECTION": "10.8.0.9 40000 10.8.0.1 22"})
        argv = ("env", *(f"{name}={value}" for name, value in session.env.items()), *session.argv)
        cabling = parse(run_in_namespace(space, Command(argv)))
        assert cabling and cabling.guarded == {"enp1s0f0np0", "br0", "enp1s0f1np1"}
