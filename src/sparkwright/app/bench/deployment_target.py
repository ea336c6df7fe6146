"""A deployment of the cluster as benchmark target: its engine or its gateway, and how it was started."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from urllib.parse import urlsplit

from sparkwright.app import queries
from sparkwright.app.bench.benchmark import prepare_run, url_target
from sparkwright.app.bench.target import Bench, BenchRequest, BenchTarget, DeploymentInfo, PreparedBench
from sparkwright.app.diagnose.incidents import remembered
from sparkwright.app.gather import gather, reached
from sparkwright.app.queries import chosen
from sparkwright.app.ranks import listing
from sparkwright.app.services import Services, by_node
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import NodeError, NotReady, UsageError
from sparkwright.domain.facts import NodeFacts, RankStatus, Unknown
from sparkwright.domain.probed import LaunchCommand
from sparkwright.domain.recipe import Runtime
from sparkwright.domain.units import gib
from sparkwright.domain.values import replace
from sparkwright.facts import ranks
from sparkwright.facts.memory import MEMORY
from sparkwright.facts.ranks import parse_container, parse_process

_LOOPBACK = "127.0.0.1"


def _engine(services: Services, head: RankStatus) -> AbstractAsyncContextManager[str]:
    """Its own address, through ssh where it is on another machine."""
    address = _LOOPBACK if head.bind in ("", "0.0.0.0", "::") else head.bind
    return services.hosts[head.node].tunnel(address, head.port)


@asynccontextmanager
async def _reached(services: Services, head: RankStatus, gateway: str) -> AsyncIterator[tuple[str, bool]]:
    """Yields the gateway's URL as seen from here, and True if it goes through ssh: a gateway on another machine's
    loopback."""
    parts, node = urlsplit(gateway), services.cluster.supervisor_node if head.replica_of else head.node
    if parts.hostname != _LOOPBACK or services.cluster.node(node).is_local:
        yield gateway, False
        return
    async with services.hosts[node].tunnel(_LOOPBACK, parts.port or 443) as url:
        yield url.replace("http:", f"{parts.scheme}:"), True


async def _started(services: Services, deployment: str) -> DeploymentInfo:
    ranks = await chosen(services, deployment, None)
    head = next((rank for rank in ranks if rank.rank == 0 and rank.running), None)
    if head is None or not head.port:
        states = ", ".join(f"rank {rank.rank} {rank.state} on {rank.node}" for rank in ranks)
        hint = f"sparkwright status {deployment}; sparkwright up RECIPE"
        raise NotReady(f"{deployment} does not run: {states}", hint)
    names = tuple(dict.fromkeys(rank.node for rank in ranks))
    gathered = await gather(services.hosts, [services.cluster.node(name) for name in names], services.clock)
    lines = tuple(node_line(facts) for facts in reached(gathered).values())
    launched = await _launched(services, head)
    return DeploymentInfo(replace(head, deployment=deployment), lines, names, launched)


async def has_replicas(services: Services, name: str) -> bool:
    """True for the name of a model with replicas: only the gateway reaches all of them."""
    found = await listing(services, services.cluster.names)
    return any(rank.replica_of == name for rank in found.ranks)


def _key(services: Services, head: RankStatus) -> Secret | None:
    if not head.key_env:
        return None
    key = services.secrets.get(head.key_env)
    if key is None:
        hint = f"export {head.key_env}=..., or name a file that holds it: --key-file FILE"
        raise UsageError(f"{head.deployment} wants its key, and ${head.key_env} is not set here", hint)
    return key


async def _launched(services: Services, head: RankStatus) -> LaunchCommand:
    """Asks the node for the rank's command; it is empty if the node does not report it, and such a run is not valid."""
    docked = head.runtime == Runtime.DOCKER
    command = (ranks.of_container if docked else ranks.of_process)(head.handle)
    found = (parse_container if docked else parse_process)(await services.run(head.node, command))
    return LaunchCommand(()) if isinstance(found, Unknown) else found


