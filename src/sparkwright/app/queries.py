"""`status` and `logs`: the deployments as the nodes themselves tell them."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing

from sparkwright.app.survey import ranks_fact
from sparkwright.app.world import World
from sparkwright.commands import docker, process
from sparkwright.domain.command import Command
from sparkwright.domain.deployment import Answer, Deployment, DeploymentState
from sparkwright.domain.errors import NodeError, NotReady, SparkwrightError, UsageError
from sparkwright.domain.facts import RankStatus, Unknown
from sparkwright.domain.recipe import Runtime

PROBE = "Reply with one word."
PROBE_TOKENS = 1
PROBE_SECONDS = 5.0
Listing = tuple[tuple[RankStatus, ...], tuple[str, ...]]


async def status(world: World, probe: bool = True) -> tuple[tuple[Deployment, ...], tuple[str, ...]]:
    """Deployments of the cluster, and sentences about nodes that could not be asked. Health is a real token."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_listing(world, name)) for name in world.cluster.names]
    ranks = [r for t in tasks for r in t.result()[0]]
    trouble = tuple(s for t in tasks for s in t.result()[1])
    names = sorted({r.deployment for r in ranks})
    async with asyncio.TaskGroup() as group:
        jobs = [
            group.create_task(_deployment(world, [r for r in ranks if r.deployment == name], probe)) for name in names
        ]
    return tuple(j.result() for j in jobs), trouble


async def _listing(world: World, name: str) -> Listing:
    fact = ranks_fact(world.cluster.node(name))
    try:
        found = fact.read(await world.hosts[name].run(fact.command))
    except NodeError as error:
        return (), (error.message,)
    return ((), (f"{name}: {found.why} {found.raw}",)) if isinstance(found, Unknown) else (found, ())


async def _deployment(world: World, ranks: Sequence[RankStatus], probe: bool) -> Deployment:
    ordered = tuple(sorted(ranks, key=lambda r: r.rank))
    first = ordered[0]
    problems = _problems(ordered)
    answer, said = (None, "")
    head = next((r for r in ordered if r.rank == 0 and r.running), None)
    if probe and head and not problems:
        answer, said = await _probe(world, head)
    state = _state(ordered, problems, answer, probe)
    return Deployment(
        name=first.deployment,
        state=state,
        ranks=ordered,
        endpoint=_endpoint(first),
        answer=answer,
        problems=(*problems, *((said,) if said else ())),
        simulated=any(r.simulated for r in ordered),
    )


def _problems(ranks: Sequence[RankStatus]) -> tuple[str, ...]:
    have = {r.rank for r in ranks}
    missing = [f"rank {k} is on no node that answered" for k in range(ranks[0].world) if k not in have]
    ended = [
        f"rank {r.rank} on {r.node} {r.state}" + ("" if r.exit_code is None else f" with code {r.exit_code}")
        for r in ranks
        if not r.running
    ]
    return (*missing, *ended)


def _state(ranks: Sequence[RankStatus], problems: Sequence[str], answer: Answer | None, probe: bool) -> DeploymentState:
    if answer:
        return DeploymentState.READY
    if not any(r.running for r in ranks):
        failed = any(r.exit_code for r in ranks)
        return DeploymentState.FAILED if failed else DeploymentState.STOPPED
    if problems:
        return DeploymentState.DEGRADED
    return DeploymentState.LOADING if probe else DeploymentState.STARTING


async def _probe(world: World, head: RankStatus) -> tuple[Answer | None, str]:
    """One real token, or a sentence about what came instead: still loading, busy, or dead."""
    address = "127.0.0.1" if head.bind in ("", "0.0.0.0") else head.bind
    key = world.secrets.get(head.key_env) if head.key_env else None
    try:
        async with asyncio.timeout(PROBE_SECONDS), world.hosts[head.node].tunnel(address, head.port) as url:
            return await world.endpoint.ask(url, head.served_name, PROBE, PROBE_TOKENS, key), ""
    except TimeoutError:
        return None, f"no token within {PROBE_SECONDS:.0f} s: busy with a long prefill, or stuck"
    except (NotReady, SparkwrightError) as error:
        return None, error.message


def _endpoint(rank: RankStatus) -> str:
    return f"http://{rank.bind}:{rank.port}/v1" if rank.port else ""


async def logs(
    world: World, deployment: str, rank: int | None, tail: int, follow: bool
) -> AsyncIterator[tuple[RankStatus, str]]:
    """(rank, line) of one or all ranks; with `follow`, as they come. Raises UsageError for an unknown deployment."""
    chosen = await _chosen(world, deployment, rank)
    queue: asyncio.Queue[tuple[RankStatus, str] | None] = asyncio.Queue(1000)

    async def pump(status: RankStatus) -> None:
        lines = world.hosts[status.node].stream(_log_command(status, tail, follow))
        async with aclosing(lines) as stream:  # type: ignore[type-var]
            async for line in stream:
                if not line.startswith("\x1e"):
                    await queue.put((status, line))
        await queue.put(None)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(pump(status)) for status in chosen]
        for _ in tasks:
            while (item := await queue.get()) is not None:
                yield item


async def _chosen(world: World, deployment: str, rank: int | None) -> list[RankStatus]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_listing(world, name)) for name in world.cluster.names]
    ranks = [r for t in tasks for r in t.result()[0]]
    mine = sorted((r for r in ranks if r.deployment == deployment), key=lambda r: r.rank)
    if not mine:
        names = ", ".join(sorted({r.deployment for r in ranks})) or "none"
        raise UsageError(f"no deployment {deployment} on {', '.join(world.cluster.names)}", f"there are: {names}")
    chosen = [r for r in mine if rank is None or r.rank == rank]
    if not chosen:
        raise UsageError(f"{deployment} has no rank {rank}", f"its ranks: {', '.join(str(r.rank) for r in mine)}")
    return chosen


def _log_command(status: RankStatus, tail: int, follow: bool) -> Command:
    if status.runtime == Runtime.DOCKER:
        return docker.follow(status.handle, tail) if follow else docker.logs(status.handle, tail)
    return process.follow(status.handle, tail) if follow else process.logs(status.handle, tail)
