"""The fabric has the subnet of another network of the node.

Detects: an address on a netdev of an RDMA port that is also in the network of another interface which is up (Docker's
  and hypervisors' bridges included), or of a route over one, where that network is no wider than the fabric's: of
  networks that overlap the kernel takes the narrower one.
Why: the kernel takes one of the two for both: peers answer by the slow network, or the home network is cut off.
  Routers at home and the usual examples both like 192.168.100.0/24 and 10.0.0.0/8.
Evidence: both interfaces with their networks.
Remedy: other subnets for the fabric, the same on all nodes.
References: field reports of a fabric subnet that was the home router's own (a three-node author's notes).
"""

from collections.abc import Iterator
from ipaddress import IPv4Network

from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import Finding, Severity
from sparkwright.rules.fabric import Rail, fabric_netdevs, network_of, parsed, rails, wired
from sparkwright.rules.reading import known
from sparkwright.rules.rule import Context

CODE = "NET006"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "the fabric's subnet is also another network's"


def check(context: Context) -> Iterator[Finding]:
    for facts in wired(context):
        others = _others(facts)
        for rail in rails(facts):
            met = [(net, name) for name, net in others if _takes(net, rail)]
            if met:
                yield Finding(
                    CODE,
                    SEVERITY,
                    facts.node,
                    f"{rail.name} and {met[0][1]} share a subnet",
                    f"{rail.shown}; {met[0][1]} {met[0][0]}",
                    "two interfaces claim one network, and the kernel sends its traffic out of one of them",
                    "give the fabric a subnet that nothing else uses, the same on all nodes",
                )


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
