"""What of the cluster is measured: a deployment by its name, or a front door by its address."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from urllib.parse import urlsplit

from sparkwright.app import queries
from sparkwright.app.bench.benchmark import Ready, Wish, ready
from sparkwright.app.bench.ours import deployed, memory
from sparkwright.app.bench.tools import Bench
from sparkwright.app.world import World
from sparkwright.domain.command import Secret


@asynccontextmanager
async def deployment(bench: Bench, world: World, name: str, key: Secret | None, wish: Wish) -> AsyncIterator[Ready]:
    """With what it was started with, and its nodes' memory while it is measured."""
    async with deployed(world, name, key) as (target, ours):
        watched = replace(wish, memory=partial(memory, world, ours.names))
        yield await ready(bench, target, ours, watched)


async def front_door(world: World, url: str) -> bool:
    """Whether that is the address of a deployment of this cluster: only to those are its keys shown."""
    found, _ = await queries.status(world, probe=False)
    return any(_place(one.endpoint) == _place(url) for one in found if one.endpoint)


def _place(url: str) -> tuple[str, int | None]:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    return parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)
