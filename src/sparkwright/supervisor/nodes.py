"""The view of the nodes: running ranks, samples of the machines, followers of the ranks' logs and exits."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import TypeVar

from sparkwright.app.ranks import End, runs
from sparkwright.app.serve.watch import TAIL, describe_end
from sparkwright.app.services import by_node, together
from sparkwright.domain.errors import NodeError, Unreachable
from sparkwright.domain.facts import RankStatus
from sparkwright.domain.live import LiveRank
from sparkwright.domain.recipe import Runtime
from sparkwright.domain.sample import GpuSample, Sample
from sparkwright.domain.unknown import Unknown, known_or_none
from sparkwright.domain.values import dataclass, field
from sparkwright.facts import sample as asking
from sparkwright.facts.ranks import docker_away, ranks_fact
from sparkwright.facts.sample import Samples, halts_fact, parse
from sparkwright.supervisor.context import DeploymentContext
from sparkwright.supervisor.core.events import Fault
from sparkwright.supervisor.core.state import Recovery
from sparkwright.supervisor.event_bus import EventBus
from sparkwright.supervisor.reboots import note_boot

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
    """The reason why containers could not be listed."""


class NotReached(str):
    """The reason why a node could not be asked. cure: the remedy in a few words."""

    cure = ""


def _not_reached(why: str, cure: str) -> NotReached:
    found = NotReached(why)
    found.cure = cure
    return found


def cure_of(why: str) -> str:
    return why.cure if isinstance(why, NotReached) else ""


async def census(context: DeploymentContext) -> Census:
    """Raises nothing: a node that cannot be asked is unseen, and so are its ranks."""
    told = await by_node(context.nodes, lambda node: _ask(context, node))
    listed = {node: found[0] for node, found in told.items() if not isinstance(found, str)}
    mine = [rank for ranks in listed.values() for rank in ranks if rank.deployment == context.name]
    others = {
        node: frozenset(rank.deployment for rank in ranks if rank.running and rank.deployment != context.name)
        for node, ranks in listed.items()
    }
    if any(rank.running for rank in mine):
        context.note_neighbours(frozenset().union(*others.values()))
    placed = {r.rank: r for r in mine if r.rank < len(context.nodes) and context.nodes[r.rank] == r.node}
    return Census(
        ranks=dict(sorted(placed.items())),
        strays=tuple(rank for rank in mine if placed.get(rank.rank) is not rank),
        unseen={node: found for node, found in told.items() if isinstance(found, str)},
        samples={node: found[1] for node, found in told.items() if not isinstance(found, str) and found[1]},
        others=others,
    )


async def _ask(context: DeploymentContext, node: str) -> tuple[tuple[RankStatus, ...], Sample | None] | str:
    """The ranks on the node, or the reason why they are unknown: a daemon that does not answer may have containers of
    ours."""
    fact = ranks_fact(context.services.cluster.node(node))
    try:
        async with asyncio.timeout(_LIMIT):
            ranks, memory = await context.services.hosts[node].run_all([fact.command, asking.memory()])
    except NodeError as error:
        return _not_reached(error.message, error.cure if isinstance(error, Unreachable) else error.hint)
    except TimeoutError:
        cure = f"`ssh {node} true` on {context.head} shows why"
        return _not_reached(f"{node}: no answer within {_LIMIT:.0f} s", cure)
    if context.desired.recipe.engine.runtime is Runtime.DOCKER and (away := docker_away(ranks)):
        return DockerAway(f"{away} on {node}")
    found = fact.read(ranks)
    return f"{node}: {found.why}" if isinstance(found, Unknown) else (found, known_or_none(parse(memory)))


T = TypeVar("T")

# Each wait is a little longer than the one before: about a tenth of how long the node has been away by then.
_FIRST_WAIT, _LONGER, _LONGEST = 1.0, 1.1, 10.0


async def follow_lines(
    context: DeploymentContext, opened: Callable[[], AsyncIterator[T]]
) -> AsyncIterator[T | NodeError]:
    """The lines of a stream, and between them what ended it; opened again, later each time until a line comes."""
    wait = _FIRST_WAIT
    while True:
        try:
            async with aclosing(opened()) as told:  # type: ignore[type-var]
                async for line in told:
                    wait = _FIRST_WAIT
                    yield line
        except NodeError as error:
            yield error
        await context.services.clock.sleep(wait)
        wait = min(_LONGER * wait, _LONGEST)


# The stream of a node that hangs stays open: so many samples missed, and the node counts as not seen.
_MISSED = 4
_LEAST_SILENCE = 5.0
# Whether a GPU computes while no token comes must be known within seconds.
_GPU_EVERY = 2.0


async def watch_node(bus: EventBus, node: str) -> None:
    context, samples = bus.context, Samples()
    every, state = max(context.policy.sample_every, 0.5), context.services.cluster.node(node).paths.state
    command = asking.follow(every, min(every, _GPU_EVERY), context.now(), state, context.name)
    async for line in follow_lines(context, lambda: context.services.hosts[node].stream(command)):
        if isinstance(line, NodeError):
            bus.heard.pop(node, None)
            bus.put(*bus.detectors.lost(node, context.now(), line.message))
        elif sample := samples.feed(line):
            _sample(bus, node, sample)
        elif bus.serving and line.startswith("gpu ") and isinstance(samples.gpu, GpuSample):
            bus.put(*bus.detectors.glance(node, samples.gpu, context.now()))


def _sample(bus: EventBus, node: str, sample: Sample) -> None:
    context = bus.context
    bus.heard[node] = context.now()
    note_boot(bus, node, sample)
    context.seen.sample(node, sample)
    bus.put(*bus.detectors.sample(node, sample, context.now()))
    for line in sample.kernel if bus.serving else ():
        bus.read(f"kernel log of {node}", line)


def report_silent(bus: EventBus) -> None:
    """Nodes whose samples stay away although their stream is open."""
    at = bus.context.now()
    limit = max(_MISSED * bus.context.policy.sample_every, _LEAST_SILENCE)
    for node, when in tuple(bus.heard.items()):
        if at - when > limit:
            del bus.heard[node]
            bus.put(*bus.detectors.lost(node, at))


# A rank that leaves in order while it serves has lost a peer: what the peer's end says is the fault.
_PEER_FIRST = 0.5


async def follow_rank(bus: EventBus, rank: int) -> None:
    """Follows the rank until it ends. An unreachable node proves nothing about its rank."""
    context = bus.context
    async for line in follow_lines(context, lambda: context.following(rank)):
        if isinstance(line, str):
            context.seen.line(rank, line)
            bus.read(context.label(rank), line)
        elif isinstance(line, End) and (
            line.how.startswith("restarted ")
            or not await runs(context.services, context.name, rank, context.nodes[rank])
        ):
            if line.how.startswith("exited 0 "):
                await context.services.clock.sleep(_PEER_FIRST)
            rank_ended(bus, rank, line.how)
            return


def rank_ended(bus: EventBus, rank: int, how_ended: str) -> None:
    """Reports the end of a rank. how_ended: as End.how."""
    context = bus.context
    last = tuple(f"{context.label(rank)}: {line}" for line in context.seen.lines.get(rank, ()))[-TAIL:]
    what = f"{context.label(rank)} {describe_end(how_ended)}"
    bus.put(Fault(context.now(), "rank-exited", what, Recovery.RELAUNCH, last))


_LISTED_EVERY, _DOCKER_AGAIN, _LEAST = 30.0, 2.0, 1.0
_DOCKER = "docker:"


async def watch_listing(bus: EventBus) -> None:
    context = bus.context
    while True:
        found = await census(context)
        note_census(bus, found)
        for rank, node in enumerate(context.nodes):
            listed = found.ranks.get(rank)
            if node not in found.unseen and not (listed and listed.running):
                # As a follower reports it.
                rank_ended(bus, rank, f"exited {listed.code} {str(listed.oom_killed).lower()}" if listed else "gone")
                return
        await context.pause(_LISTED_EVERY)


async def watch_docker(bus: EventBus) -> None:
    """Asks a missing Docker daemon until it is back: the work that waits for it then continues at once."""
    while True:
        docked = bus.context.desired.recipe.engine.runtime is Runtime.DOCKER
        stalled = docked and bus.serving and bus.detectors.stall.since > 0
        if waited_for(bus) or stalled:
            found = await census(bus.context)
            note_census(bus, found)
            docker_lost(bus, found)
        await bus.context.services.clock.sleep(max(bus.context.scaled(_DOCKER_AGAIN), _LEAST))


def docker_lost(bus: EventBus, found: Census) -> None:
    """A fault where no token comes, either: containers may live on without their daemon, and then nothing is lost."""
    at, away = bus.context.now(), "; ".join(found.dockerless.values())
    if away and bus.serving and bus.detectors.stall.since:
        what = f"{away}, and {bus.detectors.stall.seen(bus.detectors.life, at)}"
        bus.put(Fault(at, "docker-away", what, Recovery.RELAUNCH))


def waited_for(bus: EventBus) -> list[str]:
    """Nodes on which Docker is away."""
    return [kind.removeprefix(_DOCKER) for kind in bus.lasting if kind.startswith(_DOCKER)]


def note_census(bus: EventBus, found: Census) -> None:
    """Notes the census for display."""
    seen = bus.context.seen
    for rank, node in enumerate(bus.context.nodes):
        away = found.dockerless.get(node, "")
        bus.set_trouble(f"{_DOCKER}{node}", away and f"{away}: whether rank {rank} runs there is not known")
    for rank, status in found.ranks.items():
        seen.ranks[rank] = LiveRank(rank, status.node, status.running, status.started)
    if 0 in found.ranks and found.ranks[0].bind:
        seen.bind = found.ranks[0].bind


_HALTS_EVERY, _HALTS_LEAST = 5.0, 1.0
# Of a node that hangs: its processes are not known then.
_HALTS_WITHIN = 20.0


async def inspect_processes(bus: EventBus) -> None:
    """Costs nothing while tokens come."""
    context = bus.context
    while True:
        if bus.detectors.doubts(context.now()):
            await together(inspect_rank(bus, rank) for rank in range(len(context.nodes)))
        await context.services.clock.sleep(max(context.scaled(_HALTS_EVERY), _HALTS_LEAST))


async def inspect_rank(bus: EventBus, rank: int) -> None:
    """A process that cannot be inspected does not count as stopped."""
    context = bus.context
    fact = halts_fact(context.desired.recipe.engine.runtime, context.handle(rank))
    try:
        async with asyncio.timeout(_HALTS_WITHIN):
            found = await context.services.read(context.nodes[rank], fact)
    except (NodeError, TimeoutError):
        return
    if not isinstance(found, Unknown):
        bus.put(*bus.detectors.looked(context.label(rank), found, context.now()))