def node_line(facts: NodeFacts) -> str:
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
            found = await services.read(name, MEMORY)
        except NodeError:
            return None
        return None if isinstance(found, Unknown) else found.available

    return {name: size for name, size in (await by_node(names, one)).items() if size is not None}


async def incidents(services: Services, name: str) -> dict[float, str]:
    """Incidents by the time each was opened; {} if no node can be asked."""
    found = await remembered(services, name)
    return {one.opened_at: f"incident {one.number} on {node}: {one.kind}: {one.what}" for node, one in found.incidents}


def _watched(services: Services, request: BenchRequest, ours: DeploymentInfo) -> BenchRequest:
    seen = partial(incidents, services, ours.head.deployment)
    return replace(request, memory=partial(memory, services, ours.names), incidents=seen)


@asynccontextmanager
async def deployment(
    bench: Bench, services: Services, name: str, request: BenchRequest
) -> AsyncIterator[PreparedBench]:
    """Yields a deployment ready to be measured, with its launch settings and its nodes' memory.

    The engine itself: the gateway passes on neither its figures nor its tokenizer. Raises UsageError when there is no
    such deployment or its key is not known here, NotReady when it does not run.
    """
    ours = await _started(services, name)
    head = ours.head
    key = request.own_key or _key(services, head)
    watched = _watched(services, request, ours)
    async with _engine(services, head) as url:
        target = BenchTarget(url, head.served_name, key, name)
        tunnelled = not services.cluster.node(head.node).is_local
        yield await prepare_run(bench, target, replace(ours, tunnelled=tunnelled), watched)


@asynccontextmanager
async def gateway(bench: Bench, services: Services, name: str, request: BenchRequest) -> AsyncIterator[PreparedBench]:
    """Yields a deployment to be measured through its gateway, with TLS, keys and proxy.

    The engine is asked for its figures behind it. Raises as `deployment`, but for its key, and UsageError when it has
    no gateway.
    """
    public = request.gateway or await gateway_url(services, name)
    ours = await _started(services, name)
    head, key = ours.head, services.secrets.get(ours.head.key_env)
    watched = _watched(services, request, ours)
    async with _engine(services, head) as url, _reached(services, head, public) as (at, tunnelled):
        engine = BenchTarget(url, head.served_name, key, name)
        # Without its key it tells nothing, and one engine's figures are not those of all replicas
        behind = None if (head.key_env and not key) or head.replica_of else engine
        target = BenchTarget(at, head.served_name, None, f"{name} ({public})", behind)
        info = replace(ours, tunnelled=tunnelled, gateway=public)
        async with url_target(bench, target, watched, info) as found:
            yield found


async def gateway_url(services: Services, name: str) -> str:
    """The URL of a deployment's gateway. Raises UsageError when it has none."""
    found, trouble = await queries.status(services, probe=False)
    urls = [one.supervised.endpoint for one in found if name in (one.name, one.replica_of) and one.supervised]
    if not any(urls):
        said = "; ".join(trouble)
        hint = "`up` without --no-supervise starts one; without --gateway the engine itself is measured"
        raise UsageError(f"{name} has no gateway{f' that can be seen: {said}' if said else ''}", hint)
    return urls[0]


async def behind(services: Services, url: str, proven: bool) -> str:
    """The deployment that this is the gateway of; '' for none of this cluster: its keys are shown to no other.

    proven: its certificate comes from the cluster, so another name of the same machine will do.
    """
    found, _ = await queries.status(services, probe=False)
    named = {one.replica_of or one.name: one.supervised for one in found}
    urls = {name: one.endpoint for name, one in named.items() if one and one.endpoint}
    gateways, wanted = {name: _place(endpoint) for name, endpoint in urls.items()}, _place(url)
    same = [name for name, place in gateways.items() if place == wanted]
    near = [name for name, place in gateways.items() if proven and place[::2] == wanted[::2]]
    (only,) = same[:1] or (near if len(near) == 1 else [""])
    return only


def _place(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)
