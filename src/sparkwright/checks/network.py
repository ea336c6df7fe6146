"""Checks of routes, firewall, proxies and names."""

import re
from collections.abc import Iterator
from ipaddress import IPv4Network

from sparkwright.checks.rails import Rail, fabric_netdevs, network_of, parsed, rails_of, wired_nics, wired_nodes
from sparkwright.checks.reading import node_of, not_gb10, per_node, real_nodes, sparks
from sparkwright.domain.check import Check, Context, Found, explained
from sparkwright.domain.fabric_facts import Firewall, Profile
from sparkwright.domain.facts import NodeFacts, Unknown
from sparkwright.domain.finding import INFO, WARN
from sparkwright.domain.unknown import known_or_none
from sparkwright.facts.upkeep import AVAHI
from sparkwright.remote.repair import mode_fix

_RATED_GBIT = 200
_SLOW_MBIT = (25_000, 40_000, 50_000, 100_000)
_MADE_UP = "link-local"
_NETPLAN_MODE = "600"
_LOOPBACK = "127.0.0.1"
_AVAHI_NAME = re.compile(r"Host name is ([^\s.]+)\.")


def fabric_gateway(facts: NodeFacts) -> Iterator[Found]:
    network = known_or_none(facts.network)
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
    for rail in rails_of(facts):
        met = [(net, name) for name, net in others if _takes(net, rail)]
        if met:
            yield Found(f"{rail.shown}; {met[0][1]} {met[0][0]}", title=f"{rail.name} and {met[0][1]} share a subnet")


def _takes(net: IPv4Network, rail: Rail) -> bool:
    """True if the kernel may prefer the other route: it holds the rail's address and is no wider than the rail's
    network."""
    for address in rail.link.addresses:
        own, single = network_of(address), parsed(address.ipv4)
        if own and single and single.subnet_of(net) and own.prefixlen <= net.prefixlen:
            return True
    return False


def _others(facts: NodeFacts) -> list[tuple[str, IPv4Network]]:
    """Networks of this node outside the fabric, by interface; bonds of fabric netdevs belong to it."""
    nic, network = known_or_none(facts.nic), known_or_none(facts.network)
    fabric = fabric_netdevs(facts)
    fabric |= {bond for bond, slaves in (nic.bonds if nic else {}).items() if fabric & set(slaves)}
    links = [link for link in known_or_none(facts.interfaces) or () if link.up and link.name not in fabric]
    found = [(link.name, net) for link in links for a in link.addresses if (net := network_of(a))]
    routes = [
        r for r in (network.routes if network else ()) if r.interface not in fabric and r.destination != "default"
    ]
    found += [(route.interface, net) for route in routes if (net := parsed(route.destination))]
    return [(name, net) for name, net in found if net.prefixlen and not net.is_loopback]


def bonded(context: Context) -> Iterator[Found]:
    for facts, nic in wired_nics(context) if not context.recipe else ():
        for bond, members in nic.bonds.items():
            if fabric_netdevs(facts) & set(members):
                yield Found(
                    f"{bond}: {' '.join(members)}", title=f"{bond} bonds {' and '.join(members)}", subject=facts.node
                )


def slow_link(facts: NodeFacts) -> Iterator[Found]:
    for rail in rails_of(facts) if not not_gb10(facts) else ():
        told = _slow(facts, rail)
        if told:
            yield Found(f"{rail.port.device}: {told}", title=f"link of {rail.name} is slower than {_RATED_GBIT} Gb/s")


def _slow(facts: NodeFacts, rail: Rail) -> str:
    nic, speed = known_or_none(facts.nic), known_or_none(rail.link.speed_mbps)
    rate = next((d.rate_gbit for d in (nic.devices if nic else ()) if d.name == rail.port.device), None)
    if speed is not None:
        return f"speed {speed} Mb/s" if speed in _SLOW_MBIT else ""
    return f"rate {rate:g} Gb/s" if rate is not None and 0 < rate < _RATED_GBIT else ""


