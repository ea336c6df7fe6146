"""Addresses and routes of the fabric: every topology, kept networks, nothing that overlaps, the same every time."""

import random
from collections.abc import Iterable
from ipaddress import IPv4Interface, IPv4Network
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkwright.domain.errors import UsageError
from sparkwright.domain.fabric_facts import Route
from sparkwright.planner.addressing import Layout, Port, plan_addresses
from unit.for_each import for_each

NODES = ("spark-1", "spark-2", "spark-3", "spark-4")
Cage = tuple[int, int]  # node, cage


def wired_ports(*wires: Iterable[Cage], has: dict[str, str] | None = None) -> list[Port]:
    """Both functions of each cage; as on the real NIC, all ports on a wire see each other, those of one cage too."""
    found = []
    for wire in wires:
        ends = [(node, cage, rail) for node, cage in wire for rail in (0, 1)]
        macs = {end: "mac-{}-{}-{}".format(*end) for end in ends}
        for end in ends:
            node, cage, rail = end
            name = f"en{('', 'P2')[rail]}p1s0f{cage}np{cage}"
            held = (has or {}).get(f"{NODES[node]} {name}")
            seen = frozenset(mac for other, mac in macs.items() if other != end)
            given = (IPv4Interface(held),) if held else ()
            found.append(Port(NODES[node], name, macs[end], seen, given))
    return found


CABLE = [[(0, 0), (1, 0)]]
TWO_CABLES = [[(0, 0), (1, 0)], [(0, 1), (1, 1)]]
RING = [[(0, 0), (1, 1)], [(1, 0), (2, 1)], [(2, 0), (0, 1)]]
SWITCH = [[(0, 0), (1, 0), (2, 1), (3, 0)]]
ALL = [(2, CABLE), (2, TWO_CABLES), (3, RING), (4, SWITCH)]


def plan_layout(
    count: int, wires: list[list[Cage]], taken: Iterable[str] = (), has: dict[str, str] | None = None
) -> Layout:
    return plan_addresses(NODES[:count], wired_ports(*wires, has=has), map(IPv4Network, taken))


def layout_lines(layout: Layout) -> list[str]:
    return [f"{port.node} {port.name} {port.address}" for port in layout.ports]


@for_each(
    "count, wires, topology, networks",
    [
        (2, CABLE, "two nodes, one cable", 2),
        (2, TWO_CABLES, "two nodes, 2 cables", 4),
        (3, RING, "3 nodes in a ring", 6),
        (4, SWITCH, "4 nodes on a switch", 2),
        (2, [[(0, 0), (1, 0), (0, 1), (1, 1)]], "two nodes, 2 cables", 4),
        (3, RING[:2], "3 nodes, not all connected", 4),
        (2, [], "no cable", 0),
    ],
)
def test_each_topology_has_its_networks(count: int, wires: list[list[Cage]], topology: str, networks: int) -> None:
    """Guards what is made of each way to cable them: its name, and one network for each wire and function."""
    layout = plan_layout(count, wires)
    assert (layout.topology, len({port.address.network for port in layout.ports})) == (topology, networks)


def test_one_cable_is_two_networks() -> None:
    """Guards the plan that most users see, to the letter, and that nodes that share a network need no route."""
    assert layout_lines(plan_layout(2, CABLE)) == [
        "spark-1 enp1s0f0np0 192.168.100.11/24",
        "spark-1 enP2p1s0f0np0 192.168.101.11/24",
        "spark-2 enp1s0f0np0 192.168.100.12/24",
        "spark-2 enP2p1s0f0np0 192.168.101.12/24",
    ]
    assert not any(port.routes for port in (*plan_layout(2, CABLE).ports, *plan_layout(4, SWITCH).ports))


def test_a_ring_reaches_the_far_address_of_each_neighbour() -> None:
    """Guards that any address of a node will do as its fabric address: C reaches A's port to B by way of its own."""
    layout = plan_layout(3, RING)
    port = {(one.node, one.name): one for one in layout.ports}
    there, near = port["spark-1", "enp1s0f0np0"].address.ip, port["spark-1", "enp1s0f1np1"].address.ip
    assert Route(f"{there}/32", str(near), "enp1s0f0np0") in port["spark-3", "enp1s0f0np0"].routes
    assert all(len(one.routes) == 1 for one in layout.ports)
    assert layout.apart == ()


