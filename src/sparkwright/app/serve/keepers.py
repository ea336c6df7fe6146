"""Processes that keep weights in GPU memory: started before the ranks, kept over a relaunch, ended by `down`."""

import asyncio
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import aclosing, suppress

from sparkwright.app.ranks import End, Way, follow, keepers_on
from sparkwright.app.serve.load_guard import LoadGuard
from sparkwright.app.services import Services, finish_all, finished, first_error, together
from sparkwright.domain.errors import CommandFailed, NodeError, NotReady
from sparkwright.domain.facts import KeeperStatus, NodeFacts
from sparkwright.domain.ledger import KEEPER, WEIGHTS
from sparkwright.domain.plan import Keeper, Plan
from sparkwright.domain.recipe import Runtime
from sparkwright.domain.units import duration
from sparkwright.domain.unknown import known_or_none
from sparkwright.domain.values import replace
from sparkwright.engines.catalog import engine_of
from sparkwright.remote import docker, process

# A progress bar that is never ended is no line: weights that come slowly are silent for as long.
_SILENT_FOR = 1800.0
_LAST = 25


async def end_keepers(
    services: Services, nodes: Sequence[str], names: Collection[str], but: Collection[str] = ()
) -> tuple[KeeperStatus, ...]:
    """Ends and removes those of the deployments, but for running ones with one of these hashes. Those that went.

    Raises CommandFailed or Unreachable, once all others have ended.
    """
    found = [one for one in await keepers_on(services, nodes) if one.deployment in names]
    old = tuple(one for one in found if not (one.running and one.spec_hash in but))

    async def remove(one: KeeperStatus) -> None:
        of = docker if one.runtime == Runtime.DOCKER else process
        done = await services.run(one.node, of.remove([one.handle], 10))
        if not done.ok:
            raise CommandFailed(one.node, f"{one.handle} still keeps weights after SIGKILL", "see `status`")

    await finish_all(map(remove, old))
    return old


async def keep_weights(services: Services, plan: Plan, way_of: Callable[[str], Way]) -> bool:
    """Starts what keeps the weights, unless it runs, and waits until they can be mapped. False: there is none.

    All or none are started: they meet each other while they load. Raises NotReady with the reason; they have ended.
    """
    wanted = {spec.keeper.spec.labels["keeper-hash"]: spec.keeper for spec in plan.specs if spec.keeper}
    if not wanted:
        return False
    nodes = list(dict.fromkeys(plan.placement.nodes))
    running = {one.spec_hash for one in await keepers_on(services, nodes) if one.running}
    try:
        if not running >= wanted.keys():
            await end_keepers(services, nodes, [plan.deployment])
            await together(finished(_start(services, plan, one, way_of)) for one in wanted.values())
        await _until_kept(services, plan, list(wanted.values()))
    except BaseException:
        await finished(end_keepers(services, nodes, [plan.deployment]))
        raise
    return True


def left_free(plan: Plan, facts: Mapping[str, NodeFacts]) -> dict[str, float]:
    """MemAvailable by node before the ranks start: less by what is kept from then on, if it was not there yet."""
    found: dict[str, float] = {}
    sizes = {one.node: {line.name: line.bytes for line in one.lines} for one in plan.ledgers}
    for node, memory in ((node, known_or_none(told.memory)) for node, told in facts.items()):
        if memory:
            new = any(spec.keeper for spec in plan.specs) and plan.deployment not in facts[node].keepers
            kept = sum(sizes.get(node, {}).get(name, 0) for name in (WEIGHTS, KEEPER)) if new else 0
            found[node] = float(memory.available - kept)
    return found


def _handle(services: Services, plan: Plan, one: Keeper) -> str:
    if one.spec.runtime is Runtime.DOCKER:
        return docker.keeper_name(plan.deployment, one.spec.rank)
    return process.keeper_dir(services.state_on(one.spec.node), plan.deployment, one.spec.rank)


async def _start(services: Services, plan: Plan, one: Keeper, way_of: Callable[[str], Way]) -> None:
    spec, way = one.spec, way_of(one.spec.node)
    host = services.hosts[spec.node]
    if spec.runtime is Runtime.DOCKER:
        await host.run(docker.make_folders(spec))
        exact = replace(spec, image=way.image_id or spec.image)
        done = await host.run(docker.run(exact, _handle(services, plan, one), "", way.memlock))
    else:
        where = process.keeper_dir(way.state, plan.deployment, spec.rank)
        done = await host.run(process.place_keeper(where, one.folder))
        done = await host.run(process.start(spec, where, json.dumps(dict(spec.labels)))) if done.ok else done
    if not done.ok:
        said = " / ".join(line.strip() for line in (done.stderr or done.stdout).splitlines()[-3:])
        raise CommandFailed(spec.node, f"what keeps the weights of rank {spec.rank} could not be started: {said[:600]}")


async def _until_kept(services: Services, plan: Plan, kept: Sequence[Keeper]) -> None:
    of = docker if plan.recipe.engine.runtime is Runtime.DOCKER else process
    grace = int(engine_of(plan.recipe).stop.grace)
    stops = {one.spec.node: of.stop([_handle(services, plan, one)], grace) for one in kept}
    memory = LoadGuard(services, plan, stops=stops)
    try:
        async with asyncio.TaskGroup() as group:
            guards = [group.create_task(memory.follow(node)) for node in memory.curves]
            waits = [group.create_task(_mapped(services, plan, one)) for one in kept]
            await asyncio.gather(*waits)
            for one in guards:
                one.cancel()
    except BaseExceptionGroup as group_error:
        raise first_error(group_error) from None


async def _mapped(services: Services, plan: Plan, one: Keeper) -> None:
    """Follows its log until it says that the weights can be mapped. Raises NotReady when it ends or is silent."""
    clock, handle, host = services.clock, _handle(services, plan, one), services.hosts[one.spec.node]
    lines: list[str] = []
    heard = clock.monotonic()
    while clock.monotonic() - heard < _SILENT_FOR:
        with suppress(NodeError, TimeoutError):  # the connection comes back, and the log is read again
            async with aclosing(follow(host, one.spec.runtime, handle)) as told:  # type: ignore[type-var]
                lines.clear()
                while True:
                    async with asyncio.timeout(_SILENT_FOR):
                        line = await anext(told, None)
                    if line is None:
                        break
                    if isinstance(line, End):
                        raise _not_kept(services, plan, one, lines, f"ended ({line.how})")
                    if one.ready in line:
                        return
                    heard = clock.monotonic()
                    lines.append(line)
        await clock.sleep(1.0)
    raise _not_kept(services, plan, one, lines, f"has printed nothing for {duration(_SILENT_FOR)}")


def _not_kept(services: Services, plan: Plan, one: Keeper, lines: Sequence[str], how: str) -> NotReady:
    spec = one.spec
    name = f"weights{spec.rank}-{spec.node}.log"
    where = services.save_evidence(plan.deployment, name, "\n".join(lines) + "\n")
    what = f"the process that keeps the weights of rank {spec.rank} on {spec.node}"
    return NotReady(f"{what} {how}", "`loading.weight_cache: false` starts without it", lines[-_LAST:], where)
