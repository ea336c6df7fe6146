"""All ranks stopped and their memory given back; all ranks started, until a real token comes."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from sparkwright.app import ranks as rank_work
from sparkwright.app.cluster_state import image_of
from sparkwright.app.lease import holding
from sparkwright.app.serve.cache_disks import STARTED_WITHOUT
from sparkwright.app.serve.changed import changes, remember, served_image
from sparkwright.app.serve.keepers import left_free
from sparkwright.app.serve.launch import start_ranks
from sparkwright.app.serve.prepare import Outcome, prepare
from sparkwright.app.serve.ready import watched
from sparkwright.app.serve.watch import StartWatch
from sparkwright.app.services import ClusterState, LaunchRequest, first_error
from sparkwright.domain.errors import Busy, NodeError, NotReady, Refused, SparkwrightError, Unreachable
from sparkwright.domain.facts import NodeFacts
from sparkwright.domain.finding import Finding
from sparkwright.domain.incident import CHANGED, IncidentEvent
from sparkwright.domain.plan import stopping
from sparkwright.domain.recipe import Runtime
from sparkwright.domain.sample import Sample
from sparkwright.domain.units import GIB, gib
from sparkwright.domain.unknown import Unknown, known_or_none
from sparkwright.remote import staging
from sparkwright.supervisor.context import RELAUNCHES, STARTED_IN, DeploymentContext, Starting
from sparkwright.supervisor.core import moves
from sparkwright.supervisor.core.events import Launched, LaunchFailed, Ready, Stopped
from sparkwright.supervisor.core.recovery import of_findings
from sparkwright.supervisor.core.state import Recovery
from sparkwright.supervisor.demand import made_room
from sparkwright.supervisor.endpoint import ask_canary, read_engine
from sparkwright.supervisor.event_bus import EventBus
from sparkwright.supervisor.nodes import Census, census, cure_of, note_census

# Nobody is served any more: those that still hear SIGTERM end within this time. A server that was found to answer
# nothing, neither its figures nor the canary, has nothing to bring to an end: its connections would be waited for. What
# is left of a group that lost a rank may hear it or waits for the dead one for ever (vLLM 0.21.0 does).
GRACE = 5.0
_SHORTER = {"frozen": 1.0, "spin": 1.0, "rank-exited": 2.0}
# Another supervisor on the same nodes has the leases for about as long as a stop takes.
_LEASE_AGAIN = 0.5
# The driver gives memory back for some seconds after its process has ended. What does not rise for a while is another
# program's, or stays with the driver: waiting does not bring it, and the launch checks whether the rest is enough.
_MEMORY_WITHIN, _MEMORY_EVERY, _SETTLED = 20.0, 0.3, 1.5
_COMES_BACK = GIB / 8
_SLACK = 4 * GIB
AVAILABLE = "available:"


async def stop(bus: EventBus, fault: str = "") -> Stopped:
    """Idempotent. What runs on a node that cannot be asked is left, and reported. fault: the kind that it is about."""
    context = bus.context
    found = await census(context)
    grace = min(_SHORTER.get(fault, GRACE), context.engine.stop.grace)
    left = await _ended(context, found, grace) if found.all else []
    found = await census(context) if found.all else found
    note_census(bus, found)
    left += [f"{context.label(r.rank)} still runs" for r in found.all if r.running and not left]
    left += (f"{why}; {cure}" if (cure := cure_of(why)) else why for why in found.unseen.values())
    retained = () if left else await _retained(context, found)
    needs = await bus.explained()
    return Stopped(context.now(), tuple(left), retained, needs.recovery, needs.why, found.boots)


async def _ended(context: DeploymentContext, found: Census, grace: float) -> list[str]:
    """Stops the ranks under the leases of the nodes that answer; waits for other holders."""
    nodes = [node for node in context.nodes if node not in found.unseen]
    while True:
        try:
            async with holding(context.services, nodes, f"supervisor of {context.name}: stop"):
                context.seen.doing = ""
                await rank_work.stop_all(context.services, found.all, grace, remove=False)
            return []
        except Busy as busy:
            if not context.seen.doing:
                context.notice(f"waiting to stop {context.name}: {busy.message}", warning=True)
            context.seen.doing = busy.message
            await context.services.clock.sleep(_LEASE_AGAIN)
        except NodeError as error:
            return [error.message]


async def _retained(context: DeploymentContext, found: Census) -> tuple[str, ...]:
    """Nodes that have much less memory available than before the start, once no more of it comes back.

    Next to another deployment it is not known: what is missing may be that one's.
    """
    before = {node: context.journal.recall().get(f"{AVAILABLE}{node}", 0.0) for node in context.nodes}
    began = moved = context.services.clock.monotonic()
    least = math.inf
    while True:
        alone = [node for node in context.nodes if not found.others.get(node)]
        short = {node: _short(before[node], found.samples.get(node)) for node in alone}
        missing = {node: lacks for node, lacks in short.items() if lacks > 0}
        now, total = context.services.clock.monotonic(), sum(missing.values())
        if total <= least - _COMES_BACK:
            least, moved = total, now
        if not missing or now - moved >= context.scaled(_SETTLED) or now - began > context.scaled(_MEMORY_WITHIN):
            break
        context.seen.doing = f"memory of {', '.join(missing)} to come back"
        await context.pause(_MEMORY_EVERY)
        found = await census(context)
    context.seen.doing = ""
    for node, lacks in missing.items():
        text = f"{node}: {gib(lacks)} less memory available than before the start, and no more of it comes back"
        context.notice(f"{text}: another program has it, or the driver keeps it for the next start", warning=True)
    return tuple(missing)


def _short(before: float, sample: Sample | None) -> float:
    """Bytes less than before the start, 0 for what may be caches and daemons."""
    memory = known_or_none(sample.memory) if sample else None
    if memory is None or not before:
        return 0.0
    missing = before - memory.available
    return missing if missing > max(_SLACK, 0.05 * before) else 0.0


# What has just been booted: Docker is given 300 s and the ports of the fabric 600 s.
_COMES_UP, _ELSE = 600.0, 15.0
_AGAIN = 2.0
_LEAST, _LEASE_AGAIN = 1.0, 0.5
_PROOF_EVERY = 2.0


async def launch(context: DeploymentContext, asked_for: bool = False) -> Launched | LaunchFailed:
    """Facts and fabric again, then workers first. Busy: also while a node is out of reach, which is no launch.

    asked_for: by a request that waits, while others may serve on its nodes.
    """
    if asked_for:
        context.note_neighbours(context.journal.serving_next_to())
    try:
        outcome = await _prepared(context, 0.0 if asked_for else _ELSE, asked_for)
    except Unreachable as error:
        why = f"{error.message}; {error.cure}" if error.cure else error.message
        return LaunchFailed(context.now(), why, busy=True, unseen=True)
    except SparkwrightError as error:
        return _failed(context, error)
    finally:
        context.seen.doing = ""
    context.seen.launched_at, context.seen.launched = context.services.clock.monotonic(), outcome
    if (number := context.seen.incidents[1]) != context.seen.closed:  # a node may have come back with another kernel
        await note_changes(context, outcome.cluster_state, number)
    usual = context.journal.recall().get(STARTED_IN, 0.0)
    context.seen.back_at = context.now() + usual if usual else 0.0
    free = left_free(outcome.plan, outcome.cluster_state.facts)
    context.remember({f"{AVAILABLE}{node}": size for node, size in free.items()})
    try:
        await _brought(context, outcome)
    except SparkwrightError as error:
        return _failed(context, error)
    finally:
        context.seen.doing = ""
    context.seen.relaunches += 1
    context.seen.ranks |= {rank: replace(one, running=True, started="") for rank, one in context.seen.ranks.items()}
    context.remember({RELAUNCHES: float(context.seen.relaunches), STARTED_WITHOUT: float(bool(outcome.without))})
    return Launched(context.now(), _boots(outcome.cluster_state.facts))


async def note_changes(context: DeploymentContext, state: ClusterState, number: int) -> None:
    """Notes the differences from the last service in its incident."""
    where = (context.name, context.desired.recipe, context.nodes)
    if found := await changes(context.services, *where, state):
        await context.store.note(context.name, IncidentEvent(context.now(), CHANGED, str(found)), number)


def _failed(context: DeploymentContext, error: SparkwrightError) -> LaunchFailed:
    if isinstance(error, Refused):
        needs = of_findings(error.findings)
        why = _sentence(error.findings) or error.message
        return LaunchFailed(context.now(), why, moves.stronger(Recovery.RELAUNCH, needs.recovery), refused=True)
    return LaunchFailed(context.now(), error.message, busy=isinstance(error, Busy))


async def _prepared(context: DeploymentContext, patience: float, makes_room: bool) -> Outcome:
    """A plan that nothing forbids. Raises Refused or Unreachable when it has waited long enough.

    makes_room: what does not fit in memory asks others to stop that are on demand and idle.
    """
    began = context.services.clock.monotonic()
    request = await _pinned(context)
    while True:
        limit = patience
        try:
            outcome = await prepare(context.services, request)
            stops = stopping(outcome.plan, context.desired.force)
            if not stops and outcome.plan.specs:
                return outcome
            # Docker or the fabric is not there (yet)
            needs_docker = outcome.plan.recipe.engine.runtime is Runtime.DOCKER
            silent = any(isinstance(found.docker, Unknown) for found in outcome.cluster_state.facts.values())
            limit = _COMES_UP if not outcome.plan.specs or (needs_docker and silent) else _ELSE
            if makes_room and any(one.code.startswith("MEM") for one in stops) and await made_room(context):
                began = context.services.clock.monotonic()
                continue
            failed: SparkwrightError = Refused(_sentence(stops) or "no fabric between the nodes", stops)
        except Unreachable as error:
            failed = error
        if context.services.clock.monotonic() - began > context.scaled(limit):
            raise failed
        context.seen.doing = failed.message
        await context.services.clock.sleep(max(context.scaled(_AGAIN), _LEAST))


async def _pinned(context: DeploymentContext) -> LaunchRequest:
    """The request with the image that served last: a tag like `latest` may be another one since somebody pulled it.

    A new one comes with `down` and the next `up`, which plans for it.
    """
    services, asked = context.services, context.launch_request
    image = asked.recipe.engine.image
    if asked.recipe.engine.runtime is not Runtime.DOCKER or not image or "@sha256:" in image:
        return asked
    kept = await served_image(services, context.name, context.nodes)
    now = None
    with suppress(NodeError):
        now = image_of(await services.run(context.head, staging.inspect_image(image))) if kept else None
    if now and now[0] not in (kept, context.seen.moved):
        context.seen.moved = now[0]
        text = f"{image} is another image now; the one that served is started again. `down`, then `up` take the new one"
        context.notice(text, warning=True)
    return replace(asked, image=kept)


async def _brought(context: DeploymentContext, outcome: Outcome) -> None:
    """Raises Busy when the leases are still somebody's after a while: another supervisor has them for seconds only."""
    began = context.services.clock.monotonic()
    while True:
        try:
            await start_ranks(context.services, context.launch_request, outcome, seize=False)
            return
        except Busy as busy:
            if context.services.clock.monotonic() - began > context.scaled(_ELSE):
                raise
            context.seen.doing = busy.message
            await context.services.clock.sleep(_LEASE_AGAIN)


