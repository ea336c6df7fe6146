"""Which ranks are there: as each node tells it now, and what could not be told."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sparkwright.app.tasks import together
from sparkwright.domain.errors import NodeError
from sparkwright.domain.facts import RankStatus
from sparkwright.domain.recipe import Runtime
from sparkwright.domain.sample import Sample
from sparkwright.domain.unknown import Unknown
from sparkwright.facts import sample as asking
from sparkwright.facts.ranks import docker_away, ranks_fact
from sparkwright.facts.sample import parse
from sparkwright.supervisor.context import DeploymentContext

# Of a node that hangs; one that is down is told sooner by ssh itself.
_LIMIT = 20.0


@dataclass(frozen=True, slots=True)
class Census:
    """ranks: of the deployment, by number, on the node where they belong. strays: ours elsewhere, or of another size.

    unseen: node -> why it could not be asked. samples: of the nodes that answered, with their boot markers. others: by
    node, other deployments that run there; what they hold is not ours.
    """

    ranks: Mapping[int, RankStatus]
    strays: tuple[RankStatus, ...] = ()
    unseen: Mapping[str, str] = field(default_factory=dict)
    samples: Mapping[str, Sample] = field(default_factory=dict)
    others: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def dockerless(self) -> dict[str, str]:
        """Nodes that answer, where Docker does not: its containers may be there, or not."""
        return {node: why for node, why in self.unseen.items() if isinstance(why, DockerAway)}

    @property
    def all(self) -> tuple[RankStatus, ...]:
        return (*self.ranks.values(), *self.strays)

    @property
    def boots(self) -> tuple[tuple[str, str], ...]:
        return tuple((node, sample.boot) for node, sample in self.samples.items() if sample.boot)


class DockerAway(str):
    """Why containers could not be listed."""


Told = tuple[tuple[RankStatus, ...], Sample | None]


async def census(context: DeploymentContext) -> Census:
    """Raises nothing: a node that cannot be asked is unseen, and so are its ranks."""
    told = dict(zip(context.nodes, await together(_ask(context, node) for node in context.nodes), strict=True))
    listed = {node: found[0] for node, found in told.items() if not isinstance(found, str)}
    mine = [rank for ranks in listed.values() for rank in ranks if rank.deployment == context.name]
    others = {node: _others(context, ranks) for node, ranks in listed.items()}
    if any(rank.running for rank in mine):
        context.ran_beside(frozenset().union(*others.values()))
    placed = {r.rank: r for r in mine if r.rank < len(context.nodes) and context.nodes[r.rank] == r.node}
    return Census(
        ranks=dict(sorted(placed.items())),
        strays=tuple(rank for rank in mine if placed.get(rank.rank) is not rank),
        unseen={node: found for node, found in told.items() if isinstance(found, str)},
        samples={node: found[1] for node, found in told.items() if not isinstance(found, str) and found[1]},
        others=others,
    )


def _others(context: DeploymentContext, ranks: Sequence[RankStatus]) -> frozenset[str]:
    return frozenset(rank.deployment for rank in ranks if rank.running and rank.deployment != context.name)


async def _ask(context: DeploymentContext, node: str) -> Told | str:
    """What runs on the node, or why that cannot be told: a daemon that does not answer may have containers of ours."""
    fact = ranks_fact(context.services.cluster.node(node))
    try:
        async with asyncio.timeout(_LIMIT):
            ranks, memory = await context.services.hosts[node].run_all([fact.command, asking.memory()])
    except NodeError as error:
        return error.message
    except TimeoutError:
        return f"{node}: no answer within {_LIMIT:.0f} s"
    if context.desired.recipe.engine.runtime is Runtime.DOCKER and (away := docker_away(ranks)):
        return DockerAway(f"{away} on {node}")
    found, sample = fact.read(ranks), parse(memory)
    if isinstance(found, Unknown):
        return f"{node}: {found.why}"
    return found, None if isinstance(sample, Unknown) else sample
