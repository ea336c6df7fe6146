"""A deployment of the cluster as benchmark target: its engine or its gateway, and how it was started."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import urlsplit

from sparkwright.app import queries
from sparkwright.app.bench.benchmark import BenchRequest, Ready, ready, url_target
from sparkwright.app.bench.target import Bench, DeploymentInfo, Target
from sparkwright.app.gather import gather, reached
from sparkwright.app.queries import chosen
from sparkwright.app.services import Services, together
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import NodeError, NotReady, UsageError
from sparkwright.domain.facts import NodeFacts, RankStatus, Unknown
from sparkwright.domain.probed import Launched
from sparkwright.domain.recipe import Runtime
from sparkwright.domain.units import gib
from sparkwright.facts import ranks
from sparkwright.facts.memory import MEMORY
from sparkwright.facts.ranks import parse_container, parse_process

_LOOPBACK = "127.0.0.1"


@asynccontextmanager
async def deployed(
    services: Services, deployment: str, key: Secret | None
) -> AsyncIterator[tuple[Target, DeploymentInfo]]:
    """The engine itself: the gateway passes on neither its figures nor its tokenizer.

    Raises UsageError when there is no such deployment or its key is not known here, NotReady when it does not run.
    """
    ours = await _started(services, deployment)
    key = key or _key(services, ours.head)
    async with _engine(services, ours.head) as url:
        yield Target(url, ours.head.served_name, key, deployment), replace(ours, tunnelled=_away(services, ours.head))


@asynccontextmanager
async def through_gateway(
    services: Services, deployment: str, gateway: str
) -> AsyncIterator[tuple[Target, DeploymentInfo]]:
    """As users reach it, by the URL of its gateway; the engine is asked for its figures behind it.

    Raises UsageError when there is no such deployment, NotReady when it does not run.
    """
    ours = await _started(services, deployment)
    async with _engine(services, ours.head) as url, _reached(services, ours.head, gateway) as (at, tunnelled):
        key = services.secrets.get(ours.head.key_env)
        behind = None if ours.head.key_env and not key else Target(url, ours.head.served_name, key, deployment)
        target = Target(at, ours.head.served_name, None, f"{deployment} ({gateway})", behind)
        yield target, replace(ours, tunnelled=tunnelled, gateway=gateway)


@asynccontextmanager
async def _engine(services: Services, head: RankStatus) -> AsyncIterator[str]:
    """Its own address, through ssh where it is on another machine."""
    address = _LOOPBACK if head.bind in ("", "0.0.0.0", "::") else head.bind
    async with services.hosts[head.node].tunnel(address, head.port) as url:
        yield url


@asynccontextmanager
async def _reached(services: Services, head: RankStatus, gateway: str) -> AsyncIterator[tuple[str, bool]]:
    """Where the gateway is from here, and whether that is through ssh: one on another machine's loopback."""
    parts = urlsplit(gateway)
    if parts.hostname != _LOOPBACK or not _away(services, head):
        yield gateway, False
        return
    async with services.hosts[head.node].tunnel(_LOOPBACK, parts.port or 443) as url:
        yield url.replace("http:", f"{parts.scheme}:"), True


def _away(services: Services, head: RankStatus) -> bool:
    return not services.cluster.node(head.node).is_local


async def _started(services: Services, deployment: str) -> DeploymentInfo:
    ranks = await chosen(services, deployment, None)
    head = next((rank for rank in ranks if rank.rank == 0 and rank.running), None)
    if head is None or not head.port:
        states = ", ".join(f"rank {rank.rank} {rank.state} on {rank.node}" for rank in ranks)
        raise NotReady(
            f"{deployment} does not run: {states}", f"sparkwright status {deployment}; sparkwright up RECIPE"
        )
    names = tuple(dict.fromkeys(rank.node for rank in ranks))
    gathered = await gather(services.hosts, [services.cluster.node(name) for name in names], services.clock)
    return DeploymentInfo(
        head, tuple(line(facts) for facts in reached(gathered).values()), names, await _launched(services, head)
    )


