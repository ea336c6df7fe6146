"""The address, interface, HCAs and GIDs that a node uses."""

import dataclasses
from collections.abc import Sequence

from sparkwright.domain.cluster import Fabric, Node
from sparkwright.domain.fabric_facts import cage_name
from sparkwright.domain.facts import Address, Gid, Gpu, Interface, NodeFacts, RdmaPort, Unknown
from sparkwright.domain.finding import Finding, Severity
from sparkwright.planner.fabric import Decision, choose_fabric, choose_fabrics
from unit.for_each import for_each

LO = Interface("lo", True, 65536, (Address("127.0.0.1", 8),))
DOCKER0 = Interface("docker0", True, 1500, (Address("172.17.0.1", 16),))


def make_link(name: str, *addresses: str, up: bool = True) -> Interface:
    split = (address.partition("/") for address in addresses)
    return Interface(name, up, 9000, tuple(Address(ipv4, int(prefix or 24)) for ipv4, _, prefix in split))


def mgmt_link(number: int) -> Interface:
    return make_link("enP7s7", f"192.168.7.{number}")


def rdma_port(function: int, simulator: str = "", ipv4: str = "", at: int = 3, up: bool = True) -> RdmaPort:
    """RDMA port of cage `function`; `ipv4` has its RoCE v2 GID at index `at`."""
    netdev = f"en{simulator}p1s0f{function}np{function}"
    gids = (Gid(0, "fe80::1", "v1", "", netdev), Gid(1, "fe80::1", "v2", "", netdev))
    if ipv4:
        gids += (Gid(at - 1, "::ffff", "v1", ipv4, netdev), Gid(at, "::ffff", "v2", ipv4, netdev))
    state = ("ACTIVE", "LINK_UP") if up else ("DOWN", "LINK_UP")
    return RdmaPort(f"roce{simulator}p1s0f{function}", 1, *state, netdev, gids)


def facts(name: str, links: Sequence[Interface], ports: Sequence[RdmaPort] = ()) -> NodeFacts:
    return NodeFacts(name, 0.0, interfaces=(LO, DOCKER0, *links), rdma=tuple(ports))


def spark_facts(name: str, number: int, used: int = 0, at: int = 3, at_twin: int = 3) -> NodeFacts:
    """A Spark whose cage `used` is cabled, both ports of a pair addressed in a subnet each; the other cage is dark."""
    a, b, dark = f"10.40.0.{number}", f"10.41.0.{number}", 1 - used
    links = [
        mgmt_link(number),
        make_link(f"enp1s0f{used}np{used}", a),
        make_link(f"enP2p1s0f{used}np{used}", b),
        make_link(f"enp1s0f{dark}np{dark}", up=False),
    ]
    # The twin comes first and the dark ports say LINK_UP, as seen on real machines.
    lit = [rdma_port(used, "P2", b, at_twin), rdma_port(used, "", a, at)]
    return facts(name, links, [*lit, rdma_port(dark, "", up=False), rdma_port(dark, "P2", up=False)])


def make_node(name: str = "one", **fabric: object) -> Node:
    return Node(name, name, Fabric(**fabric))  # type: ignore[arg-type]


def codes_with_severity(decision: Decision) -> list[tuple[str, Severity]]:
    return [(finding.code, finding.severity) for finding in decision.findings]


def chosen(decision: Decision) -> tuple[str, str, tuple[str, ...]]:
    assert decision.choice is not None, decision.findings
    assert not [finding for finding in decision.findings if finding.severity == Severity.BLOCK]
    return decision.choice.address, decision.choice.interface, decision.choice.hcas


def blocked(decision: Decision) -> Finding:
    """The one finding that leaves no choice; it has everything that a user needs."""
    assert decision.choice is None
    (finding,) = decision.findings
    assert finding.severity == Severity.BLOCK
    assert all((finding.subject, finding.title, finding.evidence, finding.cause, finding.remedy))
    return finding


def test_everything_auto_with_one_cable() -> None:
    """Guards the usual case: both ports of a pair of the cabled cage, control on the netdev of domain 0, no
    warnings."""
    decision = choose_fabric(make_node(), spark_facts("one", 1), [spark_facts("two", 2)])
    assert chosen(decision) == ("10.40.0.1", "enp1s0f0np0", ("rocep1s0f0", "roceP2p1s0f0"))
    assert decision.findings == ()
    assert decision.choice is not None
    assert decision.choice.gid_index == 3
    assert decision.choice.gids == (("rocep1s0f0", 3), ("roceP2p1s0f0", 3))


