"""The ports on each wire, and the addresses free there."""

from collections.abc import Iterator, Mapping, Sequence
from ipaddress import AddressValueError, IPv4Interface, IPv4Network
from itertools import islice, product

from sparkwright.app.services import Services, by_node, finish_all, together, understood
from sparkwright.checks.rails import fabric_netdevs, network_of, parsed
from sparkwright.domain.errors import UsageError
from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import Rights
from sparkwright.domain.unknown import known_or_none
from sparkwright.domain.values import dataclass, replace
from sparkwright.facts.cabling import Cabling, is_cage, parse, parse_claimed, parse_reached
from sparkwright.facts.changes import as_root
from sparkwright.planner.addressing import Layout, Port, plan_addresses
from sparkwright.remote import cabling

_PREFIX = 24  # of the networks that are given
_ROUNDS = 8
_MOST_PINGS = 64  # of one node


async def wires_of(services: Services, node: str, facts: NodeFacts, rights: Rights) -> Cabling:
    """Frames of our own where root is to be had: a port that is not set up yet may have no IPv6 either."""
    links, netdevs = known_or_none(facts.interfaces) or (), fabric_netdevs(facts)
    names = [link.name for link in links if link.name in netdevs or is_cage(link.name)]
    commands = [cabling.read_wires(names)]
    commands += [as_root(cabling.send_hello(names), rights.password)] if names and not rights.why else []
    done = await together(services.run(node, command) for command in commands)
    told = replace(done[0], stdout="\n".join(one.stdout for one in done))
    return understood(node, "its fabric ports", parse(told))


async def pinged(
    services: Services, facts: Mapping[str, NodeFacts], wires: Mapping[str, Cabling]
) -> dict[str, Cabling]:
    """Cabling with neighbours that answer at the addresses the nodes already have: sending frames of our own takes
    root."""
    ports = list(_ports(facts, wires))

    async def one(node: str) -> Cabling:
        ways = list(islice(unseen(node, ports), _MOST_PINGS))
        if not ways:
            return wires[node]
        told = parse_reached(await services.run(node, cabling.reached([(way.name, way.address) for way in ways])))
        return with_reached(wires[node], ways, told)

    return await by_node(tuple(wires), one)


@dataclass(frozen=True, slots=True)
class PingWay:
    """The path from a port to an address of another node's port. mac: of that port; macs: of all that node's ports."""

    name: str
    address: str
    mac: str
    macs: frozenset[str]


def unseen(node: str, ports: Sequence[Port]) -> Iterator[PingWay]:
    """Ways from a node to ports in the same networks that were not seen on the wire."""
    for mine, other in product(ports, ports):
        if mine.node == node != other.node and other.mac not in mine.seen:
            networks, macs = {one.network for one in mine.addresses}, {p.mac for p in ports if p.node == other.node}
            same = (one for one in other.addresses if one.network in networks)
            yield from (PingWay(mine.name, str(one.ip), other.mac, frozenset(macs)) for one in same)


def with_reached(wired: Cabling, ways: Sequence[PingWay], told: Sequence[tuple[str, str, str]]) -> Cabling:
    """Add the ports whose addresses answered: any port of a node may answer for an address that it has."""
    by_way = {(way.name, way.address): way for way in ways}
    known = [(way, mac) for name, address, mac in told if (way := by_way.get((name, address)))]
    more = [(way.name, way.mac) for way, mac in known if mac in way.macs]
    seen = {name: wired.seen[name] | {mac for one, mac in more if one == name} for name in wired.macs}
    return replace(wired, seen=seen)


async def planned(
    services: Services, rights: Mapping[str, Rights], facts: Mapping[str, NodeFacts], wires: Mapping[str, Cabling]
) -> tuple[Layout, list[str]]:
    """A layout that avoids the addresses of machines outside the cluster on the same wires, with a note for each."""
    ports, taken, notes = [*_ports(facts, wires)], {*_taken(facts, wires)}, list[str]()
    for _ in range(_ROUNDS):
        layout = plan_addresses(services.cluster.names, ports, taken)
        asked = await finish_all(
            _claimed(services, rights[node], layout, node, ports) for node in services.cluster.names
        )
        strangers = [(node, one) for node, found in zip(services.cluster.names, asked, strict=True) for one in found]
        if not strangers:
            return layout, notes
        for node, (name, address, mac) in strangers:
            notes.append(f"{node}: another machine, {mac}, has {address} on {name}: a network without it is planned")
            taken.add(IPv4Network(f"{address}/{_PREFIX}", strict=False))
    raise UsageError(f"machines outside the cluster have the addresses: {notes[-1]}", "sparkwright init --skip fabric")


async def _claimed(
    services: Services, rights: Rights, layout: Layout, node: str, ports: Sequence[Port]
) -> tuple[tuple[str, str, str], ...]:
    """Answers from other machines at addresses that the node is to get."""
    now = {(port.node, port.name, address) for port in ports for address in port.addresses}
    new = [(p.name, str(p.address.ip)) for p in layout.of(node) if (node, p.name, p.address) not in now]
    if not new or rights.why:
        return ()
    return parse_claimed(await services.run(node, as_root(cabling.claimed(new), rights.password)))


def _ports(facts: Mapping[str, NodeFacts], wires: Mapping[str, Cabling]) -> Iterator[Port]:
    for node, wired in wires.items():
        for link in known_or_none(facts[node].interfaces) or ():
            if link.name in wired.macs and link.name not in wired.guarded:
                addresses = (_interface(f"{one.ipv4}/{one.prefix}") for one in link.addresses)
                seen = wired.seen.get(link.name, frozenset())
                yield Port(node, link.name, wired.macs[link.name], seen, tuple(filter(None, addresses)))


def _interface(text: str) -> IPv4Interface | None:
    try:
        found = IPv4Interface(text)
    except (AddressValueError, ValueError):
        return None
    return None if found.is_link_local else found


def _taken(facts: Mapping[str, NodeFacts], wires: Mapping[str, Cabling]) -> Iterator[IPv4Network]:
    """Networks of all other interfaces, and where routes lead by them."""
    for node, found in facts.items():
        ports = set(wires[node].macs) - wires[node].guarded
        network = known_or_none(found.network)
        for link in known_or_none(found.interfaces) or ():
            if link.name not in ports:
                yield from filter(None, map(network_of, link.addresses))
        for route in network.routes if network else ():
            there = parsed(route.destination)
            if there and there.prefixlen > 1 and route.interface not in ports:
                yield there
