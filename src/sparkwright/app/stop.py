"""`down`: no container, process, file or lease of a deployment stays, also after a half-failed `up`."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from sparkwright.app import ranks as rank_work
from sparkwright.app.lease import holding
from sparkwright.app.survey import ranks_fact
from sparkwright.app.world import Survey, World
from sparkwright.commands.host import script
from sparkwright.domain.errors import UsageError
from sparkwright.domain.facts import RankStatus, Unknown
from sparkwright.domain.plan import Plan
from sparkwright.engines.catalog import ENGINES
from sparkwright.ports import Notice, StepDone, StepStarted

_GRACE = 30.0
_FORGET = r"""
d="$(x "$1")/deployments/$2"; rm -rf "$d"; rmdir "${d%/*}" 2>/dev/null; [ ! -e "$d" ]
"""


@dataclass(frozen=True, slots=True)
class Removed:
    deployment: str
    ranks: tuple[RankStatus, ...]


async def down(world: World, deployment: str, seize: bool = False) -> Removed:
    """Stops and removes. Raises UsageError when other deployments exist but not this one; nothing at all is fine."""
    nodes = world.cluster.names
    everything = await all_ranks(world, nodes)
    mine = tuple(r for r in everything if r.deployment == deployment)
    others = sorted({r.deployment for r in everything})
    if not mine and others:
        raise UsageError(f"no deployment {deployment} on {', '.join(nodes)}", f"running or left: {', '.join(others)}")
    async with holding(world, nodes, f"down {deployment}", seize):
        began = world.clock.monotonic()
        world.sink.tell(StepStarted("stop", f"{len(mine)} rank(s) of {deployment}"))
        await rank_work.stop_all(world, mine, _grace(mine), remove=True)
        await forget(world, nodes, deployment)
        world.sink.tell(StepDone("stop", world.clock.monotonic() - began))
    return Removed(deployment, mine)


async def all_ranks(world: World, nodes: Sequence[str]) -> tuple[RankStatus, ...]:
    """Our ranks on these nodes, in one round trip a node. Raises Unreachable."""

    async def one(name: str) -> tuple[RankStatus, ...]:
        fact = ranks_fact(world.cluster.node(name))
        found = fact.read(await world.hosts[name].run(fact.command))
        if isinstance(found, Unknown):
            world.sink.tell(Notice(f"{name}: {found.why}", warning=True))
            return ()
        return found

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(name)) for name in nodes]
    return tuple(r for task in tasks for r in task.result())


async def deployment_ranks(world: World, nodes: Sequence[str], deployment: str) -> tuple[RankStatus, ...]:
    return tuple(r for r in await all_ranks(world, nodes) if r.deployment == deployment)


def old_ranks(plan: Plan, survey: Survey) -> tuple[RankStatus, ...]:
    """Ranks of the same deployment that the survey saw, running or not."""
    seen = [f.ranks for f in survey.facts.values() if not isinstance(f.ranks, Unknown)]
    return tuple(r for ranks in seen for r in ranks if r.deployment == plan.deployment)


async def forget(world: World, nodes: Sequence[str], deployment: str) -> None:
    """Removes the deployment's folder on every node: pid files, secrets, desired state."""

    async def one(name: str) -> None:
        state = world.cluster.node(name).paths.state
        await world.hosts[name].run(script(_FORGET, state, deployment, changes=f"forget {deployment}"))

    async with asyncio.TaskGroup() as group:
        for name in nodes:
            group.create_task(one(name))


def _grace(ranks: Sequence[RankStatus]) -> float:
    names = {r.engine.split(" ")[0] for r in ranks}
    return max((ENGINES[n].stop.grace for n in names if n in ENGINES), default=_GRACE)
