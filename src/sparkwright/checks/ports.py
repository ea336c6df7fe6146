"""Checks of the ConnectX port pairs: addresses, subnets, MTU."""

from collections.abc import Iterator
from itertools import combinations

from sparkwright.checks.rails import Rail, compared, netplan, port_pairs, rails_of, wired_nodes
from sparkwright.checks.reading import per_node, running
from sparkwright.domain.check import Check, Context, Found, explained
from sparkwright.domain.fabric_facts import cage_name
from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import INFO, WARN, Fix
from sparkwright.domain.unknown import known_or_none
from sparkwright.remote.repair import mtu_fix

_JUMBO = 9000


def raised(context: Context, rail: Rail, mtu: int) -> Fix | None:
    """None while an engine may run there: the driver rebuilds its queues, and connections stall."""
    facts = context.facts.get(rail.node)
    if facts is None or running(facts) != () or known_or_none(facts.gpu_processes) != ():
        return None
    return mtu_fix(rail.node, rail.name, mtu, rail.link.mtu)


def second_port_bare(context: Context) -> Iterator[Found]:
    pairs = [pair for facts in compared(context) for pair in port_pairs(facts) if pair[0].link.addresses]
    if any(twin.link.addresses for _, twin in pairs):
        return
    for first, twin in pairs:
        yield Found(
            f"{first.shown}; {twin.shown}", title=f"{twin.name} is up and has no IPv4 address", subject=first.node
        )


def pair_mtu(context: Context) -> Iterator[Found]:
    for facts in wired_nodes(context):
        for pair in port_pairs(facts):
            low, high = sorted(pair, key=lambda rail: rail.link.mtu)
            if low.link.mtu < high.link.mtu:
                evidence = f"{low.name} mtu {low.link.mtu}, {high.name} mtu {high.link.mtu}"
                yield _lower(context, low, high, evidence, "the other port of its pair")


def _lower(context: Context, low: Rail, high: Rail, evidence: str, other: str) -> Found:
    return Found(
        evidence,
        title=f"{low.name} has MTU {low.link.mtu}, {other} {high.link.mtu}",
        fix=netplan(low, f"mtu: {high.link.mtu}"),
        subject=low.node,
        repair=raised(context, low, high.link.mtu),
    )


def peer_mtu(context: Context) -> Iterator[Found]:
    everyone = [rail for facts in wired_nodes(context) for rail in rails_of(facts)]
    for rail in everyone:
        peers = [r for r in everyone if r.node != rail.node and set(r.networks) & set(rail.networks)]
        highest = max(peers, key=lambda peer: peer.link.mtu, default=rail)
        if rail.link.mtu < highest.link.mtu:
            evidence = "; ".join(f"{one.node} {one.shown} mtu {one.link.mtu}" for one in (rail, highest))
            yield _lower(context, rail, highest, evidence, "its peer")


def mtu_small(context: Context) -> Iterator[Found]:
    everyone = [rail for facts in compared(context) for rail in rails_of(facts)]
    if everyone and all(rail.link.mtu < _JUMBO for rail in everyone):
        yield Found(
            ", ".join(f"{rail.node} {rail.name} mtu {rail.link.mtu}" for rail in everyone),
            title=f"fabric MTU is {everyone[0].link.mtu}",
            subject=", ".join(dict.fromkeys(rail.node for rail in everyone)),
        )


def link_local_only(facts: NodeFacts) -> Iterator[Found]:
    for rail in rails_of(facts):
        if rail.networks and all(net.is_link_local for net in rail.networks):
            yield Found(rail.shown, title=f"{rail.name} has a link-local address only")


def cages_differ(context: Context) -> Iterator[Found]:
    cages = {facts.node: {cage_name(rail.name) for rail in rails_of(facts)} for facts in compared(context)}
    cabled = {node: names for node, names in cages.items() if names}
    if len(cabled) > 1 and not set.intersection(*cabled.values()):
        yield Found(
            "; ".join(f"{node}: {', '.join(sorted(names))}" for node, names in cabled.items()),
            subject=", ".join(cabled),
        )


def second_cage(facts: NodeFacts) -> Iterator[Found]:
    here = rails_of(facts)
    bare = [rail.name for rail in here if not rail.link.addresses]
    if len({cage_name(rail.name) for rail in here}) > 1 and 0 < len(bare) < len(here):
        yield Found("; ".join(rail.shown for rail in here), title=f"two cables, but no address on {', '.join(bare)}")


def pair_subnets(context: Context) -> Iterator[Found]:
    pairs = [pair for facts in wired_nodes(context) for pair in port_pairs(facts)]
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
    seconds = [twin for facts in wired_nodes(context) for first, twin in port_pairs(facts) if first.networks]
    bare = [twin for twin in seconds if not twin.networks]
    addressed = [twin for twin in seconds if twin.networks and twin.node not in {b.node for b in bare}]
    for twin in bare if addressed else ():
        yield Found(
            "; ".join(f"{rail.node} {rail.shown}" for rail in (twin, *addressed)),
            title=f"{twin.name} has no address, the second port of {addressed[0].node} has one",
            fix=f"give {twin.name} an address in {addressed[0].networks[0]}, or take the others' away",
            subject=twin.node,
        )


CHECKS = explained(
    __file__,
    Check("NET001", INFO, "second port of a pair has no address", second_port_bare),
    Check("NET002", WARN, "MTU differs within a port pair", pair_mtu),
    Check("NET003", WARN, "MTU differs between peers", peer_mtu),
    Check("NET004", INFO, "no jumbo frames on the fabric", mtu_small),
    Check("NET010", INFO, "fabric has link-local addresses only", per_node(compared, link_local_only)),
    Check("NET014", INFO, "nodes are cabled in different cages", cages_differ),
    Check("NET015", WARN, "two cables, but netdevs without address", per_node(wired_nodes, second_cage)),
    Check("NET016", WARN, "second ports are in different subnets", pair_subnets),
    Check("NET017", WARN, "second port has an address on one node only", pair_one_sided),
)
