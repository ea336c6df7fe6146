"""The replicas of a model as they are, and the nodes, addresses and key that each of them gets."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from ipaddress import ip_address

from sparkwright.app.cluster_state import gather_stock
from sparkwright.app.gather import Gathered, gather
from sparkwright.app.queries import status
from sparkwright.app.serve.prepare import move_ports
from sparkwright.app.serve.running import state_of
from sparkwright.app.services import LaunchRequest, Services, api_key, together
from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.cluster import Cluster, Node
from sparkwright.domain.codec import Unreadable, from_json
from sparkwright.domain.command import Secret
from sparkwright.domain.deployment import Deployment
from sparkwright.domain.errors import Refused, UsageError
from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.live import SERVING, Desired
from sparkwright.domain.recipe import Expose, Recipe
from sparkwright.domain.replica import MOST_REPLICAS, ReplicaPlace, is_part_of, replica_name, split_replica_name
from sparkwright.domain.unknown import known_or_none
from sparkwright.domain.values import dataclass, field, replace
from sparkwright.engines.catalog import rehearse
from sparkwright.planner.fabric import fabric_networks, shared_addresses
from sparkwright.planner.groups import Grouping, GroupNode, Wanted, group_nodes
from sparkwright.remote import service as commands

ENGINE_KEY = "SPARKWRIGHT_ENGINE_KEY"
"""Name of the key that sparkwright makes for the engines of replicas; clients never see it."""


@dataclass(frozen=True, slots=True)
class Member:
    """A deployment that is a replica. nodes: rank 0 first, () if nobody knows. serves: as its supervisor says."""

    name: str
    number: int
    nodes: tuple[str, ...]
    serves: bool = False
    supervised: bool = False
    recipe: Recipe | None = None
    replica: ReplicaPlace | None = None


@dataclass(frozen=True, slots=True)
class ReplicaStart:
    """One replica as `up` starts it. services: the cluster with its group first. fresh: no deployment is there yet."""

    number: int
    services: Services
    request: LaunchRequest
    fresh: bool


@dataclass(frozen=True, slots=True)
class Survey:
    """gathered: facts of every node, or why they are missing. having: nodes with the complete model."""

    gathered: Gathered
    having: Collection[str] = ()

    def facts(self, node: str) -> NodeFacts | None:
        found = self.gathered.get(node)
        return found if isinstance(found, NodeFacts) else None


@dataclass(frozen=True, slots=True)
class Present:
    """The deployments that become the replicas. replaced: number -> name of one of another name."""

    members: tuple[Member, ...] = ()
    replaced: Mapping[int, str] = field(default_factory=dict)


async def replicas_of(services: Services, of: str) -> tuple[Member, ...]:
    """The replicas of a model that any node knows, by number."""
    found, _ = await status(services, probe=False)
    return await _members(services, [one for one in found if one.replica_of == of])


async def _members(services: Services, found: Sequence[Deployment]) -> tuple[Member, ...]:
    made = await together(_member(services, one) for one in found)
    return tuple(sorted(made, key=lambda one: one.number))


async def _member(services: Services, one: Deployment) -> Member:
    node = one.supervised.node if one.supervised else services.cluster.head
    state = state_of(services, one.supervised) if one.supervised else services.state_on(node)
    told = await services.run(node, commands.read_desired(state, one.name))
    live = one.supervised.current if one.supervised else None
    ranks = tuple(rank.node for rank in sorted(one.ranks, key=lambda rank: rank.rank))
    made = Member(one.name, split_replica_name(one.name)[1], ranks, bool(live and live.phase in SERVING))
    made = replace(made, supervised=one.supervised is not None)
    with suppress(Unreadable):
        desired = from_json(Desired, told.stdout)
        nodes = tuple(node.name for node in desired.cluster.ordered[: desired.recipe.nodes])
        return replace(made, nodes=nodes, recipe=desired.recipe, replica=desired.replica)
    return made


async def find_present(services: Services, request: LaunchRequest) -> Present:
    """The replicas of the request's name, and what it replaces in their place. Raises UsageError for an unknown one.

    A deployment of the same name that stands alone becomes a replica.
    """
    found, _ = await status(services, probe=False)
    mine = await _members(services, [one for one in found if one.replica_of == request.deployment])
    other = request.replaces or request.deployment
    old = await _members(services, [one for one in found if other != request.deployment and one.replica_of == other])
    alone = await _members(services, [one for one in found if one.name == other and not one.replica_of])
    strangers = [
        one.name
        for one in found
        if one.name != request.deployment and is_part_of(request.deployment, one.name) and not one.replica_of
    ]
    if strangers:
        said = f"{strangers[0]} stands alone, and a replica of {request.deployment} would have its name"
        raise UsageError(said, f"`sparkwright down {strangers[0]}`, or another name for the replicas: `--name`")
    if request.replaces and not (old or alone):
        raise UsageError(f"no deployment {other}", "`sparkwright status` shows what runs")
    numbers = {one.number for one in mine}
    free = next(number for number in range(1, MOST_REPLICAS + 2) if number not in numbers)
    old = (*old, *(replace(one, number=free) for one in alone))
    old = tuple(one for one in old if one.number not in numbers)
    members = tuple(sorted((*mine, *old), key=lambda one: one.number))
    return Present(members, {one.number: one.name for one in old})


async def survey(services: Services, recipe: Recipe) -> Survey:
    nodes = services.cluster.ordered
    gathered = await gather(services.hosts, nodes, services.clock)
    there = [node for node in nodes if isinstance(gathered[node.name], NodeFacts)]
    found = await gather_stock(services, there, recipe)
    return Survey(gathered, [n for n, c in found.checkpoints.items() if isinstance(c, Checkpoint) and c.complete])


def choose_groups(services: Services, recipe: Recipe, count: int, present: Present, seen: Survey) -> Grouping:
    """Raises Refused, with the reason, if the cluster has not so many groups of nodes."""
    kept = {one.number: one.nodes for one in present.members}
    wanted = Wanted(recipe.nodes, count, services.cluster.head, kept)
    found = group_nodes([_group_node(node.name, seen) for node in services.cluster.ordered], wanted)
    if found.refused:
        hint = "add nodes to the cluster file, or ask for fewer: `--replicas N`"
        raise Refused(f"{recipe.label}: {found.refused}; nothing was changed", hint=hint)
    return found


def _group_node(name: str, seen: Survey) -> GroupNode:
    facts = seen.facts(name)
    if facts is None:
        return GroupNode(name, away=str(seen.gathered[name]).removeprefix(f"{name}: "))
    memory = known_or_none(facts.memory)
    return GroupNode(name, memory.available if memory else 0, name in seen.having, fabric_networks(facts))


def group_cluster(cluster: Cluster, nodes: Sequence[str]) -> Cluster:
    """The same nodes, with those of a replica first; its supervisor stays on the cluster's head."""
    ordered = (*(cluster.node(name) for name in nodes), *(node for node in cluster.nodes if node.name not in nodes))
    away = cluster.supervisor_node if nodes[0] != cluster.supervisor_node else ""
    return replace(cluster, nodes=ordered, head=nodes[0], supervised_on=away)


