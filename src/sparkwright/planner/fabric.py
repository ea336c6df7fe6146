"""The address, interface and HCAs that a node uses to reach its peers, chosen for each node on its own.

A ConnectX-7 cage of a GB10 is two RDMA devices and two netdevs on two PCI domains: `rocep1s0f0` with
`roceP2p1s0f0`, `enp1s0f0np0` with `enP2p1s0f0np0`. One of the two alone gives half the speed. Cages may differ
between nodes; what has to agree is the subnet.
https://www.servethehome.com/the-nvidia-gb10-connectx-7-200gbe-networking-is-really-different
"""

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import AddressValueError, IPv4Address, IPv4Network

from sparkwright.domain.cluster import Fabric, Node
from sparkwright.domain.fabric_facts import cage_name
from sparkwright.domain.facts import FabricChoice, Interface, NodeFacts, RdmaPort, Unknown
from sparkwright.domain.finding import Finding
from sparkwright.domain.unknown import known_or_none
from sparkwright.domain.values import dataclass
from sparkwright.planner import fabric_findings as say

LOOPBACK = FabricChoice("127.0.0.1", "lo", notes=("a single node needs no fabric",))
# Bridges that a container runtime or a hypervisor makes are the same on every machine and lead to none of them.
_VIRTUAL = ("docker", "br-", "veth", "virbr", "lxc", "cni", "flannel", "podman")


@dataclass(frozen=True, slots=True)
class Decision:
    """choice is None when a finding blocks; other findings are warnings or can be overridden."""

    choice: FabricChoice | None
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class _Way:
    """An address of this node by which a peer may be reached; ports: the ACTIVE RDMA ports on its netdev."""

    interface: str
    address: IPv4Address
    network: IPv4Network
    ports: tuple[RdmaPort, ...] = ()


@dataclass(frozen=True, slots=True)
class _View:
    """The cluster file's wishes and the facts of a node; unreadable facts have been handled before."""

    node: str
    wish: Fabric
    interfaces: tuple[Interface, ...]
    rdma: tuple[RdmaPort, ...]
    ways: tuple[_Way, ...]
    peers: Mapping[str, tuple[_Way, ...]]
    has_gpu: bool = False


def choose_fabrics(nodes: Sequence[Node], facts: Mapping[str, NodeFacts]) -> dict[str, Decision]:
    """A decision for each node of a cluster. facts: by node name; a node whose facts are missing gets FAB005."""
    known = {node.name: facts[node.name] for node in nodes if node.name in facts}
    decisions: dict[str, Decision] = {}
    for node in nodes:
        others = [found for name, found in known.items() if name != node.name]
        if node.name not in known or (len(nodes) > 1 and not others):
            decisions[node.name] = Decision(None, (say.not_read(node.name, "facts of the nodes", Unknown("")),))
        else:
            decisions[node.name] = choose_fabric(node, known[node.name], others)
    return decisions


def choose_fabric(node: Node, facts: NodeFacts, peers: Sequence[NodeFacts]) -> Decision:
    """Decides how `node` reaches all of `peers` (none: loopback). Values of the cluster file win, and are checked."""
    wish = node.fabric
    if not peers and not (wish.address or wish.interface):
        return Decision(LOOPBACK)
    read: dict[str, object] = {"addresses": facts.interfaces}
    if wish.hcas != ():
        read["RDMA devices"] = facts.rdma
    unread = [say.not_read(node.name, what, value) for what, value in read.items() if isinstance(value, Unknown)]
    if unread:
        # A wholly given fabric is used unchecked; a part that has to be found cannot be
        if wish.address is None or wish.interface is None or wish.hcas is None:
            return Decision(None, tuple(unread))
        notes = ("as the cluster file gives it; not checked",)
        gids = tuple((hca, None) for hca in wish.hcas)
        choice = FabricChoice(wish.address, wish.interface, wish.hcas, notes=notes, gids=gids)
        return Decision(choice, tuple(say.softened(finding) for finding in unread))
    links = facts.interfaces or ()
    rdma = () if wish.hcas == () else facts.rdma or ()
    theirs = {peer.node: _ways(peer.interfaces or (), peer.rdma or ()) for peer in peers}
    view = _View(node.name, wish, links, rdma, _ways(links, rdma), theirs, bool(facts.gpus))
    wrong = _wrong_wishes(view)
    if wrong:
        return Decision(None, tuple(wrong))
    return _given(view) if wish.address or wish.interface else _found(view)