def test_nodes_without_a_way_to_each_other_are_named() -> None:
    """Guards that a missing cable is not covered up by routes: RoCE is not routed."""
    assert plan_layout(3, RING[:2]).apart == (("spark-1", "spark-3"),)


def test_networks_that_they_agree_on_are_kept() -> None:
    """Guards the second run, and owners who have set it up by hand: what works stays, in whatever network."""
    first = plan_layout(3, RING)
    has = {f"{port.node} {port.name}": str(port.address) for port in first.ports}
    assert plan_layout(3, RING, has=has) == first
    own = {"spark-1 enp1s0f0np0": "10.0.0.1/30", "spark-2 enp1s0f0np0": "10.0.0.2/30"}
    assert layout_lines(plan_layout(2, CABLE, has=own))[0] == "spark-1 enp1s0f0np0 10.0.0.1/30"


@for_each(
    "has",
    [
        {"spark-1 enp1s0f0np0": "10.0.0.1/30"},
        {"spark-1 enp1s0f0np0": "10.0.0.1/24", "spark-2 enp1s0f0np0": "10.0.0.1/24"},
        {"spark-1 enp1s0f0np0": "10.0.0.1/24", "spark-2 enp1s0f0np0": "10.0.1.2/24"},
        {"spark-1 enp1s0f0np0": "192.168.7.1/24", "spark-2 enp1s0f0np0": "192.168.7.2/24"},
    ],
)
def test_half_a_setting_is_replaced(has: dict[str, str]) -> None:
    """Guards one configured end, an address given twice, two networks, and one that the LAN has as well."""
    assert layout_lines(plan_layout(2, CABLE, ["192.168.7.0/24"], has))[0] == "spark-1 enp1s0f0np0 192.168.100.11/24"


def test_one_network_for_both_functions_is_parted() -> None:
    """Guards what the vendor's own script sets up: the first function keeps it, the second gets its own."""
    has = {f"{n} {i}": f"192.168.9.{x}/24" for x, (n, i) in enumerate((p.node, p.name) for p in wired_ports(*CABLE))}
    layout = plan_layout(2, CABLE, has=has)
    assert [str(port.address.network) for port in layout.of("spark-1")] == ["192.168.9.0/24", "192.168.100.0/24"]


def test_no_network_left_is_an_error() -> None:
    """Guards the end of the pool: an error with a hint, and no address that something else has."""
    with pytest.raises(UsageError, match="every network"):
        plan_layout(2, CABLE, ["192.168.0.0/16", "10.0.0.0/8"])


_NETWORK = st.builds(
    lambda first, length: IPv4Network((first, length), strict=False),
    st.sampled_from([0xC0A86400, 0xC0A86500, 0xC0A86000, 0x0A4D0000, 0x0A000000]),
    st.integers(18, 28),
)


@pytest.mark.full
@settings(max_examples=150, deadline=None)
@given(st.sampled_from(ALL), st.lists(_NETWORK, max_size=4), st.data())
def test_no_overlap_and_the_same_every_time(
    case: tuple[int, list[list[Cage]]], taken: list[IPv4Network], data: st.DataObject
) -> None:
    """Guards any LAN and any order of what nodes report: no overlap, no address twice, one network a node and link."""
    count, wires = case
    ports = wired_ports(*wires)
    mixed = ports[:]
    random.Random(data.draw(st.integers(0, 999))).shuffle(mixed)
    layout = plan_addresses(NODES[:count], ports, taken)
    assert plan_addresses(NODES[:count], mixed, taken) == layout
    networks = list({port.address.network for port in layout.ports})
    assert not any(one.overlaps(other) for one, other in combinations([*networks, *set(taken)], 2) if one in networks)
    assert len({port.address.ip for port in layout.ports}) == len(layout.ports) == len(ports)
    for node in NODES[:count]:
        assert len({port.address.network for port in layout.of(node)}) == len(layout.of(node))