def test_cages_may_differ_between_nodes() -> None:
    """Guards that each node is decided for itself: cage 0 here and cage 1 there is fine."""
    found = choose_fabrics(
        [make_node("one"), make_node("two")], {"one": spark_facts("one", 1), "two": spark_facts("two", 2, used=1)}
    )
    assert chosen(found["one"]) == ("10.40.0.1", "enp1s0f0np0", ("rocep1s0f0", "roceP2p1s0f0"))
    assert chosen(found["two"]) == ("10.40.0.2", "enp1s0f1np1", ("rocep1s0f1", "roceP2p1s0f1"))


def test_gid_index_is_found_by_meaning() -> None:
    """Guards that the index is the row with RoCE v2 and this node's IPv4, wherever it drifted, for each HCA."""
    decision = choose_fabric(make_node(), spark_facts("one", 1, at=5, at_twin=4), [spark_facts("two", 2)])
    assert decision.choice is not None
    assert decision.choice.gids == (("rocep1s0f0", 5), ("roceP2p1s0f0", 4))
    assert decision.choice.gid_index is None


def test_port_of_a_pair_without_address() -> None:
    """Guards that a port without an IPv4 is used all the same, with no GID index to give."""
    mine = facts(
        "one",
        [mgmt_link(1), make_link("enp1s0f0np0", "10.40.0.1"), make_link("enP2p1s0f0np0")],
        [rdma_port(0, "", "10.40.0.1"), rdma_port(0, "P2")],
    )
    decision = choose_fabric(make_node(), mine, [spark_facts("two", 2)])
    assert chosen(decision)[2] == ("rocep1s0f0", "roceP2p1s0f0")
    assert decision.choice is not None
    assert (decision.choice.gids[1], decision.choice.gid_index) == (("roceP2p1s0f0", None), None)


def test_one_port_of_a_pair_down_is_half_the_speed() -> None:
    """Guards that a cage with one HCA is used and called what it is."""
    mine = spark_facts("one", 1)
    assert isinstance(mine.rdma, tuple)
    half = dataclasses.replace(mine, rdma=(rdma_port(0, "P2", up=False), *mine.rdma[1:]))
    decision = choose_fabric(make_node(), half, [spark_facts("two", 2)])
    assert chosen(decision)[2] == ("rocep1s0f0",)
    assert codes_with_severity(decision) == [("FAB010", Severity.WARN)]


def test_both_ports_of_a_pair_in_one_subnet() -> None:
    """Guards that NVIDIA's own setup (both ports of a pair in one /24) works and is warned about; control stays on
    domain 0."""

    def crowded(name: str, number: int) -> NodeFacts:
        a, b = f"10.40.0.{number}", f"10.40.0.{number + 4}"
        links = [mgmt_link(number), make_link("enP2p1s0f0np0", b), make_link("enp1s0f0np0", a)]
        return facts(name, links, [rdma_port(0, "", a), rdma_port(0, "P2", b)])

    decision = choose_fabric(make_node(), crowded("one", 10), [crowded("two", 11)])
    assert chosen(decision) == ("10.40.0.10", "enp1s0f0np0", ("rocep1s0f0", "roceP2p1s0f0"))
    assert codes_with_severity(decision) == [("FAB011", Severity.WARN)]


def test_link_local_port_is_not_taken_for_control() -> None:
    """Guards that NetworkManager's random 169.254 address on the other port does not win over the real subnet."""

    def zeroconf(name: str, number: int) -> NodeFacts:
        simulator = make_link("enP2p1s0f0np0", f"169.254.9.{number}/16")
        return facts(
            name, [simulator, make_link("enp1s0f0np0", f"192.168.100.{number}")], [rdma_port(0), rdma_port(0, "P2")]
        )

    decision = choose_fabric(make_node(), zeroconf("one", 1), [zeroconf("two", 2)])
    assert chosen(decision)[:2] == ("192.168.100.1", "enp1s0f0np0")