async def starts_of(
    services: Services, request: LaunchRequest, grouping: Grouping, present: Present, seen: Survey
) -> tuple[ReplicaStart, ...]:
    """The request of each replica: its nodes, address and key. Raises UsageError, Refused."""
    here = {one.number: one for one in present.members}
    recipe, key = await _with_key(services, request, present)
    secrets = {**services.secrets, **({recipe.serving.api_key_env: key} if key else {})}
    ways = {n: await _reach(services, nodes[0], seen, here.get(n)) for n, nodes in grouping.groups.items()}
    gateway = next((address for _, address in ways.values() if address), "")  # one for all: they share it
    made = []
    for number, nodes in grouping.groups.items():
        place, (listen, _) = ReplicaPlace(request.deployment, number), ways[number]
        _refuse_open(recipe, nodes[0], listen)
        one = replace(
            request,
            recipe=recipe,
            deployment=place.name,
            api_key=key,
            replaces=present.replaced.get(number, ""),
            replica=replace(place, listen=listen, gateway=gateway),
        )
        one = group_ports(services.cluster, one, number)
        there = replace(services, cluster=group_cluster(services.cluster, nodes), secrets=secrets)
        made.append(ReplicaStart(number, there, one, number not in here))
    return tuple(made)


def group_ports(cluster: Cluster, request: LaunchRequest, number: int) -> LaunchRequest:
    """The request with ports of its own where the nodes are one machine and have its ports in common."""
    return move_ports(request, number - 1) if _is_one_machine(cluster) else request


