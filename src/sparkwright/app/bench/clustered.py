"""What of the cluster is measured: a deployment by its name, or a gateway by its address."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from urllib.parse import urlsplit

from sparkwright.app import queries
from sparkwright.app.bench import asked
from sparkwright.app.bench.benchmark import Ready, Wish, ready
from sparkwright.app.bench.ours import deployed, memory, through_gateway
from sparkwright.app.bench.tools import Bench
from sparkwright.app.world import World
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import UsageError


@dataclass(frozen=True, slots=True)
class Gateway:
    """A gateway of the cluster. url: as it is measured. keys: to be tried, in this order."""

    deployment: str
    url: str
    keys: Sequence[Secret | None]


@asynccontextmanager
async def deployment(bench: Bench, world: World, name: str, key: Secret | None, wish: Wish) -> AsyncIterator[Ready]:
    """With what it was started with, and its nodes' memory while it is measured."""
    async with deployed(world, name, key) as (target, ours):
        watched = replace(wish, memory=partial(memory, world, ours.names))
        yield await ready(bench, target, ours, watched)


@asynccontextmanager
async def gateway(bench: Bench, world: World, gateway: Gateway, wish: Wish) -> AsyncIterator[Ready]:
    """As `deployment`, through its gateway: TLS, keys and proxy are measured with it."""
    async with through_gateway(world, gateway.deployment, gateway.url) as (target, ours):
        watched = replace(wish, memory=partial(memory, world, ours.names))
        async with asked.url(bench, target, gateway.keys, watched, ours) as found:
            yield found


async def gateway_url(world: World, name: str) -> str:
    """The URL of a deployment's gateway. Raises UsageError when it has none."""
    found, trouble = await queries.status(world, probe=False)
    urls = [one.supervised.endpoint for one in found if one.name == name and one.supervised]
    if not any(urls):
        said = "; ".join(trouble)
        raise UsageError(
            f"{name} has no gateway{f' that can be seen: {said}' if said else ''}",
            "up makes one unless --no-supervise is said; without --gateway the engine itself is measured",
        )
    return urls[0]


async def behind(world: World, url: str, proven: bool) -> str:
    """The deployment that this is the gateway of; '' for none of this cluster: its keys are shown to no other.

    proven: its certificate comes from the cluster, so another name of the same machine will do.
    """
    found, _ = await queries.status(world, probe=False)
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
