"""`bench` of what runs on the cluster. Loaded only for that: a plain URL needs nothing of it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from sparkwright.app.bench import deployment_target
from sparkwright.app.bench.target import Bench, BenchRequest, PreparedBench
from sparkwright.app.cluster_options import ClusterOptions
from sparkwright.cli import options as shared
from sparkwright.cli.console import Quiet
from sparkwright.domain.command import Secret
from sparkwright.domain.errors import RecipeError
from sparkwright.domain.values import dataclass
from sparkwright.wiring import gateway_keys, services, trusting, vouched


@dataclass(frozen=True, slots=True)
class NamedDeployment:
    """The user's words for a deployment. given: a key. keys: others to try.

    gateway: URL of its gateway, to go through that, '' where it is to be found out; None goes to the engine, or to the
    gateway of a model with replicas.
    """

    name: str
    given: Secret | None
    keys: Sequence[Secret | None]
    gateway: str | None

    def to_try(self, cluster: str) -> tuple[Secret | None, ...]:
        """One for somebody else's service comes last."""
        first, *general = self.keys
        found = (self.given,) if self.given else (first, *gateway_keys(cluster), *general)
        return tuple(filter(None, found)) or (None,)


@asynccontextmanager
async def deployment(
    made: Bench, where: ClusterOptions, named: NamedDeployment, request: BenchRequest
) -> AsyncIterator[tuple[Bench, PreparedBench]]:
    try:
        cluster = shared.open_cluster(where)
    except RecipeError as error:
        why = f"{named.name}: no URL, and a deployment needs a cluster: {error.message}"
        raise RecipeError(why, error.hint) from None
    async with services(cluster, where, Quiet()) as there:
        if named.gateway is None and not await deployment_target.has_replicas(there, named.name):
            async with deployment_target.deployment(made, there, named.name, named.given, request) as ready:
                yield made, ready
            return
        url = named.gateway or await deployment_target.gateway_url(there, named.name)
        gateway = deployment_target.GatewayTarget(named.name, url, named.to_try(cluster.name))
        able = trusting(made, cluster.name)
        async with deployment_target.gateway(able, there, gateway, request) as ready:
            yield able, ready


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
