"""The disks of `serving.disk_cache` before a start: kept within their size, and a start without those that are away."""

from sparkwright.app.plan.planning import make_plan
from sparkwright.app.serve.prepare import Outcome
from sparkwright.app.services import LaunchRequest, Services, by_node
from sparkwright.domain.errors import NodeError
from sparkwright.domain.recipe import Runtime
from sparkwright.domain.values import replace
from sparkwright.engines.disk_cache import disk_cache_folder
from sparkwright.remote.disk_cache import IS_AWAY, prepare_disk_cache

STARTED_WITHOUT = "started without disk cache"
"""A figure of the last start: 1 where the engine was not given the tier that its recipe names."""


async def prepare_disks(services: Services, request: LaunchRequest, outcome: Outcome) -> None:
    """Make the folder on each node and remove the oldest of what is too much; no rank may use it meanwhile.

    A disk that is away stops no start: the ranks get no such tier then, on any node, and outcome.without names why. The
    labels stay, so that these ranks are the deployment's own.
    """
    serving, outcome.without = outcome.plan.recipe.serving, ""
    if not serving.disk_cache:
        return
    folder, process = disk_cache_folder(outcome.plan.recipe), outcome.plan.recipe.engine.runtime is Runtime.PROCESS
    command = prepare_disk_cache(folder, serving.disk_cache_size, written_by_us=process)

    async def why_away(node: str) -> str:
        try:
            done = await services.run(node, command)
        except NodeError as error:
            return error.message
        return f"{node}: {folder}: {done.stdout.strip()}" if done.exit_code == IS_AWAY else ""

    found = await by_node(outcome.plan.placement.nodes, why_away)
    outcome.without = "; ".join(filter(None, found.values()))
    if not outcome.without:
        return
    services.notice(f"{outcome.plan.deployment} starts without its KV cache on disk: {outcome.without}", warning=True)
    recipe = replace(outcome.plan.recipe, serving=replace(serving, disk_cache="", disk_cache_size=0))
    plain = make_plan(services, replace(request, recipe=recipe), outcome.cluster_state, seek=False).specs
    specs = (
        replace(spec, argv=one.argv, env=one.env, mounts=one.mounts, files=one.files)
        for spec, one in zip(outcome.plan.specs, plain, strict=True)
    )
    outcome.plan = replace(outcome.plan, specs=tuple(specs))
