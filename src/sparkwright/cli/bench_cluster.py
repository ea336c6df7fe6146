"""`bench` of what runs on the cluster. Loaded only for that: a plain URL needs nothing of it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sparkwright.app.bench import deployment_target
from sparkwright.app.bench.target import Bench, BenchRequest, PreparedBench
from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.cli import options as shared
from sparkwright.cli.console import Quiet
from sparkwright.domain.errors import RecipeError
from sparkwright.wiring import gateway_keys, services, trusting, vouched


@asynccontextmanager
async def deployment(
    made: Bench, where: ClusterOptions, name: str, request: BenchRequest
) -> AsyncIterator[PreparedBench]:
    """Yields a deployment ready to be measured, its engine or its gateway, whose certificate the bench then trusts.

    Raises RecipeError without a cluster file.
    """
    try:
        cluster = shared.open_cluster(where)
    except RecipeError as error:
        why = f"{name}: no URL, and a deployment needs a cluster: {error.message}"
        raise RecipeError(why, error.hint) from None
    async with services(cluster, where, Quiet()) as there:
        if request.gateway is None and not await deployment_target.has_replicas(there, name):
            async with deployment_target.deployment(made, there, name, request) as ready:
                yield ready
            return
        able, keyed = trusting(made, cluster.name), request.with_keys_of(gateway_keys(cluster.name))
        async with deployment_target.gateway(able, there, name, keyed) as ready:
            yield ready


async def behind(url: str, where: ClusterOptions, proven: bool) -> str:
    """The deployment that this is the gateway of; '' when it is none of ours.

    proven: only if its certificate proves it, for which no node is asked.
    """
    try:
        cluster = shared.open_cluster(where)
    except RecipeError:
        return ""
    vouches = await vouched(url, cluster.name)
    if proven and not vouches:
        return ""
    async with services(cluster, where, Quiet()) as there:
        return await deployment_target.behind(there, url, vouches)