def auto_addresses(context: Context) -> Iterator[Found]:
    here = [(facts, _profiles(facts)) for facts in wired_nodes(context)]
    alike = all(
        found
        and {profile.ipv4 for profile in found} == {_MADE_UP}
        and {profile.interface for profile in found} == {rail.name for rail in rails_of(facts)}
        for facts, found in here
    )
    for facts, found in here if not alike else ():
        for profile in found:
            if profile.ipv4 in (_MADE_UP, "auto"):
                yield _auto_configured(facts.node, profile)


def _profiles(facts: NodeFacts) -> tuple[Profile, ...]:
    """The profiles of the node's rails."""
    network = known_or_none(facts.network)
    names = {rail.name for rail in rails_of(facts)}
    return tuple(profile for profile in (network.profiles if network else ()) if profile.interface in names)


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


def netplan_mode(facts: NodeFacts) -> Iterator[Found]:
    network = known_or_none(facts.network)
    for path, mode in network.netplan.items() if network else ():
        if not mode.endswith("00"):
            yield Found(
                f"stat: {mode} {path}",
                title=f"{path} has mode {mode}",
                fix=f"on {facts.node}: sudo chmod {_NETPLAN_MODE} {path}",
                repair=mode_fix(facts.node, path, _NETPLAN_MODE, mode),
            )


def firewall_blocks(context: Context) -> Iterator[Found]:
    for facts in wired_nodes(context):
        network = known_or_none(facts.network)
        firewall = network.firewall if network else None
        closed = [rail.name for rail in rails_of(facts) if firewall and not _lets_in(firewall, rail)]
        if firewall and closed:
            yield _blocked(facts.node, firewall, closed)


def _lets_in(firewall: Firewall, rail: Rail) -> bool:
    """True if the firewall admits the rail, by its name or by its networks."""
    allowed = known_or_none(firewall.allows) or ()
    open_to = [network for word in allowed if (network := parsed(word))]
    own = [net for net in rail.networks if any(net.subnet_of(network) for network in open_to)]
    return rail.name in allowed or bool(own and len(own) == len(rail.networks))


def _blocked(node: str, firewall: Firewall, closed: list[str]) -> Found:
    unread = isinstance(firewall.allows, Unknown)
    told = "its rules can be read by root only" if isinstance(firewall.allows, Unknown) else ", ".join(firewall.allows)
    return Found(
        f"{firewall.name}: active; {told or 'no interface is let in'}",
        title=f"{firewall.name} is active" if unread else f"{firewall.name} blocks {' and '.join(closed)}",
        fix=f"on {node}: " + " && ".join(_allow(firewall.name, name) for name in closed),
        severity=INFO if unread else WARN,
        subject=node,
    )


def _allow(firewall: str, interface: str) -> str:
    if firewall == "ufw":
        return f"sudo ufw allow in on {interface}"
    if firewall == "nftables":
        return f"sudo nft list ruleset   # it needs: iifname {interface} accept"
    return f"sudo firewall-cmd --permanent --zone=trusted --change-interface={interface} && sudo firewall-cmd --reload"


def proxy_catches(facts: NodeFacts) -> Iterator[Found]:
    for where, proxy, exceptions in _proxies(facts):
        wanted = [_LOOPBACK, *(a.ipv4 for rail in rails_of(facts) for a in rail.link.addresses)]
        caught = [address for address in wanted if not _excepted(address, exceptions)]
        if caught:
            yield Found(
                f"{where}: proxy {proxy}, no_proxy {exceptions or '(not set)'}",
                title=f"proxy of {where} intercepts {caught[0]}",
                fix=f"no_proxy={','.join(['localhost', *caught])} next to it, and the same for NO_PROXY",
            )


