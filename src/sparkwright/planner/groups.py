"""The nodes of a cluster divided into groups, one for each replica of a model."""

from collections.abc import Mapping, Sequence
from itertools import count as count_from

from sparkwright.domain.values import dataclass, field

EVERYWHERE = "any"


@dataclass(frozen=True, slots=True)
class GroupNode:
    """A node that may get a replica. free: bytes available. networks: subnets of its fabric.

    has_weights: the model is complete there. away: why the node cannot be used, '' if it can.
    """

    name: str
    free: int = 0
    has_weights: bool = False
    networks: frozenset[str] = frozenset()
    away: str = ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """count groups of `size` nodes. kept: number -> nodes of the replicas that are there. head: the gateway's node."""

    size: int
    count: int
    head: str = ""
    kept: Mapping[int, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Grouping:
    """groups: number -> nodes, rank 0 first. left: nodes in no group. dropped: numbers of replicas that are too many.

    refused: why there are not as many groups as wanted, '' if there are.
    """

    groups: Mapping[int, tuple[str, ...]]
    left: tuple[str, ...] = ()
    dropped: tuple[int, ...] = ()
    refused: str = ""


def group_nodes(candidates: Sequence[GroupNode], wanted: Wanted) -> Grouping:
    """Keep the replicas that are there and form the rest of the nodes that fit best.

    Nodes of one group share a subnet of the fabric. A group with the gateway's node comes first, then one that has the
    weights, then the one with the most memory on its fullest node. No node is ever in two groups.
    """
    kept = dict(sorted(wanted.kept.items())[: wanted.count])
    dropped = tuple(sorted(set(wanted.kept) - set(kept)))
    if wrong := _wrong(wanted):
        return Grouping(kept, dropped=dropped, refused=wrong)
    taken = {node for nodes in wanted.kept.values() for node in nodes}
    free = [one for one in candidates if not one.away and one.name not in taken]
    groups, numbers = dict(kept), (n for n in count_from(1) if n not in wanted.kept)
    while len(groups) < wanted.count and (best := _best(free, wanted)):
        groups[next(numbers)] = tuple(one.name for one in best)
        free = [one for one in free if one not in best]
    left = tuple(one.name for one in free)
    short = _too_few(candidates, wanted, groups, left) if len(groups) < wanted.count else ""
    return Grouping(dict(sorted(groups.items())), left, dropped, short)


def _wrong(wanted: Wanted) -> str:
    """The reason why the replicas that are there cannot be kept, '' if they can."""
    owner: dict[str, int] = {}
    for number, nodes in sorted(wanted.kept.items()):
        if len(nodes) != wanted.size:
            return f"replica {number} runs on {len(nodes)} node(s), and the recipe wants {wanted.size}"
        for node in nodes:
            if owner.setdefault(node, number) != number:
                return f"{node} is in replica {owner[node]} and in replica {number}"
    return ""


def _best(free: Sequence[GroupNode], wanted: Wanted) -> list[GroupNode]:
    """The best group that can be formed, [] if none can."""
    networks = {EVERYWHERE} if wanted.size == 1 else {network for one in free for network in one.networks}
    choices = []
    for network in sorted(networks):
        members = [one for one in free if wanted.size == 1 or network in one.networks]
        if len(members) >= wanted.size:
            ranked = sorted(members, key=lambda one: (one.name != wanted.head, not one.has_weights, -one.free))
            choices.append((ranked[: wanted.size], len(members)))
    if not choices:
        return []
    return min(choices, key=lambda choice: (*_order(choice[0], wanted), choice[1]))[0]


def _order(group: Sequence[GroupNode], wanted: Wanted) -> tuple[bool, int, int]:
    lacking = sum(not one.has_weights for one in group)
    return all(one.name != wanted.head for one in group), lacking, -min(one.free for one in group)


def _too_few(
    candidates: Sequence[GroupNode], wanted: Wanted, groups: Mapping[int, tuple[str, ...]], left: Sequence[str]
) -> str:
    """The reason why there are fewer groups than wanted."""
    away = [f"{one.name} ({one.away})" for one in candidates if one.away]
    needed = wanted.size * wanted.count
    said = f"{wanted.count} replicas of {wanted.size} node(s) need {needed} nodes"
    there = len(candidates) - len(away)
    if there < needed:
        said += f", and {there} can be used"
    else:
        said += f"; {len(groups)} could be formed"
    if away:
        said += f"; not usable: {', '.join(away)}"
    if wanted.size > 1 and len(left) >= wanted.size:
        said += f"; {', '.join(left)} do not share a fabric subnet"
    return said
