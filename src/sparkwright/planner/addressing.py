"""Addresses and routes for the cables between nodes, whatever they form: a pure function of who sees whom.

The two functions of a ConnectX-7 cage are on one wire and need networks of their own: two ports of a node in one
network leave it to chance which of them sends (https://build.nvidia.com/spark/connect-two-sparks).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Interface, IPv4Network
from itertools import combinations, product

from sparkwright.domain.errors import UsageError
from sparkwright.domain.fabric_facts import Route, cage_name
from sparkwright.domain.values import dataclass

_FIRST_HOST = 11
_POOL = (*(f"192.168.{n}.0/24" for n in range(100, 200)), *(f"10.77.{n}.0/24" for n in range(256)))


@dataclass(frozen=True, slots=True)
class Port:
    """One function of a cage with a cable. seen: MACs of its neighbours. addresses: that it has now."""

    node: str
    name: str
    mac: str
    seen: frozenset[str] = frozenset()
    addresses: tuple[IPv4Interface, ...] = ()

    @property
    def rail(self) -> int:
        """The port's function in its cage: 0 on PCI domain 0, else 1."""
        return int(cage_name(self.name) != self.name)


@dataclass(frozen=True, slots=True)
class PlannedPort:
    """The planned address and routes of a port; link: ports with the same one share a network."""

    node: str
    name: str
    address: IPv4Interface
    link: int
    routes: tuple[Route, ...] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """topology: `two nodes, one cable`. ports: in the order of the nodes. apart: pairs of nodes that share no link."""

    topology: str
    ports: tuple[PlannedPort, ...]
    apart: tuple[tuple[str, str], ...] = ()

    def of(self, node: str) -> tuple[PlannedPort, ...]:
        return tuple(port for port in self.ports if port.node == node)

    def across(self, port: PlannedPort) -> tuple[PlannedPort, ...]:
        """The other ends of its link."""
        return tuple(one for one in self.ports if one.link == port.link and one.node != port.node)


def plan_addresses(nodes: Sequence[str], ports: Sequence[Port], taken: Iterable[IPv4Network] = ()) -> Layout:
    """The same for the same input. Networks that the ports of a link agree on already are kept.

    taken: networks of any node that are not on these ports; no new one overlaps with them. Raises UsageError when all
    networks of the pool are taken.
    """
    links, used, agreed = _links(nodes, ports), list(taken), list[dict[str, IPv4Interface]]()
    for link in links:
        agreed.append(_agreed(link, used))
        used += {address.network for address in agreed[-1].values()}
    used += [address.network for port in ports for address in port.addresses]
    free = (network for network in map(IPv4Network, _POOL) if not any(map(network.overlaps, used)))
    given = [known or _fresh(nodes, link, free) for known, link in zip(agreed, links, strict=True)]
    bare = [PlannedPort(p.node, p.name, given[n][p.node], n) for n, link in enumerate(links) for p in link]
    order = sorted(bare, key=lambda one: (nodes.index(one.node), one.link))
    routed = tuple(PlannedPort(p.node, p.name, p.address, p.link, tuple(_routes(p, links, order))) for p in order)
    pairs = {frozenset(pair) for link in links for pair in combinations((p.node for p in link), 2)}
    apart = tuple(pair for pair in combinations(nodes, 2) if frozenset(pair) not in pairs)
    return Layout(_topology(nodes, links, apart), routed, apart)


def _links(nodes: Sequence[str], ports: Sequence[Port]) -> list[list[Port]]:
    """Ports that belong into one network, each node once: of one wire and one rail, the first ports of all first."""
    found = []
    for wire in _wires(ports):
        mine = {n: sorted((p for p in wire if p.node == n), key=lambda port: port.name) for n in nodes}
        for number in range(max(map(len, mine.values()))):
            link = [mine[n][number] for n in nodes if len(mine[n]) > number]
            found += [link] if len(link) > 1 else []
    return sorted(found, key=lambda link: ([nodes.index(p.node) for p in link], cage_name(link[0].name), link[0].rail))


def _wires(ports: Sequence[Port]) -> list[list[Port]]:
    """Ports of one rail that see each other, directly or by way of a third."""
    wires = [[port] for port in ports]
    for one, other in combinations(ports, 2):
        sees = other.mac in one.seen or one.mac in other.seen
        if sees and one.node != other.node and one.rail == other.rail:
            first, second = (next(wire for wire in wires if port in wire) for port in (one, other))
            if first is not second:
                first += second
                wires = [wire for wire in wires if wire is not second]
    return wires


def _agreed(link: Sequence[Port], taken: Sequence[IPv4Network]) -> dict[str, IPv4Interface]:
    """The addresses by which they are in one network already, node by node; {} when they are not all in one."""
    for network in dict.fromkeys(address.network for port in link for address in port.addresses):
        found = {p.node: a for p in link for a in reversed(p.addresses) if a.network == network}
        apart = len({address.ip for address in found.values()}) == len(link)
        if apart and network.prefixlen < 31 and not any(map(network.overlaps, taken)):
            return found
    return {}


def _fresh(nodes: Sequence[str], link: Sequence[Port], free: Iterator[IPv4Network]) -> dict[str, IPv4Interface]:
    network = next(free, None)
    if network is None:
        raise UsageError("every network that could be given to the fabric is in use on a node", "set it up by hand")
    host = {port.node: network[_FIRST_HOST + nodes.index(port.node)] for port in link}
    return {node: IPv4Interface(f"{address}/{network.prefixlen}") for node, address in host.items()}


def _routes(port: PlannedPort, links: Sequence[Sequence[Port]], all_ports: Sequence[PlannedPort]) -> Iterator[Route]:
    """Routes to neighbours' addresses on links that this node is not on: in a ring, the far side of each.

    By the same rail, and by the first of the links that lead there.
    """
    mine = {one.link: one for one in all_ports if one.node == port.node}
    rail = {n: link[0].rail for n, link in enumerate(links)}
    ends = [one for one in all_ports if one.link == port.link and one.node != port.node]
    for end, far in product(ends, all_ports):
        if far.node != end.node or far.link in mine or rail[far.link] != rail[port.link]:
            continue
        ways = [one.link for one in all_ports if one.node == end.node and one.link in mine]
        if port.link == min(way for way in ways if rail[way] == rail[port.link]):
            yield Route(f"{far.address.ip}/32", str(end.address.ip), port.name)


def _topology(nodes: Sequence[str], links: Sequence[Sequence[Port]], apart: Sequence[tuple[str, str]]) -> str:
    first: Mapping[int, Sequence[Port]] = {n: link for n, link in enumerate(links) if link[0].rail == 0}
    if not first:
        return "no cable"
    if len(nodes) > 2 and any(len(link) == len(nodes) for link in first.values()):
        return f"{len(nodes)} nodes on a switch"
    if len(nodes) == 2:
        return {1: "two nodes, one cable"}.get(len(first), f"two nodes, {len(first)} cables")
    return f"{len(nodes)} nodes{', not all connected' if apart else ' in a ring'}"
