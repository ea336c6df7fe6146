"""`bench` of what runs on the cluster. Loaded only for that: a plain URL needs nothing of it."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from sparkwright.app.bench import clustered
from sparkwright.app.bench.benchmark import Ready, Wish
from sparkwright.app.bench.tools import Bench
from sparkwright.app.world import World
from sparkwright.cli.console import Quiet
from sparkwright.domain.cluster import Cluster
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import RecipeError
from sparkwright.wiring import Where, cluster_of, world
from sparkwright.wiring_bench import door_keys


@asynccontextmanager
async def deployment(made: Bench, where: Where, name: str, key: Secret | None, wish: Wish) -> AsyncIterator[Ready]:
    async with (
        _world(_cluster(where, name), where) as there,
        clustered.deployment(made, there, name, key, wish) as ready,
    ):
        yield ready


async def keys_of_door(url: str, where: Where) -> tuple[Secret, ...]:
    """Of the cluster whose front door this is; () when it is none of ours."""
    try:
        cluster = cluster_of(where)
    except RecipeError:
        return ()
    kept = door_keys(cluster.name)
    async with _world(cluster, where) as there:
        return kept if kept and await clustered.front_door(there, url) else ()


def _cluster(where: Where, name: str) -> Cluster:
    try:
        return cluster_of(where)
    except RecipeError as error:
        raise RecipeError(f"{name}: no URL, and a deployment needs a cluster: {error.message}", error.cure) from None


def _world(cluster: Cluster, where: Where) -> AbstractAsyncContextManager[World]:
    return world(cluster, where, Quiet())
