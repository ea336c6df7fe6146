"""The findings of planner.fabric. Codes FAB001 to FAB014 are never reused."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sparkwright.domain.check import Check, by_code, explained
from sparkwright.domain.facts import Interface, RdmaPort, Unknown
from sparkwright.domain.finding import BLOCK, OVERRIDE, WARN, Finding

_WRITE = "write the node's fabric address, interface and hcas into the cluster file"

CHECKS = explained(
    __file__,
    Check("FAB001", BLOCK, "configured interface not on the node"),
    Check("FAB002", BLOCK, "configured address not on the node"),
    Check("FAB003", BLOCK, "configured HCA not on the node"),
    Check("FAB004", OVERRIDE, "configured HCA has no link"),
    Check("FAB005", BLOCK, "fabric facts could not be read"),
    Check("FAB006", BLOCK, "no active RDMA port"),
    Check("FAB007", BLOCK, "no fabric subnet shared with all peers"),
    Check("FAB008", BLOCK, "several interfaces reach all peers"),
    Check("FAB009", OVERRIDE, "no RoCE v2 GID for the address"),
    Check("FAB010", WARN, "only one HCA of the cage in use"),
    Check("FAB011", WARN, "both ports of a pair in one subnet"),
    Check("FAB012", OVERRIDE, "duplicate fabric address"),
    Check("FAB013", BLOCK, "configured interface not usable"),
    Check("FAB014", WARN, "no HCA, plain TCP used"),
)
_FAB = by_code(CHECKS)


def no_interface(node: str, wanted: str, links: Iterable[Interface]) -> Finding:
    return _FAB["FAB001"].on(node, f"interfaces: {_links(links)}", title=f"no interface {wanted}")


def no_address(node: str, wanted: str, interface: str | None, links: Iterable[Interface]) -> Finding:
    return _FAB["FAB002"].on(
        node, f"interfaces: {_links(links)}", title=f"{wanted} is not on {interface or 'any interface that is up'}"
    )


def missing_hca(node: str, wanted: str, ports: Iterable[RdmaPort]) -> Finding:
    return _FAB["FAB003"].on(node, f"RDMA devices: {_ports(ports)}", title=f"no HCA {wanted}")


def not_active(node: str, port: RdmaPort) -> Finding:
    return _FAB["FAB004"].on(
        node,
        f"{port.device}/{port.port} state {port.state} physical_state {port.physical_state} netdev {port.netdev}",
        title=f"{port.device} is {port.state}",
    )


def not_read(node: str, what: str, value: Unknown) -> Finding:
    return _FAB["FAB005"].on(
        node,
        value.raw or value.why,
        title=f"{what} not known",
        cause=f"the node's {what} could not be read" + (f": {value.why}" if value.why else ""),
        fix=f"repair the tool that prints them, or {_WRITE}",
    )


def softened(finding: Finding) -> Finding:
    return replace(finding, severity=WARN, cause=finding.cause + "; the cluster file's values are not checked")


def all_down(node: str, ports: Iterable[RdmaPort]) -> Finding:
    return _FAB["FAB006"].on(node, _ports(ports))


def unreachable(node: str, own: Sequence[str], peers: Mapping[str, Sequence[str]]) -> Finding:
    return _FAB["FAB007"].on(
        node,
        f"{node}: {', '.join(own) or 'no address'}; {_theirs(peers)}",
        title="no fabric subnet is shared with all peers",
        cause="the fabric interfaces have no IPv4 address, or the nodes' addresses are in different subnets",
        fix="give each cage an address in a subnet that all nodes share (netplan, MTU 9000), or " + _WRITE,
    )


def peers_elsewhere(node: str, address: str, peers: Mapping[str, Sequence[str]]) -> Finding:
    return _FAB["FAB007"].on(
        node,
        _theirs(peers),
        title=f"{address} shares no subnet with all peers",
        cause="the given address is on another network than the peers' addresses; RoCE is not routed",
        fix="give the nodes addresses in one subnet, or write the ones that are",
        severity=OVERRIDE,
    )


def no_ipv4(node: str, interface: str, links: Iterable[Interface]) -> Finding:
    return _FAB["FAB013"].on(
        node,
        f"interfaces: {_links(links)}",
        title=f"{interface} is down or has no IPv4 address",
        fix=f"give {interface} an address in a subnet that all nodes share and set it up, or write another interface",
    )


def several(node: str, ways: Sequence[str]) -> Finding:
    return _FAB["FAB008"].on(node, ", ".join(ways))


def missing_gid(node: str, port: RdmaPort, address: str) -> Finding:
    rows = ", ".join(f"{gid.index} {gid.version} {gid.ipv4 or 'link-local'}" for gid in port.gids)
    return _FAB["FAB009"].on(
        node,
        rows,
        title=f"{port.device} has no RoCE v2 GID for {address}",
        fix=f"set the interface down and up again: ip link set {port.netdev} down && ip link set {port.netdev} up",
    )


def one_port(node: str, port: RdmaPort, ports: Iterable[RdmaPort]) -> Finding:
    return _FAB["FAB010"].on(node, _ports(ports), title=f"only {port.device} of its cage is used")


def one_subnet(node: str, interface: str, mates: Sequence[str], network: str) -> Finding:
    return _FAB["FAB011"].on(
        node,
        f"{', '.join((interface, *mates))} in {network}",
        fix=f"give {', '.join(mates)} an address in a subnet of its own, the same on all nodes",
    )


def same_address(node: str, address: str, peers: Sequence[str]) -> Finding:
    return _FAB["FAB012"].on(
        node, f"{address} on {', '.join((node, *peers))}", title=f"{address} is also on {', '.join(peers)}"
    )


def no_rdma(node: str, interface: str, ports: Iterable[RdmaPort]) -> Finding:
    return _FAB["FAB014"].on(
        node, f"RDMA devices: {_ports(ports)}", title=f"no HCA: the ranks will talk by plain TCP over {interface}"
    )


def _links(links: Iterable[Interface]) -> str:
    shown = [f"{i.name} {' '.join(a.ipv4 for a in i.addresses) or '-'}{'' if i.up else ' (down)'}" for i in links]
    return ", ".join(shown) or "none"


def _ports(ports: Iterable[RdmaPort]) -> str:
    return ", ".join(f"{p.device} {p.state} ({p.netdev or 'no netdev'})" for p in ports) or "none"


def _theirs(peers: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{name}: {', '.join(ways) or 'no address'}" for name, ways in peers.items())