def _ways(links: Iterable[Interface], rdma: Sequence[RdmaPort]) -> tuple[_Way, ...]:
    found = []
    for link in links:
        ports = tuple(port for port in rdma if port.active and port.netdev == link.name)
        for entry in link.addresses if link.up else ():
            address = _ipv4(entry.ipv4)
            if address and 0 <= entry.prefix <= 32:
                found.append(_Way(link.name, address, IPv4Network((address, entry.prefix), strict=False), ports))
    return tuple(found)


def _ipv4(text: str) -> IPv4Address | None:
    try:
        return IPv4Address(text)
    except AddressValueError:
        return None


def _wrong_wishes(view: _View) -> list[Finding]:
    """Findings for names in the cluster file that the node does not have."""
    wish, links = view.wish, view.interfaces
    found = []
    if wish.interface and wish.interface not in [link.name for link in links]:
        found.append(say.no_interface(view.node, wish.interface, links))
    elif wish.address and not _holders(view):
        found.append(say.no_address(view.node, wish.address, wish.interface, links))
    elif wish.interface and not _holders(view):
        found.append(say.no_ipv4(view.node, wish.interface, links))
    missing = [hca for hca in wish.hcas or () if hca not in [port.device for port in view.rdma]]
    return [*found, *(say.missing_hca(view.node, hca, view.rdma) for hca in missing)]


def _holders(view: _View) -> list[_Way]:
    """This node's ways on the given interface and with the given address; all of 127/8 is on `lo`."""
    wish = view.wish
    address = _ipv4(wish.address) if wish.address else None
    if address and address.is_loopback and wish.interface in (None, "lo"):
        return [_Way("lo", address, IPv4Network("127.0.0.0/8"))]
    ways = [way for way in view.ways if wish.interface in (None, way.interface)]
    return [way for way in ways if wish.address is None or way.address == address]


def _given(view: _View) -> Decision:
    """Address or interface are given: the way is known, and is only compared with the peers."""
    ways = _holders(view)
    reaching = [way for way in ways if _reaches_all(way, view)]
    way = (reaching or ways)[0]
    findings = []
    twice = [name for name, theirs in view.peers.items() if way.address in [other.address for other in theirs]]
    if not way.address.is_loopback:
        if twice:
            findings.append(say.same_address(view.node, str(way.address), twice))
        elif not reaching:
            findings.append(say.peers_elsewhere(view.node, str(way.address), _networks(view)))
    return _complete(view, way, findings)


def _found(view: _View) -> Decision:
    """Nothing but perhaps HCAs is given: the one cage (or plain interface) whose subnet all peers share."""
    active = [port for port in view.rdma if port.active]
    if view.rdma and not active:
        return Decision(None, (say.all_down(view.node, view.rdma),))
    ways = [way for way in view.ways if bool(way.ports) == bool(view.rdma) and not _is_virtual(way)]
    reaching = [way for way in ways if _reaches_all(way, view)]
    if not reaching:
        return Decision(None, (say.unreachable(view.node, [_shown(way) for way in ways], _networks(view)),))
    cages = sorted({cage_name(way.interface) for way in reaching})
    if len(cages) > 1:
        return Decision(None, (say.several(view.node, [_shown(way) for way in reaching]),))
    return _complete(view, min(reaching, key=lambda way: _preference(way, view)), [])


def _is_virtual(way: _Way) -> bool:
    return way.address.is_loopback or way.interface.startswith(_VIRTUAL)


def _reaches_all(way: _Way, view: _View) -> bool:
    """Every peer has another address in the same subnet; RoCE is not routed, and needs RDMA netdevs at both ends."""
    return all(any(_meets(way, other) for other in theirs) for theirs in view.peers.values())


def _meets(way: _Way, other: _Way) -> bool:
    same = way.network == other.network and way.address != other.address
    return same and (bool(other.ports) or not way.ports)


def _preference(way: _Way, view: _View) -> tuple[bool, int, IPv4Network, bool]:
    """Ranks subnets alike on every node, so that all choose the same: no 169.254, then most netdevs of domain 0.

    In one subnet this node's netdev of domain 0 comes first.
    """
    everyone = [*view.ways, *(other for theirs in view.peers.values() for other in theirs)]
    first = [w for w in everyone if w.network == way.network and cage_name(w.interface) == w.interface]
    return way.address.is_link_local, -len(first), way.network, cage_name(way.interface) != way.interface


def _complete(view: _View, way: _Way, findings: list[Finding]) -> Decision:
    """Adds HCAs and GIDs to the way that is taken."""
    ports = _ports(view, way)
    gids = tuple((port.device, _gid_index(port, way, view)) for port in ports)
    findings += _port_findings(view, way, ports, gids)
    numbers = {index for _, index in gids}
    choice = FabricChoice(
        address=str(way.address),
        interface=way.interface,
        hcas=tuple(port.device for port in ports),
        gid_index=numbers.pop() if len(numbers) == 1 else None,
        notes=tuple(_notes(view, way, ports)),
        gids=gids,
    )
    return Decision(choice, tuple(findings))


