"""Facts about the link between nodes that several checks read: rails, port pairs and their networks."""

from collections.abc import Iterator
from ipaddress import AddressValueError, IPv4Address, IPv4Network

from sparkwright.checks.reading import simulated
from sparkwright.domain.check import Context
from sparkwright.domain.fabric_facts import Nic, cage_name
from sparkwright.domain.facts import Address, Interface, NodeFacts, RdmaPort
from sparkwright.domain.unknown import known_or_none
from sparkwright.domain.values import dataclass


@dataclass(frozen=True, slots=True)
class Rail:
    """An ACTIVE RDMA port and its netdev. A cage with a cable is two rails, a port pair."""

    node: str
    port: RdmaPort
    link: Interface

    @property
    def name(self) -> str:
        return self.link.name

    @property
    def first(self) -> bool:
        """True for the rail of PCI domain 0."""
        return cage_name(self.name) == self.name

    @property
    def networks(self) -> tuple[IPv4Network, ...]:
        return tuple(found for address in self.link.addresses if (found := network_of(address)))

    def pair_mate(self, others: tuple["Rail", ...]) -> "Rail | None":
        return next(
            (rail for rail in others if rail.name != self.name and cage_name(rail.name) == cage_name(self.name)), None
        )

    @property
    def shown(self) -> str:
        return f"{self.name} {', '.join(f'{a.ipv4}/{a.prefix}' for a in self.link.addresses) or '-'}"


def network_of(address: Address) -> IPv4Network | None:
    """None for what is no IPv4 address."""
    try:
        return IPv4Network((IPv4Address(address.ipv4), address.prefix), strict=False)
    except (AddressValueError, ValueError):
        return None


def parsed(text: str) -> IPv4Network | None:
    """A network as a route names it, or None."""
    try:
        return IPv4Network(text, strict=False)
    except (AddressValueError, ValueError):
        return None


def wired_nodes(context: Context) -> tuple[NodeFacts, ...]:
    """Real nodes that need each other: all of a cluster of several, unless the recipe takes one of them."""
    alone = len(context.cluster.nodes) < 2 or (context.recipe is not None and context.recipe.nodes < 2)
    return () if alone or simulated(context) else tuple(context.facts.values())


def compared(context: Context) -> tuple[NodeFacts, ...]:
    """The wired nodes like `wired_nodes`, but none with a recipe: these notes do not belong into a start."""
    return () if context.recipe else wired_nodes(context)


def rails_of(facts: NodeFacts) -> tuple[Rail, ...]:
    links = {link.name: link for link in known_or_none(facts.interfaces) or ()}
    ports = [port for port in known_or_none(facts.rdma) or () if port.active and port.netdev in links]
    found = [Rail(facts.node, port, links[port.netdev]) for port in ports]
    return tuple(sorted(found, key=lambda rail: (cage_name(rail.name), not rail.first)))


def port_pairs(facts: NodeFacts) -> Iterator[tuple[Rail, Rail]]:
    """Cages of which both rails are up: the one of PCI domain 0, and the other port of its pair."""
    here = rails_of(facts)
    for rail in here:
        twin = rail.pair_mate(here)
        if rail.first and twin:
            yield rail, twin


def wired_nics(context: Context) -> Iterator[tuple[NodeFacts, Nic]]:
    for facts in wired_nodes(context):
        nic = known_or_none(facts.nic)
        if nic is not None:
            yield facts, nic


def fabric_netdevs(facts: NodeFacts) -> frozenset[str]:
    """Netdevs of RDMA ports, with or without a link."""
    return frozenset(port.netdev for port in known_or_none(facts.rdma) or () if port.netdev)


def netplan(rail: Rail, what: str) -> str:
    """A remedy: netplan of that netdev has `what` from now on."""
    return f"on {rail.node}: {what} for {rail.name} in /etc/netplan/40-cx7.yaml, then sudo netplan apply"


def roce_index(port: RdmaPort) -> int | None:
    """The index of the first RoCE v2 GID with an IPv4; None without one."""
    return next((gid.index for gid in port.gids if gid.version.endswith("v2") and gid.ipv4), None)


def link_local_index(port: RdmaPort) -> int | None:
    """The index of the first RoCE v2 GID without an IPv4; None without one."""
    return next((gid.index for gid in port.gids if gid.version.endswith("v2") and not gid.ipv4), None)