def _key(services: Services, head: RankStatus) -> Secret | None:
    if not head.key_env:
        return None
    key = services.secrets.get(head.key_env)
    if key is None:
        raise UsageError(
            f"{head.deployment} wants its key, and ${head.key_env} is not set here",
            f"export {head.key_env}=..., or name a file that holds it: --key-file FILE",
        )
    return key


async def _launched(services: Services, head: RankStatus) -> Launched:
    """() where the node does not report it: such a run is not valid."""
    docked = head.runtime == Runtime.DOCKER
    command = (ranks.of_container if docked else ranks.of_process)(head.handle)
    found = (parse_container if docked else parse_process)(await services.hosts[head.node].run(command))
    return Launched(()) if isinstance(found, Unknown) else found


def line(facts: NodeFacts) -> str:
    """`spark-1: NVIDIA GB10, driver 580.95.05, 119.7 GiB, kernel 6.14.0`; what is not known is left out."""
    parts = []
    if not isinstance(facts.gpus, Unknown) and facts.gpus:
        parts += [facts.gpus[0].name, f"driver {facts.gpus[0].driver}"]
    if not isinstance(facts.memory, Unknown):
        parts.append(f"{gib(facts.memory.total)} memory")
    if not isinstance(facts.kernel, Unknown):
        parts.append(f"kernel {facts.kernel.release}")
    return f"{facts.node}: {', '.join(parts) or 'nothing known'}"


async def memory(services: Services, names: Sequence[str]) -> dict[str, int]:
    """Bytes available of each node that answers."""

    async def one(name: str) -> int | None:
        try:
            found = MEMORY.read(await services.hosts[name].run(MEMORY.command))
        except NodeError:
            return None
        return None if isinstance(found, Unknown) else found.available

    seen = await together(one(name) for name in names)
    return {name: bytes_ for name, bytes_ in zip(names, seen, strict=True) if bytes_ is not None}


@dataclass(frozen=True, slots=True)
class Gateway:
    """A gateway of the cluster. url: as it is measured. keys: to be tried, in this order."""

    deployment: str
    url: str
    keys: Sequence[Secret | None]


@asynccontextmanager
async def deployment(
    bench: Bench, services: Services, name: str, key: Secret | None, request: BenchRequest
) -> AsyncIterator[Ready]:
    """With what it was started with, and its nodes' memory while it is measured."""
    async with deployed(services, name, key) as (target, ours):
        watched = replace(request, memory=partial(memory, services, ours.names))
        yield await ready(bench, target, ours, watched)


@asynccontextmanager
async def gateway(bench: Bench, services: Services, gateway: Gateway, request: BenchRequest) -> AsyncIterator[Ready]:
    """As `deployment`, through its gateway: TLS, keys and proxy are measured with it."""
    async with through_gateway(services, gateway.deployment, gateway.url) as (target, ours):
        watched = replace(request, memory=partial(memory, services, ours.names))
        async with url_target(bench, target, gateway.keys, watched, ours) as found:
            yield found


async def gateway_url(services: Services, name: str) -> str:
    """The URL of a deployment's gateway. Raises UsageError when it has none."""
    found, trouble = await queries.status(services, probe=False)
    urls = [one.supervised.endpoint for one in found if one.name == name and one.supervised]
    if not any(urls):
        said = "; ".join(trouble)
        raise UsageError(
            f"{name} has no gateway{f' that can be seen: {said}' if said else ''}",
            "`up` without --no-supervise starts one; without --gateway the engine itself is measured",
        )
    return urls[0]


async def behind(services: Services, url: str, proven: bool) -> str:
    """The deployment that this is the gateway of; '' for none of this cluster: its keys are shown to no other.

    proven: its certificate comes from the cluster, so another name of the same machine will do.
    """
    found, _ = await queries.status(services, probe=False)
    gateways = {
        one.name: _place(one.supervised.endpoint) for one in found if one.supervised and one.supervised.endpoint
    }
    same = [name for name, place in gateways.items() if place == _place(url)]
    near = [name for name, place in gateways.items() if proven and place[::2] == _place(url)[::2]]
    (only,) = same[:1] or (near if len(near) == 1 else [""])
    return only


def _place(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)