def test_crossed_port_pairs_still_agree_on_one_subnet() -> None:
    """Guards that nodes whose ports hold each other's subnets choose addresses that reach each other."""
    one = spark_facts("one", 1)
    links = [mgmt_link(2), make_link("enp1s0f0np0", "10.41.0.2"), make_link("enP2p1s0f0np0", "10.40.0.2")]
    two = facts("two", links, [rdma_port(0, "", "10.41.0.2"), rdma_port(0, "P2", "10.40.0.2")])
    found = choose_fabrics([make_node("one"), make_node("two")], {"one": one, "two": two})
    assert chosen(found["one"])[0].rpartition(".")[0] == chosen(found["two"])[0].rpartition(".")[0]


def test_management_network_is_no_fabric() -> None:
    """Guards that a shared LAN is not in for a cage that reaches nobody."""
    lonely = facts(
        "two",
        [mgmt_link(2), make_link("enp1s0f0np0", "10.99.0.2")],
        [rdma_port(0, "", "10.99.0.2"), rdma_port(0, "P2")],
    )
    finding = blocked(choose_fabric(make_node(), spark_facts("one", 1), [lonely]))
    assert finding.code == "FAB007"
    assert "enp1s0f0np0 10.40.0.1/24" in finding.evidence
    assert "two: enP7s7 192.168.7.2/24, enp1s0f0np0 10.99.0.2/24" in finding.evidence


def test_peer_must_hold_the_subnet_on_rdma_too() -> None:
    """Guards against a home network that happens to have the fabric's subnet."""
    lan = facts("two", [make_link("enP7s7", "10.40.0.2"), make_link("enp1s0f0np0", up=False)], [rdma_port(0, up=False)])
    assert blocked(choose_fabric(make_node(), spark_facts("one", 1), [lan])).code == "FAB007"


def test_three_nodes_on_a_switch_and_in_a_triangle() -> None:
    """Guards that one subnet must reach all peers: a switch does, a triangle of cables does not."""
    peers = [spark_facts("two", 2), spark_facts("three", 3, used=1)]
    assert chosen(choose_fabric(make_node(), spark_facts("one", 1), peers))[0] == "10.40.0.1"
    elsewhere = facts("three", [make_link("enp1s0f1np1", "10.50.0.3")], [rdma_port(1, "", "10.50.0.3")])
    assert blocked(choose_fabric(make_node(), spark_facts("one", 1), [peers[0], elsewhere])).code == "FAB007"


def two_cages(name: str, number: int) -> NodeFacts:
    a, b = f"10.40.0.{number}", f"10.50.0.{number}"
    links = [make_link("enp1s0f0np0", a), make_link("enp1s0f1np1", b)]
    return facts(name, links, [rdma_port(0, "", a), rdma_port(0, "P2"), rdma_port(1, "", b), rdma_port(1, "P2")])


def test_two_cages_that_reach_the_peer_need_a_word() -> None:
    """Guards that nothing is guessed between two cables, and that naming an interface settles it."""
    finding = blocked(choose_fabric(make_node(), two_cages("one", 1), [two_cages("two", 2)]))
    assert (finding.code, finding.evidence) == ("FAB008", "enp1s0f0np0 10.40.0.1/24, enp1s0f1np1 10.50.0.1/24")
    settled = choose_fabric(make_node(interface="enp1s0f1np1"), two_cages("one", 1), [two_cages("two", 2)])
    assert chosen(settled) == ("10.50.0.1", "enp1s0f1np1", ("rocep1s0f1", "roceP2p1s0f1"))


def test_all_ports_down() -> None:
    """Guards that LINK_UP does not make a DOWN port usable."""
    dark = facts("one", [mgmt_link(1)], [rdma_port(0, up=False), rdma_port(0, "P2", up=False)])
    finding = blocked(choose_fabric(make_node(), dark, [spark_facts("two", 2)]))
    assert (finding.code, finding.evidence) == (
        "FAB006",
        "rocep1s0f0 DOWN (enp1s0f0np0), roceP2p1s0f0 DOWN (enP2p1s0f0np0)",
    )


@for_each(
    "wish, code, evidence",
    [
        ({"interface": "enp1s0f9np9"}, "FAB001", "enp1s0f0np0 10.40.0.1"),
        ({"address": "10.40.0.77"}, "FAB002", "enp1s0f0np0 10.40.0.1"),
        ({"address": "10.40.0.1", "interface": "enP7s7"}, "FAB002", "enP7s7 192.168.7.1"),
        ({"address": "not an address"}, "FAB002", "enP7s7 192.168.7.1"),
        ({"hcas": ("mlx5_7",)}, "FAB003", "rocep1s0f0 ACTIVE (enp1s0f0np0)"),
        ({"interface": "enp1s0f1np1"}, "FAB013", "enp1s0f1np1 - (down)"),
    ],
)
def test_wrong_words_in_the_cluster_file(wish: dict[str, object], code: str, evidence: str) -> None:
    """Guards that a name which the node does not have is refused, with the names that it has."""
    finding = blocked(choose_fabric(make_node(**wish), spark_facts("one", 1), [spark_facts("two", 2)]))
    assert finding.code == code
    assert evidence in finding.evidence


