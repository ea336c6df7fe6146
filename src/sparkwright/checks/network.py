"""Checks of routes, firewall, proxies and names."""

from collections.abc import Iterator
from ipaddress import IPv4Network

from sparkwright.checks.rails import Rail, fabric_netdevs, network_of, nics, parsed, rails, wired
from sparkwright.checks.reading import not_gb10, per_node
from sparkwright.domain.check import Check, Context, Found, explained
from sparkwright.domain.fabric_facts import Profile
from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import INFO, WARN
from sparkwright.domain.unknown import known


def fabric_gateway(facts: NodeFacts) -> Iterator[Found]:
    network = known(facts.network)
    for route in network.routes if network else ():
        if route.gateway and route.interface in fabric_netdevs(facts):
            yield Found(
                f"ip route: {route.destination} via {route.gateway} dev {route.interface}",
                title=f"fabric interface {route.interface} has a gateway",
                fix=f"take the route out of netplan (or: nmcli connection modify NAME ipv4.never-default yes); "
                f"until the next boot: sudo ip route del {route.destination} via {route.gateway} "
                f"dev {route.interface}",
            )


def subnet_clash(facts: NodeFacts) -> Iterator[Found]:
    others = _others(facts)
    for rail in rails(facts):
        met = [(net, name) for name, net in others if _takes(net, rail)]
        if met:
            yield Found(f"{rail.shown}; {met[0][1]} {met[0][0]}", title=f"{rail.name} and {met[0][1]} share a subnet")


def _takes(net: IPv4Network, rail: Rail) -> bool:
    """Whether the kernel may prefer it: it holds the rail's address, and is no wider than the rail's own network."""
    for address in rail.link.addresses:
        own, single = network_of(address), parsed(address.ipv4)
        if own and single and single.subnet_of(net) and own.prefixlen <= net.prefixlen:
            return True
    return False


def _others(facts: NodeFacts) -> list[tuple[str, IPv4Network]]:
    """Networks of this node outside the fabric, by interface; bonds of fabric netdevs belong to it."""
    nic, network = known(facts.nic), known(facts.network)
    fabric = fabric_netdevs(facts)
    fabric |= {bond for bond, slaves in (nic.bonds if nic else {}).items() if fabric & set(slaves)}
    links = [link for link in known(facts.interfaces) or () if link.up and link.name not in fabric]
    found = [(link.name, net) for link in links for a in link.addresses if (net := network_of(a))]
    routes = [
        r for r in (network.routes if network else ()) if r.interface not in fabric and r.destination != "default"
    ]
    found += [(route.interface, net) for route in routes if (net := parsed(route.destination))]
    return [(name, net) for name, net in found if net.prefixlen and not net.is_loopback]


def bonded(context: Context) -> Iterator[Found]:
    for facts, nic in nics(context) if not context.recipe else ():
        for bond, members in nic.bonds.items():
            if fabric_netdevs(facts) & set(members):
                yield Found(
                    f"{bond}: {' '.join(members)}", title=f"{bond} bonds {' and '.join(members)}", subject=facts.node
                )


_RATED = 200
_SLOW = (25_000, 40_000, 50_000, 100_000)


def slow_link(facts: NodeFacts) -> Iterator[Found]:
    for rail in rails(facts) if not not_gb10(facts) else ():
        told = _slow(facts, rail)
        if told:
            yield Found(f"{rail.port.device}: {told}", title=f"link of {rail.name} is slower than {_RATED} Gb/s")


def _slow(facts: NodeFacts, rail: Rail) -> str:
    nic, speed = known(facts.nic), known(rail.link.speed_mbps)
    rate = next((d.rate_gbit for d in (nic.devices if nic else ()) if d.name == rail.port.device), None)
    if speed is not None:
        return f"speed {speed} Mb/s" if speed in _SLOW else ""
    return f"rate {rate:g} Gb/s" if rate is not None and 0 < rate < _RATED else ""


_MADE_UP = "link-local"


def auto_addresses(context: Context) -> Iterator[Found]:
    here = [(facts, _profiles(facts)) for facts in wired(context)]
    alike = all(found and {p.ipv4 for p in found} == {_MADE_UP} and _each(facts, found) for facts, found in here)
    for facts, found in here if not alike else ():
        for profile in found:
            if profile.ipv4 in (_MADE_UP, "auto"):
                yield _auto_configured(facts.node, profile)


def _profiles(facts: NodeFacts) -> tuple[Profile, ...]:
    """Those of the node's rails."""
    network = known(facts.network)
    names = {rail.name for rail in rails(facts)}
    return tuple(profile for profile in (network.profiles if network else ()) if profile.interface in names)


def _each(facts: NodeFacts, found: tuple[Profile, ...]) -> bool:
    return {profile.interface for profile in found} == {rail.name for rail in rails(facts)}


def _auto_configured(node: str, profile: Profile) -> Found:
    made_up = profile.ipv4 == _MADE_UP
    return Found(
        f"profile {profile.name}: ipv4.method {profile.ipv4} on {profile.interface}",
        title=f"NetworkManager auto-configures {profile.interface}",
        cause="it adds a 169.254 address to one port, and the GID tables of the nodes differ from then on"
        if made_up
        else "without a DHCP server on the link it tries again and again, and each try may renumber the GID table",
        fix=f"on {node}: sudo nmcli connection modify '{profile.name}' ipv4.method disabled "
        f"ipv6.method link-local && sudo nmcli device reapply {profile.interface}   # a netdev with "
        "addresses: manual; and `link-local: []` in netplan, or it comes back",
        severity=WARN if made_up else INFO,
        subject=node,
    )


CHECKS = explained(
    __file__,
    Check("NET005", WARN, "fabric interface has a gateway", per_node(wired, fabric_gateway)),
    Check("NET006", WARN, "fabric subnet collides with another network", per_node(wired, subnet_clash)),
    Check("NET007", INFO, "fabric interfaces are bonded", bonded),
    Check("NET008", WARN, "fabric link slower than 200 Gb/s", per_node(wired, slow_link)),
    Check("NET009", WARN, "NetworkManager auto-configures the fabric", auto_addresses),
)
