"""Checks of the ConnectX port pairs: addresses, subnets, MTU."""

from collections.abc import Iterator
from itertools import combinations

from sparkwright.checks.rails import Rail, compared, netplan, rails, twins, wired
from sparkwright.checks.reading import per_node, running
from sparkwright.domain.check import Check, Context, Found
from sparkwright.domain.fabric_facts import cage
from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import INFO, WARN, Fix
from sparkwright.domain.unknown import known
from sparkwright.remote.repair import mtu_fix


def raised(context: Context, rail: Rail, mtu: int) -> Fix | None:
    """None while an engine may run there: the driver rebuilds its queues, and connections stall."""
    facts = context.facts.get(rail.node)
    if facts is None or running(facts) != () or known(facts.gpu_processes) != ():
        return None
    return mtu_fix(rail.node, rail.name, mtu, rail.link.mtu)


def second_port_bare(context: Context) -> Iterator[Found]:
    pairs = [pair for facts in compared(context) for pair in twins(facts) if pair[0].link.addresses]
    if any(twin.link.addresses for _, twin in pairs):
        return
    for first, twin in pairs:
        yield Found(
            f"{first.shown}; {twin.shown}", title=f"{twin.name} is up and has no IPv4 address", subject=first.node
        )


def pair_mtu(context: Context) -> Iterator[Found]:
    for facts in wired(context):
        for pair in twins(facts):
            low, high = sorted(pair, key=lambda rail: rail.link.mtu)
            if low.link.mtu < high.link.mtu:
                yield _lower_in_pair(context, low, high)


def _lower_in_pair(context: Context, low: Rail, high: Rail) -> Found:
    return Found(
        f"{low.name} mtu {low.link.mtu}, {high.name} mtu {high.link.mtu}",
        title=f"{low.name} has MTU {low.link.mtu}, the other port of its pair {high.link.mtu}",
        fix=netplan(low, f"mtu: {high.link.mtu}"),
        subject=low.node,
        repair=raised(context, low, high.link.mtu),
    )


def peer_mtu(context: Context) -> Iterator[Found]:
    everyone = [rail for facts in wired(context) for rail in rails(facts)]
    for rail in everyone:
        peers = [r for r in everyone if r.node != rail.node and set(r.networks) & set(rail.networks)]
        highest = max(peers, key=lambda peer: peer.link.mtu, default=rail)
        if rail.link.mtu < highest.link.mtu:
            yield _lower_than_peer(context, rail, highest)


def _lower_than_peer(context: Context, low: Rail, high: Rail) -> Found:
    return Found(
        f"{low.node} {low.shown} mtu {low.link.mtu}; {high.node} {high.shown} mtu {high.link.mtu}",
        title=f"{low.name} has MTU {low.link.mtu}, its peer {high.link.mtu}",
        fix=netplan(low, f"mtu: {high.link.mtu}"),
        subject=low.node,
        repair=raised(context, low, high.link.mtu),
    )


_JUMBO = 9000


def mtu_small(context: Context) -> Iterator[Found]:
    everyone = [rail for facts in compared(context) for rail in rails(facts)]
    if everyone and all(rail.link.mtu < _JUMBO for rail in everyone):
        yield Found(
            ", ".join(f"{rail.node} {rail.name} mtu {rail.link.mtu}" for rail in everyone),
            title=f"fabric MTU is {everyone[0].link.mtu}",
            subject=", ".join(dict.fromkeys(rail.node for rail in everyone)),
        )


def link_local_only(facts: NodeFacts) -> Iterator[Found]:
    for rail in rails(facts):
        if rail.networks and all(net.is_link_local for net in rail.networks):
            yield Found(rail.shown, title=f"{rail.name} has a link-local address only")


def cages_differ(context: Context) -> Iterator[Found]:
    cages = {facts.node: {cage(rail.name) for rail in rails(facts)} for facts in compared(context)}
    cabled = {node: names for node, names in cages.items() if names}
    if len(cabled) > 1 and not set.intersection(*cabled.values()):
        yield Found(
            "; ".join(f"{node}: {', '.join(sorted(names))}" for node, names in cabled.items()),
            subject=", ".join(cabled),
        )