def test_given_values_win() -> None:
    """Guards that given HCAs are used as given and in their order, a dead one only with a word about it."""
    decision = choose_fabric(make_node(hcas=("roceP2p1s0f0",)), spark_facts("one", 1), [spark_facts("two", 2)])
    assert chosen(decision)[2] == ("roceP2p1s0f0",)
    assert codes_with_severity(decision) == [("FAB010", Severity.WARN)]
    dead = choose_fabric(make_node(hcas=("rocep1s0f0", "rocep1s0f1")), spark_facts("one", 1), [spark_facts("two", 2)])
    assert chosen(dead)[2] == ("rocep1s0f0", "rocep1s0f1")
    assert ("FAB004", Severity.OVERRIDE) in codes_with_severity(dead)


def test_sockets_on_the_management_network() -> None:
    """Guards that bootstrap over the LAN keeps the payload on both ports of the pair that reaches the peer."""
    decision = choose_fabric(make_node(interface="enP7s7"), spark_facts("one", 1), [spark_facts("two", 2)])
    assert chosen(decision) == ("192.168.7.1", "enP7s7", ("rocep1s0f0", "roceP2p1s0f0"))
    assert decision.choice is not None
    assert "sockets and RDMA use different networks" in decision.choice.notes


def test_given_address_in_another_subnet_can_be_forced() -> None:
    """Guards that a given address which no peer shares is a finding to override, not silence."""
    decision = choose_fabric(
        make_node(address="10.40.0.1"), spark_facts("one", 1), [facts("two", [make_link("eth0", "10.9.9.9")])]
    )
    assert chosen(decision)[0] == "10.40.0.1"
    assert codes_with_severity(decision) == [("FAB007", Severity.OVERRIDE)]


def test_one_address_on_two_nodes() -> None:
    """Guards against cloned network settings."""
    decision = choose_fabric(make_node(address="10.40.0.1"), spark_facts("one", 1), [spark_facts("two", 1)])
    assert codes_with_severity(decision) == [("FAB012", Severity.OVERRIDE)]
    assert blocked(choose_fabric(make_node(), spark_facts("one", 1), [spark_facts("two", 1)])).code == "FAB007"


def test_missing_ipv4_gid() -> None:
    """Guards that a known GID table without this address is reported; an unknown table is not taken for an empty
    one."""
    mine = spark_facts("one", 1)
    assert isinstance(mine.rdma, tuple)
    bare = tuple(dataclasses.replace(one, gids=one.gids[:2]) for one in mine.rdma)
    decision = choose_fabric(make_node(), dataclasses.replace(mine, rdma=bare), [spark_facts("two", 2)])
    assert codes_with_severity(decision) == [("FAB009", Severity.OVERRIDE)]
    untold = tuple(dataclasses.replace(one, gids=()) for one in mine.rdma)
    assert choose_fabric(make_node(), dataclasses.replace(mine, rdma=untold), [spark_facts("two", 2)]).findings == ()


def test_plain_ethernet() -> None:
    """Guards machines without RDMA: the one shared network, no HCAs, and Docker's bridges are no network."""
    decision = choose_fabric(make_node(), facts("one", [mgmt_link(1)]), [facts("two", [mgmt_link(2)])])
    assert chosen(decision) == ("192.168.7.1", "enP7s7", ())
    assert decision.findings == ()
    assert decision.choice is not None
    assert "no RDMA device on this node: plain TCP" in decision.choice.notes
    several = choose_fabric(
        make_node(),
        facts("one", [mgmt_link(1), make_link("b", "10.1.0.1")]),
        [facts("two", [mgmt_link(2), make_link("c", "10.1.0.2")])],
    )
    assert blocked(several).code == "FAB008"