def _proxies(facts: NodeFacts) -> Iterator[tuple[str, str, str]]:
    """Proxies of the environment and of the daemon: (where, proxy, exceptions)."""
    settings, docker = known_or_none(facts.settings), known_or_none(facts.docker)
    entries = settings.proxies if settings else ()
    for where in dict.fromkeys(entry.where for entry in entries):
        here = {entry.name.lower(): entry.value for entry in entries if entry.where == where}
        proxy = here.get("http_proxy") or here.get("all_proxy")
        if proxy:
            yield where, proxy, here.get("no_proxy", "")
    if docker and docker.proxy:
        yield "the Docker daemon", docker.proxy, docker.no_proxy


def _excepted(address: str, exceptions: str) -> bool:
    for entry in exceptions.replace(" ", ",").split(","):
        network, single = parsed(entry), parsed(address)
        inside = network is not None and single is not None and single.subnet_of(network)
        if entry == "*" or (entry == "localhost" and address == _LOOPBACK) or inside:
            return True
    return False


def mdns_renamed(context: Context) -> Iterator[Found]:
    for facts in sparks(context):
        own, announced = _names(facts)
        if own and re.fullmatch(re.escape(own) + "-[0-9]{1,5}", announced, re.IGNORECASE):
            node = node_of(context, facts.node)
            used = node is not None and node.ssh.endswith(".local")
            yield Found(
                f"{AVAHI}: Host name is {announced}.local; hostname {own}",
                title=f"{own}.local is announced as {announced}.local",
                severity=WARN if used else INFO,
                subject=facts.node,
            )


def _names(facts: NodeFacts) -> tuple[str, str]:
    """The first word of the hostname, and what avahi announces; '' for what is not known."""
    identity, upkeep = known_or_none(facts.identity), known_or_none(facts.upkeep)
    unit = upkeep.units.get(AVAHI) if upkeep else None
    said = _AVAHI_NAME.search(unit.says) if unit else None
    return (identity.hostname.partition(".")[0] if identity else "", said[1] if said else "")


def duplicate_address(context: Context) -> Iterator[Found]:
    """Addresses that two nodes have. One that is alone in its network is no way to a node: Docker's bridge, or NAT."""
    fabric = {a.ipv4 for facts in wired_nodes(context) for rail in rails_of(facts) for a in rail.link.addresses}
    found: dict[IPv4Network, dict[str, dict[str, str]]] = {}
    for facts in wired_nodes(context):
        for link in known_or_none(facts.interfaces) or ():
            for address in link.addresses:
                if net := network_of(address):
                    found.setdefault(net, {}).setdefault(address.ipv4, {}).setdefault(facts.node, link.name)
    for ips in found.values():
        for ip, owners in sorted(ips.items()):
            if len(owners) > 1 and (len(ips) > 1 or ip in fabric):
                where = ", ".join(f"{node} ({name})" for node, name in owners.items())
                yield Found(
                    f"ip address: {ip} on {where}",
                    title=f"{ip} is an address of {' and of '.join(owners)}",
                    subject=", ".join(owners),
                    fix=f"on the node that should not have it: `ip -br address` shows its interface and prefix, then "
                    f"sudo ip address del {ip}/PREFIX dev INTERFACE, and take it out of netplan",
                )


CHECKS = explained(
    __file__,
    Check("NET005", WARN, "fabric interface has a gateway", per_node(wired_nodes, fabric_gateway)),
    Check("NET006", WARN, "fabric subnet collides with another network", per_node(wired_nodes, subnet_clash)),
    Check("NET007", INFO, "fabric interfaces are bonded", bonded),
    Check("NET008", WARN, "fabric link slower than 200 Gb/s", per_node(wired_nodes, slow_link)),
    Check("NET009", WARN, "NetworkManager auto-configures the fabric", auto_addresses),
    Check("NET011", WARN, "netplan file readable by other users", per_node(real_nodes, netplan_mode)),
    Check("NET012", WARN, "firewall blocks the fabric", firewall_blocks),
    Check("NET013", WARN, "proxy intercepts local addresses", per_node(real_nodes, proxy_catches)),
    Check("NET018", WARN, "mDNS name conflict", mdns_renamed),
    Check("NET019", WARN, "two nodes have the same address", duplicate_address),
)
