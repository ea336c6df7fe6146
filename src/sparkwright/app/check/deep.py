"""`check --deep`: what facts alone do not show. RDMA bandwidth of each rail, and clocks under load.

All that is started ends within seconds, and is ended when the caller goes away.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import combinations

from sparkwright.app.services import Services, finished, together
from sparkwright.checks.containers import engine_of
from sparkwright.checks.deep import CHECKS
from sparkwright.checks.rails import Rail, link_local_index, network_of, rails_of
from sparkwright.checks.reading import running
from sparkwright.domain.check import Context
from sparkwright.domain.cluster import Node
from sparkwright.domain.errors import NodeError
from sparkwright.domain.fabric_facts import Bandwidth, Clocks, DeepMeasurements, Skipped
from sparkwright.domain.facts import Gid, NodeFacts, Unknown
from sparkwright.domain.finding import Finding
from sparkwright.domain.progress import StepDone, StepStarted
from sparkwright.domain.unknown import known_or_none
from sparkwright.domain.values import dataclass
from sparkwright.facts import deep_check

_PORT = 18515
_RDMA, _CLOCKS = "RDMA bandwidth", "clocks under load"


@dataclass(frozen=True, slots=True)
class _Lane:
    """One rail from end to end. way: the addresses by which client and server find each other."""

    source: Rail
    target: Rail
    gids: tuple[int, int]
    way: tuple[str, str]


async def run_deep_checks(
    services: Services, nodes: Sequence[Node], facts: Mapping[str, NodeFacts]
) -> tuple[Finding, ...]:
    """Findings of the measurements (info if they are good), and the ones skipped, with the reason.

    On two nodes it takes some 25 s.
    """
    if services.cluster.simulated:
        measured = DeepMeasurements(skipped=(Skipped(f"{_RDMA}, {_CLOCKS}", services.cluster.name, "simulated nodes"),))
    else:
        asked = [facts[node.name] for node in nodes if node.name in facts]
        # Rail after rail: two at a time would measure each other
        moved, skipped = list[Bandwidth](), list[Skipped]()
        for one, other in combinations(asked, 2):
            why = _unfit(one, other)
            lanes = () if why else tuple(_lanes(one, other))
            if not lanes:
                why = why or "no ACTIVE rails of the two share a subnet and have a RoCE v2 GID in it"
                skipped.append(Skipped(_RDMA, f"{one.node}, {other.node}", why))
            for number, lane in enumerate(lanes):
                over = f"{lane.source.node} to {lane.target.node} over {lane.source.port.device}"
                async with _step(services, _RDMA, over, deep_check.SECONDS):
                    moved.append(await _sent(services, lane, _PORT + number))
        async with _step(services, _CLOCKS, ", ".join(one.node for one in asked), deep_check.CLOCK_SECONDS):
            clocks = await together(_clocks(services, one) for one in asked)
        skipped += [one for one in clocks if isinstance(one, Skipped)]
        timed = tuple(one for one in clocks if isinstance(one, Clocks))
        measured = DeepMeasurements(tuple(moved), timed, tuple(skipped))
    context = Context(services.cluster, facts, measured=measured)
    return tuple(finding for check in CHECKS for finding in check.findings(context))


def _unfit(*pair: NodeFacts) -> str:
    """The reason why nothing can be measured between the two nodes; '' if it can."""
    for facts in pair:
        nic = known_or_none(facts.nic)
        if nic is None or "ib_write_bw" not in nic.tools:
            return f"{facts.node} has no ib_write_bw"
        if not rails_of(facts):
            return f"{facts.node} has no ACTIVE RDMA port"
        if running(facts) is None or running(facts):
            return f"a rank runs there ({facts.node}), or that is not known: it would be disturbed"
    return ""


def _lanes(one: NodeFacts, other: NodeFacts) -> Iterator[_Lane]:
    """Rails that share a subnet; and the other ports of their cages without addresses, by link-local GIDs."""
    far = rails_of(other)
    for rail in rails_of(one):
        met = next((peer for peer in far if set(peer.networks) & set(rail.networks)), None)
        ends = (_end(rail, met), _end(met, rail)) if met else (None, None)
        if met and ends[0] and ends[1]:
            way = ends[0].ipv4, ends[1].ipv4
            yield _Lane(rail, met, (ends[0].index, ends[1].index), way)
            twin, mate = rail.pair_mate(rails_of(one)), met.pair_mate(far)
            if twin and mate and not twin.networks and not mate.networks:
                first, second = link_local_index(twin.port), link_local_index(mate.port)
                if first is not None and second is not None:
                    yield _Lane(twin, mate, (first, second), way)


def _end(rail: Rail, peer: Rail) -> Gid | None:
    """The RoCE v2 GID of its address in a network that both have."""
    own = [address.ipv4 for address in rail.link.addresses if network_of(address) in peer.networks]
    return next((gid for gid in rail.port.gids if gid.version.endswith("v2") and gid.ipv4 in own), None)


async def _sent(services: Services, lane: _Lane, port: int) -> Bandwidth:
    """The server ends with the client, and is ended when the client never came to it."""
    source, target = lane.source, lane.target
    serve = deep_check.server(target.port.device, lane.gids[1], port, lane.way[1])
    send = deep_check.client(source.port.device, lane.gids[0], port, lane.way)
    server = asyncio.ensure_future(services.hosts[target.node].run(serve))
    try:
        gbit = deep_check.bandwidth(await services.hosts[source.node].run(send))
    except NodeError as error:
        gbit = Unknown(error.message, "the connection to a node was lost")
    finally:
        server.cancel()
        await asyncio.gather(server, return_exceptions=True)
    return Bandwidth(source.node, target.node, source.port.device, target.port.device, gbit)


@asynccontextmanager
async def _step(services: Services, name: str, detail: str, usual: float) -> AsyncIterator[None]:
    began = services.clock.monotonic()
    services.sink.report(StepStarted(name, detail, usual))
    yield
    services.sink.report(StepDone(name, services.clock.monotonic() - began, detail))


async def _clocks(services: Services, facts: NodeFacts) -> Clocks | Skipped:
    """Clocks under load. A running rank of ours is only watched; otherwise ten seconds of matrix products run and leave
    nothing."""
    ranks = running(facts)
    if not known_or_none(facts.gpus) or ranks is None:
        return Skipped(_CLOCKS, facts.node, "no GPU" if ranks is not None else "what runs there is not known")
    host, name = services.hosts[facts.node], f"sparkwright-clock-{services.nonce}"
    image = _image(facts)
    try:
        return deep_check.clocks(await host.run(deep_check.sample_clocks(image, name, busy=bool(ranks))), facts.node)
    except NodeError as error:
        return Skipped(_CLOCKS, facts.node, error.message)
    finally:
        if image and not ranks:
            with suppress(NodeError):
                await finished(host.run(deep_check.end_clocks(name)))


def _image(facts: NodeFacts) -> str:
    """An image on the node that should hold torch: one of vLLM or SGLang."""
    docker = known_or_none(facts.containers)
    tags = [tag for image in (docker.images if docker else ()) for tag in image.tags]
    return next((tag for tag in tags if engine_of(tag) in ("vLLM", "SGLang")), "")