def second_cage(facts: NodeFacts) -> Iterator[Found]:
    here = rails(facts)
    bare = [rail.name for rail in here if not rail.link.addresses]
    if len({cage(rail.name) for rail in here}) > 1 and 0 < len(bare) < len(here):
        yield Found("; ".join(rail.shown for rail in here), title=f"two cables, but no address on {', '.join(bare)}")


def pair_subnets(context: Context) -> Iterator[Found]:
    pairs = [pair for facts in wired(context) for pair in twins(facts)]
    for (first, twin), (other, far) in combinations(pairs, 2):
        addressed = bool(twin.networks and far.networks)
        if first.node != other.node and _meet(first, other) and addressed and not _meet(twin, far):
            yield Found(
                f"{first.node} {twin.shown}; {other.node} {far.shown}; the first rails: {first.shown}, {other.shown}",
                title=f"{twin.name} and {far.name} share no subnet",
                fix=f"give both an address in one subnet, another than {first.networks[0]}",
                subject=f"{first.node}, {other.node}",
            )


def _meet(one: Rail, other: Rail) -> bool:
    return bool(set(one.networks) & set(other.networks))


def pair_one_sided(context: Context) -> Iterator[Found]:
    seconds = [twin for facts in wired(context) for first, twin in twins(facts) if first.networks]
    bare = [twin for twin in seconds if not twin.networks]
    addressed = [twin for twin in seconds if twin.networks and twin.node not in {b.node for b in bare}]
    for twin in bare if addressed else ():
        yield Found(
            "; ".join(f"{rail.node} {rail.shown}" for rail in (twin, *addressed)),
            title=f"{twin.name} has no address, the second port of {addressed[0].node} has one",
            fix=f"give {twin.name} an address in {addressed[0].networks[0]}, or take the others' away",
            subject=twin.node,
        )