def test_gpu_nodes_do_not_fall_back_to_tcp_in_silence() -> None:
    """Guards the trap of a ConnectX-7 that left the PCI bus for want of a cable; `hcas: []` reports that TCP is
    meant."""
    gpus = (Gpu("NVIDIA GB10", "580.142", "12.1", Unknown("[N/A]")),)
    mine = dataclasses.replace(facts("one", [mgmt_link(1)]), gpus=gpus)
    assert codes_with_severity(choose_fabric(make_node(), mine, [facts("two", [mgmt_link(2)])])) == [
        ("FAB014", Severity.WARN)
    ]
    meant = choose_fabric(make_node(hcas=()), mine, [facts("two", [mgmt_link(2)])])
    assert meant.findings == ()
    assert meant.choice is not None
    assert "the cluster file wants no HCAs: plain TCP" in meant.choice.notes


def test_no_hcas_on_purpose() -> None:
    """Guards that `hcas: []` gives plain TCP over the given interface, though the RDMA ports are up."""
    decision = choose_fabric(
        make_node(interface="enp1s0f0np0", hcas=()), spark_facts("one", 1), [spark_facts("two", 2)]
    )
    assert chosen(decision) == ("10.40.0.1", "enp1s0f0np0", ())


def test_nodes_on_loopback() -> None:
    """Guards the demo: several simulated nodes on one machine, each with an address of 127/8, need no warning."""
    machine = facts("one", [mgmt_link(1)])
    for address in ("127.0.0.1", "127.0.0.2"):
        decision = choose_fabric(make_node(address=address), machine, [dataclasses.replace(machine, node="two")])
        assert chosen(decision) == (address, "lo", ())
        assert decision.findings == ()


def test_single_node_needs_no_fabric() -> None:
    """Guards that one node works without cable, RDMA or readable facts."""
    unread = NodeFacts("one", 0.0, interfaces=Unknown("?"), rdma=Unknown("?"))
    assert chosen(choose_fabric(make_node(), unread, [])) == ("127.0.0.1", "lo", ())
    assert chosen(choose_fabrics([make_node()], {"one": unread})["one"]) == ("127.0.0.1", "lo", ())
    assert chosen(choose_fabric(make_node(address="192.168.7.1"), facts("one", [mgmt_link(1)]), []))[1] == "enP7s7"


def test_unknown_facts_are_not_none() -> None:
    """Unreadable RDMA is not `no RDMA`; a wholly given fabric is used unchecked, and the plan shows that."""
    mine = dataclasses.replace(spark_facts("one", 1), rdma=Unknown("rdma: strange", "no answer that can be read"))
    finding = blocked(choose_fabric(make_node(), mine, [spark_facts("two", 2)]))
    assert (finding.code, finding.evidence) == ("FAB005", "rdma: strange")
    given = make_node(address="10.40.0.1", interface="enp1s0f0np0", hcas=("rocep1s0f0",))
    decision = choose_fabric(given, mine, [spark_facts("two", 2)])
    assert chosen(decision) == ("10.40.0.1", "enp1s0f0np0", ("rocep1s0f0",))
    assert codes_with_severity(decision) == [("FAB005", Severity.WARN)]
    assert chosen(choose_fabric(make_node(interface="enp1s0f0np0", hcas=()), mine, [spark_facts("two", 2)]))[2] == ()


def test_a_node_that_did_not_answer_blocks_only_what_needs_it() -> None:
    """Guards that with one node lost nobody falls back to loopback, and of three the others still meet."""
    pair = choose_fabrics([make_node("one"), make_node("two")], {"one": spark_facts("one", 1)})
    assert [finding.code for name in ("one", "two") for finding in pair[name].findings] == ["FAB005", "FAB005"]
    three = choose_fabrics(
        [make_node("one"), make_node("two"), make_node("three")],
        {"one": spark_facts("one", 1), "two": spark_facts("two", 2)},
    )
    assert chosen(three["one"])[0] == "10.40.0.1"
    assert three["three"].choice is None


@for_each(
    "name, shared",
    [
        ("roceP2p1s0f1", "rocep1s0f1"),
        ("rocep1s0f0", "rocep1s0f0"),
        ("enP2p1s0f0np0", "enp1s0f0np0"),
        ("enp1s0f1np1", "enp1s0f1np1"),
        ("enP7s7", "enP7s7"),
        ("mlx5_1", "mlx5_1"),
    ],
)
def test_ports_of_a_pair_share_all_but_the_domain(name: str, shared: str) -> None:
    """Guards that the function number stays: without it the two cages would be one."""
    assert cage_name(name) == shared