def _is_one_machine(cluster: Cluster) -> bool:
    return all(node.is_local for node in cluster.nodes)


async def _with_key(services: Services, request: LaunchRequest, present: Present) -> tuple[Recipe, Secret | None]:
    """The recipe with a key of its engine's own, where other machines could reach that; the same key for every start.

    It is in the 0600 file of each supervisor, and made anew only if none of them has it.
    """
    recipe = request.recipe
    if recipe.serving.api_key_env:
        return recipe, api_key(services, recipe)
    keyed = replace(recipe, serving=replace(recipe.serving, api_key_env=ENGINE_KEY))
    if _is_one_machine(services.cluster) or len(rehearse(keyed)) > len(rehearse(recipe)):
        return recipe, None
    head = services.cluster.supervisor_node
    for one in present.members:
        home = f"{services.state_on(head)}/supervision/{one.name}"
        text = (await services.run(head, commands.read(home, "secrets.json"))).stdout
        with suppress(ValueError):
            found = read_json(text) if text else {}
            if isinstance(found, dict) and isinstance(key := found.get(ENGINE_KEY), str) and key:
                return keyed, Secret(key)
    if services.keyring is None:
        raise UsageError("no key can be made here for the engines of several nodes")
    return keyed, Secret(services.keyring.fresh().hex())


def _refuse_open(recipe: Recipe, node: str, listen: str) -> None:
    """Raises Refused for an engine without a key that machines beyond the fabric could use."""
    if not listen or recipe.serving.api_key_env or recipe.serving.expose is Expose.FABRIC:
        return
    said = f"{recipe.label}: {recipe.engine.name} takes no key, and the gateway would have to reach it at {listen}"
    hint = "if only your nodes are in that network, say so with `serving.expose: fabric`"
    raise Refused(f"{said} on {node}, open to everybody in that network", hint=hint)


async def _reach(services: Services, node: str, seen: Survey, member: Member | None) -> tuple[str, str]:
    """Addresses of the engine on `node` and of the gateway's node, by which the gateway reaches it; '' on one machine.

    Raises UsageError if the two have no network in common.
    """
    head = services.cluster.supervisor_node
    ours, theirs = seen.facts(head), seen.facts(node)
    if node == head or (services.cluster.node(node).is_local and services.cluster.node(head).is_local):
        return "", ""
    if ours is None or theirs is None:
        kept = member.replica if member else None
        return (kept.listen, kept.gateway) if kept else ("", "")
    if pair := shared_addresses(theirs, ours):
        return pair
    if address := await _routed(services, services.cluster.node(node), theirs):
        return address, ""
    said = f"the gateway on {head} has no way to {node}: the two have no IPv4 subnet in common"
    raise UsageError(said, f"connect {node} to the network of {head}, or take it out of the cluster file")


async def _routed(services: Services, node: Node, facts: NodeFacts) -> str:
    """The address by which this machine reaches the node, if it is one of the node's own."""
    try:
        address = str(ip_address(await services.hosts[node.name].address()))
    except ValueError:
        return ""
    own = {entry.ipv4 for link in known_or_none(facts.interfaces) or () for entry in link.addresses}
    return address if address in own else ""


def number_asked(asked: int, recipe: Recipe, present: Collection[int]) -> int:
    """The number of replicas: as the command says, else the recipe, else as many as there are."""
    return asked or (recipe.serving.replicas if recipe.serving.replicas > 1 else len(present)) or 1


def check_names(deployment: str, count: int) -> None:
    """Raises UsageError if a replica's name would be too long."""
    longest = replica_name(deployment, count)
    if len(longest) > _MOST:
        raise UsageError(f"{longest}: a replica's name has at most {_MOST} characters", "a shorter `--name`")


_MOST = 63