def _sentence(findings: Sequence[Finding]) -> str:
    return "; ".join(f"{f.code} {f.subject}: {f.title}" for f in findings[:3])


def _boots(facts: Mapping[str, NodeFacts]) -> tuple[tuple[str, str], ...]:
    """The boot markers as samples have them: a node that went down after the stop was rebooted all the same."""
    identities = ((node, known_or_none(found.identity)) for node, found in facts.items())
    return tuple((node, who.boot) for node, who in identities if who and who.boot)


async def watch_ranks(context: DeploymentContext, ours: bool) -> Ready | LaunchFailed:
    """Watches until a real token. ours: started by this process; other ranks may serve already, with rotated logs."""
    services = replace(context.services, sink=Starting(context.seen, context.services.sink))
    following = StartWatch(services, context.outline, context.engine, math.inf, context.journal.recall())
    ways = [watched(services, context.outline, following), *(() if ours else (_proved(context),))]
    tasks = [asyncio.ensure_future(way) for way in ways]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    except NotReady as error:
        return LaunchFailed(context.now(), error.message)
    except BaseExceptionGroup as group:
        raise first_error(group) from None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        context.seen.starting.clear()
        if following.claims:
            context.remember(following.claims)
    if ours and (outcome := context.seen.launched):
        await remember(context.services, outcome.plan, outcome.cluster_state)
        context.remember({STARTED_IN: context.services.clock.monotonic() - context.seen.launched_at})
    return Ready(context.now())


async def _proved(context: DeploymentContext) -> None:
    """A token of our own, or figures that move: one that is busy with a prompt for a quarter of an hour serves, too."""
    before = None
    while (await ask_canary(context)).seconds is None:
        figures = await read_engine(context)
        if before and figures and replace(figures, at=before.at) != before:
            return
        before = figures or before
        await context.pause(_PROOF_EVERY)