def _ports(view: _View, way: _Way) -> list[RdmaPort]:
    """The given HCAs in their order, or both ports of the way's pair (no RDMA way: of the one cage that reaches)."""
    if view.wish.hcas is not None:
        by_name = {port.device: port for port in view.rdma}
        return [by_name[hca] for hca in view.wish.hcas]
    netdev = way.interface
    if not way.ports:
        reaching = {cage_name(w.interface) for w in view.ways if w.ports and _reaches_all(w, view)}
        netdev = reaching.pop() if len(reaching) == 1 and not way.address.is_loopback else ""
    mates = [port for port in view.rdma if port.active and netdev and cage_name(port.netdev) == cage_name(netdev)]
    return sorted(mates, key=lambda port: (cage_name(port.netdev) != port.netdev, port.device, port.port))


def _gid_index(port: RdmaPort, way: _Way, view: _View) -> int | None:
    """The index of the RoCE v2 GID with an IPv4 of this port's netdev; found by meaning, since it moves at every link
    bounce."""
    own = [str(w.address) for w in view.ways if w.interface == port.netdev]
    wanted = [str(way.address)] if port.netdev == way.interface else own
    return next((gid.index for gid in port.gids if gid.version.endswith("v2") and gid.ipv4 in wanted), None)


def _port_findings(
    view: _View, way: _Way, ports: Sequence[RdmaPort], gids: Sequence[tuple[str, int | None]]
) -> list[Finding]:
    found = [say.not_active(view.node, port) for port in ports if not port.active]
    first = [
        port for port, (_, index) in zip(ports, gids, strict=True) if port.netdev == way.interface and index is None
    ]
    found += [say.missing_gid(view.node, port, str(way.address)) for port in first if port.active and port.gids]
    if view.peers and view.has_gpu and not ports and view.wish.hcas is None and not way.address.is_loopback:
        found.append(say.no_rdma(view.node, way.interface, view.rdma))
    if (
        len(ports) == 1
        and ports[0].netdev
        and cage_name(ports[0].netdev) in {cage_name(p.netdev) for p in view.rdma if p != ports[0]}
    ):
        found.append(say.one_port(view.node, ports[0], view.rdma))
    mates = {port.netdev for port in ports} - {way.interface}
    if any(other.interface in mates and other.network == way.network for other in view.ways):
        found.append(say.one_subnet(view.node, way.interface, sorted(mates), str(way.network)))
    return found


def _notes(view: _View, way: _Way, ports: Sequence[RdmaPort]) -> list[str]:
    given = view.wish.address or view.wish.interface
    notes = ["the cluster file gives the way" if given else f"all nodes share {way.network} on {way.interface}"]
    if not view.rdma:
        off = "the cluster file wants no HCAs" if view.wish.hcas == () else "no RDMA device on this node"
        notes.append(f"{off}: plain TCP")
    elif ports and not way.ports:
        notes.append("sockets and RDMA use different networks")
    elif not ports:
        notes.append(f"{way.interface} is no RDMA netdev and no single cage reaches all nodes: plain TCP")
    return notes


def _networks(view: _View) -> dict[str, list[str]]:
    return {name: [_shown(way) for way in theirs if not _is_virtual(way)] for name, theirs in view.peers.items()}


def _shown(way: _Way) -> str:
    return f"{way.interface} {way.address}/{way.network.prefixlen}"


def fabric_networks(facts: NodeFacts) -> frozenset[str]:
    """Subnets in which this node has an RDMA netdev; those of its plain interfaces if it has no RDMA device."""
    links, rdma = known_or_none(facts.interfaces) or (), known_or_none(facts.rdma) or ()
    ways = [way for way in _ways(links, rdma) if not _is_virtual(way) and bool(way.ports) == bool(rdma)]
    return frozenset(str(way.network) for way in ways)


def shared_addresses(one: NodeFacts, other: NodeFacts) -> tuple[str, str] | None:
    """An address of each in a subnet that both have, one of the fabric first; None if they share none."""
    mine, theirs = (
        [
            way
            for way in _ways(known_or_none(facts.interfaces) or (), known_or_none(facts.rdma) or ())
            if not _is_virtual(way)
        ]
        for facts in (one, other)
    )
    pairs = [(a, b) for a in mine for b in theirs if a.network == b.network and a.address != b.address]
    best = min(pairs, key=lambda pair: (not (pair[0].ports and pair[1].ports), pair[0].network), default=None)
    return (str(best[0].address), str(best[1].address)) if best else None