CHECKS = (
    Check("NET001", INFO, "second port of a pair has no address", second_port_bare).about(
        detects="a port pair that is up, with an IPv4 on the port of PCI domain 0 and none on the other, on all nodes.",
        why="NVIDIA's playbook, eugr and Pulsar give each port an address in a subnet of its own. guardkit and "
        "sparkbase give the second port none and see full speed, where its MTU is 9000 too and its link-local GIDs "
        "are at the same index everywhere.",
        cause="some set-ups address both ports, in different subnets; others only the first, and both reach full "
        "speed where MTU and GID index of the ports agree",
        fix="nothing while both rails carry traffic; else an address in a subnet of its own, the same on all nodes",
        see=(
            "https://github.com/NVIDIA/dgx-spark-playbooks",
            "https://github.com/guardkit/dgx-spark",
            "https://github.com/DoctorMasterNewb/sparkbase",
        ),
    ),
    Check("NET002", WARN, "MTU differs within a port pair", pair_mtu).about(
        detects="both netdevs of a cage are up, and one has another MTU than the other.",
        why="NCCL spreads its traffic over both rails, and the slower one paces: guardkit measured 17.85 GB/s "
        "instead of 23.85 with one port at 1500. (Whether 9000 on both is much better than 1500 on both is "
        "another question: NET004.)",
        cause="one of the ports was forgotten: the rail with small packets paces the other",
        fix="the larger one on both. The fix sets it until the next boot; netplan keeps it",
        see=("https://github.com/guardkit/dgx-spark",),
    ),
    Check("NET003", WARN, "MTU differs between peers", peer_mtu).about(
        detects="netdevs of RDMA ports on two nodes that share a subnet and have different MTUs.",
        why="what the larger end sends whole, the other drops: ping and ssh work, large transfers stall.",
        cause="large packets of the peer are dropped here without a word, while ping works",
        fix="the larger one on both ends; change the worker first",
        see=("https://github.com/guardkit/dgx-spark",),
    ),
    Check("NET004", INFO, "no jumbo frames on the fabric", mtu_small).about(
        detects="every netdev of an ACTIVE RDMA port has an MTU below 9000, on all nodes.",
        why="NVIDIA and most guides set 9000. nepenth measured 12.53 against 12.59 GB/s, and Pulsar at most 1.5 "
        "%, and keeps 1500. What costs is a difference between the ends or the ports (NET002, NET003).",
        cause="most guides set 9000; two measurements found 0.5 % and 1.5 % in it",
        fix="mtu: 9000 for both ports of the pair on every node (netplan), or leave it as it is",
        see=(
            "https://github.com/NVIDIA/dgx-spark-playbooks",
            "https://github.com/nepenth/deepseek-v4-flash-gb10",
            "https://github.com/luisefigueroa/pulsar-gb10-vllm-stack",
        ),
    ),
    Check("NET010", INFO, "fabric has link-local addresses only", per_node(compared, link_local_only)).about(
        detects="a netdev of an ACTIVE RDMA port all of whose IPv4 addresses are 169.254.x.y.",
        why="it works, and the addresses are made again at boot, while host files, firewalls and other tools' "
        "settings keep the old ones. sparkwright itself asks at every start.",
        cause="no address was set, and the system made one up",
        fix="fixed addresses in netplan, one subnet a rail, the same on all nodes",
        see=("https://github.com/chenboju/dgx-spark-serving",),
    ),
    Check("NET014", INFO, "nodes are cabled in different cages", cages_differ).about(
        detects="no cage (by the netdev's name) is ACTIVE on all nodes.",
        why="sparkwright finds interface and HCAs for each node. Other tools give one interface name to all, and "
        "the rank that lacks it ends with Gloo's `Unable to find address for: enp1s0f1np1`.",
        cause="each node's interface has another name, and tools that give one name to all ranks fail",
        fix="nothing for sparkwright; for other tools put the cable into the same cage, and reboot all with it in",
        see=("https://github.com/eugr/spark-vllm-docker", "https://github.com/guardkit/dgx-spark"),
    ),
    Check("NET015", WARN, "two cables, but netdevs without address", per_node(wired, second_cage)).about(
        detects="both cages of a node are ACTIVE, and of their netdevs some have an IPv4 address and some none.",
        why="guardkit saw the link halved (10.25 GB/s) until all four were addressed. A second cable between the "
        "same two nodes adds no bandwidth at all: one cage's two rails already take what the NIC has.",
        cause="traffic meets on the rails that have one: half the speed of a single cable was seen",
        fix="between two nodes: take one cable out and reboot both; in a ring: an address for each netdev",
        see=("https://github.com/guardkit/dgx-spark", "https://github.com/eugr/spark-vllm-docker"),
    ),
    Check("NET016", WARN, "second ports are in different subnets", pair_subnets).about(
        detects="on two nodes netdevs of domain 0 share a subnet, both ports of each pair have "
        "addresses, and the second ports share none.",
        why="RoCE is not routed: every connection over the second rail times out (`curr state INIT, next state "
        "RTR`), or NCCL hangs with it, while the first rail and ping are in order.",
        cause="RoCE does not cross subnets: the second rail cannot be used, and NCCL may hang with it",
        fix="one subnet for the first rail and one for the second, the same two on all nodes",
        see=("https://github.com/NVIDIA/dgx-spark-playbooks", "https://github.com/DoctorMasterNewb/sparkbase"),
    ),
    Check("NET017", WARN, "second port has an address on one node only", pair_one_sided).about(
        detects="port pairs that are ACTIVE on two nodes, of which one has an IPv4 address on its second port and the "
        "other none.",
        why="their GID tables differ: one offers an IPv4 GID, the other link-local ones, and the connection of "
        "this rail ends with `ibv_modify_qp ... Invalid argument`. Both ways work where all nodes do the "
        "same (NET001).",
        cause="the two ends offer different kinds of GID, and connections over this rail fail",
        fix="an address for all ports, or for none",
        see=("https://github.com/guardkit/dgx-spark",),
    ),
)
