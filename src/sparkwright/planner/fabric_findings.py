"""The words of what planner.fabric finds. Codes FAB001 to FAB014 are never reused."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sparkwright.domain.facts import Interface, RdmaPort, Unknown
from sparkwright.domain.finding import Finding, Severity

_WRITE = "write the node's fabric address, interface and hcas into the cluster file"


def no_interface(node: str, wanted: str, links: Iterable[Interface]) -> Finding:
    """FAB001: the cluster file names an interface that the node does not have."""
    return Finding(
        "FAB001",
        Severity.BLOCK,
        node,
        f"no interface {wanted}",
        f"interfaces: {_links(links)}",
        "the cluster file names an interface that this node does not have; cages may differ between nodes",
        "write one of these interfaces, or `auto`",
    )


def no_address(node: str, wanted: str, interface: str | None, links: Iterable[Interface]) -> Finding:
    """FAB002: the given address is not on the node, or not on the given interface."""
    return Finding(
        "FAB002",
        Severity.BLOCK,
        node,
        f"{wanted} is not on {interface or 'any interface that is up'}",
        f"interfaces: {_links(links)}",
        "the address in the cluster file belongs to no interface of this node that is up, or to another one",
        "write the address that this node has, or `auto`; `ip addr` on the node shows them",
    )


def no_hca(node: str, wanted: str, ports: Iterable[RdmaPort]) -> Finding:
    """FAB003: the cluster file names an RDMA device that the node does not have."""
    return Finding(
        "FAB003",
        Severity.BLOCK,
        node,
        f"no HCA {wanted}",
        f"RDMA devices: {_ports(ports)}",
        "the cluster file names an RDMA device that this node does not have (without a cable it leaves the PCI bus)",
        "write one of these devices, `auto`, or [] for plain TCP",
    )


def not_active(node: str, port: RdmaPort) -> Finding:
    """FAB004: a given HCA has no link."""
    return Finding(
        "FAB004",
        Severity.OVERRIDE,
        node,
        f"{port.device} is {port.state}",
        f"{port.device}/{port.port} state {port.state} physical_state {port.physical_state} netdev {port.netdev}",
        "the link of this HCA is not up on both ends",
        "seat the cable of this cage, or name the HCAs of the other cage",
    )


def not_read(node: str, what: str, value: Unknown) -> Finding:
    """FAB005: without these facts nothing can be chosen."""
    return Finding(
        "FAB005",
        Severity.BLOCK,
        node,
        f"{what} not known",
        value.raw or value.why,
        f"the node's {what} could not be read" + (f": {value.why}" if value.why else ""),
        f"repair the tool that tells them, or {_WRITE}",
    )


def softened(finding: Finding) -> Finding:
    """FAB005 where everything is given: a warning that it was not checked."""
    return replace(finding, severity=Severity.WARN, cause=finding.cause + "; the cluster file's values are not checked")


def all_down(node: str, ports: Iterable[RdmaPort]) -> Finding:
    """FAB006: RDMA devices, and none of them ACTIVE."""
    return Finding(
        "FAB006",
        Severity.BLOCK,
        node,
        "no RDMA port is ACTIVE",
        _ports(ports),
        "no cable is seated, or the peer's end is down (a peer that reboots takes this link with it)",
        "seat the cable on both nodes and reboot both with it in; for plain TCP write the address and `hcas: []`",
    )


def unreachable(node: str, own: Sequence[str], peers: Mapping[str, Sequence[str]]) -> Finding:
    """FAB007: no subnet of this node is one of every peer."""
    return Finding(
        "FAB007",
        Severity.BLOCK,
        node,
        "no fabric subnet is shared with all peers",
        f"{node}: {', '.join(own) or 'no address'}; {_theirs(peers)}",
        "the fabric interfaces have no IPv4 address, or the nodes' addresses are in different subnets",
        "give each cage an address in a subnet that all nodes share (netplan, MTU 9000), or " + _WRITE,
    )


def peers_elsewhere(node: str, address: str, peers: Mapping[str, Sequence[str]]) -> Finding:
    """FAB007, softer: the given address shares no subnet with the peers."""
    return Finding(
        "FAB007",
        Severity.OVERRIDE,
        node,
        f"{address} shares no subnet with all peers",
        _theirs(peers),
        "the given address is on another network than the peers' addresses; RoCE is not routed",
        "give the nodes addresses in one subnet, or write the ones that are",
    )


def no_ipv4(node: str, interface: str, links: Iterable[Interface]) -> Finding:
    """FAB013: the given interface is there and cannot be used."""
    return Finding(
        "FAB013",
        Severity.BLOCK,
        node,
        f"{interface} is down or has no IPv4 address",
        f"interfaces: {_links(links)}",
        "an interface can be up without an address, and then nothing reaches it",
        f"give {interface} an address in a subnet that all nodes share and bring it up, or write another interface",
    )


def several(node: str, ways: Sequence[str]) -> Finding:
    """FAB008: more than one cage, or plain interface, reaches all peers."""
    return Finding(
        "FAB008",
        Severity.BLOCK,
        node,
        "more than one way reaches all peers",
        ", ".join(ways),
        "a second cable between two nodes adds no bandwidth, and which one is meant cannot be told from the facts",
        "write the interface to use for this node into the cluster file",
    )


def no_gid(node: str, port: RdmaPort, address: str) -> Finding:
    """FAB009: the GID table is known and lacks the entry that RoCE v2 over this address needs."""
    rows = ", ".join(f"{gid.index} {gid.version} {gid.ipv4 or 'link-local'}" for gid in port.gids)
    return Finding(
        "FAB009",
        Severity.OVERRIDE,
        node,
        f"{port.device} has no RoCE v2 GID for {address}",
        rows,
        "the address was set while the link was down, or NetworkManager changed it",
        f"bring the interface down and up: ip link set {port.netdev} down && ip link set {port.netdev} up",
    )


def one_twin(node: str, port: RdmaPort, ports: Iterable[RdmaPort]) -> Finding:
    """FAB010: one of the cage's two HCAs. 12-13.9 GB/s instead of 20-24 GB/s (field guide B5)."""
    return Finding(
        "FAB010",
        Severity.WARN,
        node,
        f"only {port.device} of its cage is used",
        _ports(ports),
        "each of a cage's two HCAs has half of its PCIe lanes: one alone gives 12-14 GB/s, both 20-24",
        "bring the twin's netdev up, or name both HCAs in the cluster file",
    )


