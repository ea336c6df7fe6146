"""Checks of what keeps traffic from nodes and fabric: firewall, proxies, file modes, names."""

import re
from collections.abc import Iterator

from sparkwright.checks.rails import Rail, parsed, rails, wired
from sparkwright.checks.reading import node_of, per_node, real_nodes, sparks
from sparkwright.domain.check import Check, Context, Found, explained
from sparkwright.domain.fabric_facts import Firewall
from sparkwright.domain.facts import NodeFacts, Unknown
from sparkwright.domain.finding import INFO, WARN
from sparkwright.domain.unknown import known
from sparkwright.facts.upkeep import AVAHI
from sparkwright.remote.repair import mode_fix

_MODE = "600"


def netplan_mode(facts: NodeFacts) -> Iterator[Found]:
    network = known(facts.network)
    for path, mode in network.netplan.items() if network else ():
        if not mode.endswith("00"):
            yield Found(
                f"stat: {mode} {path}",
                title=f"{path} has mode {mode}",
                fix=f"on {facts.node}: sudo chmod {_MODE} {path}",
                repair=mode_fix(facts.node, path, _MODE, mode),
            )


def firewall_blocks(context: Context) -> Iterator[Found]:
    for facts in wired(context):
        network = known(facts.network)
        firewall = network.firewall if network else None
        closed = [rail.name for rail in rails(facts) if firewall and not _lets_in(firewall, rail)]
        if firewall and closed:
            yield _blocked(facts.node, firewall, closed)


def _lets_in(firewall: Firewall, rail: Rail) -> bool:
    """By its name, or by the networks that it is in."""
    allowed = known(firewall.allows) or ()
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


_LOOPBACK = "127.0.0.1"


def proxy_catches(facts: NodeFacts) -> Iterator[Found]:
    for where, proxy, exceptions in _proxies(facts):
        wanted = [_LOOPBACK, *(a.ipv4 for rail in rails(facts) for a in rail.link.addresses)]
        caught = [address for address in wanted if not _excepted(address, exceptions)]
        if caught:
            yield Found(
                f"{where}: proxy {proxy}, no_proxy {exceptions or '(not set)'}",
                title=f"proxy of {where} intercepts {caught[0]}",
                fix=f"no_proxy={','.join(['localhost', *caught])} next to it, and the same for NO_PROXY",
            )


def _proxies(facts: NodeFacts) -> Iterator[tuple[str, str, str]]:
    """(where, proxy, exceptions) of the environment and of the daemon."""
    settings, docker = known(facts.settings), known(facts.docker)
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


_SAYS = re.compile(r"Host name is ([^\s.]+)\.")


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
    identity, upkeep = known(facts.identity), known(facts.upkeep)
    unit = upkeep.units.get(AVAHI) if upkeep else None
    said = _SAYS.search(unit.says) if unit else None
    return (identity.hostname.partition(".")[0] if identity else "", said[1] if said else "")


CHECKS = explained(
    __file__,
    Check("NET011", WARN, "netplan file readable by other users", per_node(real_nodes, netplan_mode)),
    Check("NET012", WARN, "firewall blocks the fabric", firewall_blocks),
    Check("NET013", WARN, "proxy intercepts local addresses", per_node(real_nodes, proxy_catches)),
    Check("NET018", WARN, "mDNS name conflict", mdns_renamed),
)