def one_subnet(node: str, interface: str, mates: Sequence[str], network: str) -> Finding:
    """FAB011: both twins in one subnet, so that the kernel answers for one on the other."""
    return Finding(
        "FAB011",
        Severity.WARN,
        node,
        "both twins of the cage are in one subnet",
        f"{', '.join((interface, *mates))} in {network}",
        "the kernel may answer for one twin on the other, and the traffic of both takes one of them",
        f"give {', '.join(mates)} an address in a subnet of its own, the same on all nodes",
    )


def same_address(node: str, address: str, peers: Sequence[str]) -> Finding:
    """FAB012: two nodes hold one address."""
    return Finding(
        "FAB012",
        Severity.OVERRIDE,
        node,
        f"{address} is also on {', '.join(peers)}",
        f"{address} on {', '.join((node, *peers))}",
        "two nodes were given one address, or two entries of the cluster file are one machine",
        "give each node an address of its own",
    )


def no_rdma(node: str, interface: str, ports: Iterable[RdmaPort]) -> Finding:
    """FAB014: a GPU node that talks to its peers by plain TCP without having been told to."""
    return Finding(
        "FAB014",
        Severity.WARN,
        node,
        f"no HCA: the ranks will talk by plain TCP over {interface}",
        f"RDMA devices: {_ports(ports)}",
        "the addresses are not on a ConnectX-7 cage; without a cable DGX OS takes the NIC off the PCI bus",
        "seat the cable on both nodes and reboot both with it in, or write `hcas: []` to have TCP on purpose",
    )


def _links(links: Iterable[Interface]) -> str:
    shown = [f"{i.name} {' '.join(a.ipv4 for a in i.addresses) or '-'}{'' if i.up else ' (down)'}" for i in links]
    return ", ".join(shown) or "none"


def _ports(ports: Iterable[RdmaPort]) -> str:
    return ", ".join(f"{p.device} {p.state} ({p.netdev or 'no netdev'})" for p in ports) or "none"


def _theirs(peers: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{name}: {', '.join(ways) or 'no address'}" for name, ways in peers.items())
