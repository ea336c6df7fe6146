"""All ranks ended, seen to have ended, and their memory given back, or not."""

import math
from collections.abc import Mapping

from sparkwright.app import ranks as rank_work
from sparkwright.app.lease import holding
from sparkwright.domain.errors import Busy, NodeError
from sparkwright.domain.sample import Sample
from sparkwright.domain.units import GIB, gib
from sparkwright.domain.unknown import Unknown
from sparkwright.supervision.events import Stopped
from sparkwright.supervisor.census import Census, census
from sparkwright.supervisor.context import DeploymentContext
from sparkwright.supervisor.event_bus import EventBus
from sparkwright.supervisor.sources.listing import note

# Nobody is served any more: those that still hear SIGTERM end within this time. A server that was found to answer
# nothing, neither its figures nor the canary, has nothing to bring to an end: its connections would be waited for. What
# is left of a group that lost a rank may hear it or waits for the dead one for ever (vLLM 0.21.0 does).
GRACE = 5.0
_SHORTER = {"frozen": 1.0, "spin": 1.0, "rank-exited": 2.0}
# Another supervisor on the same nodes has the leases for about as long as a stop takes.
_BUSY_AGAIN = 0.5
# The driver gives memory back for some seconds after its process has ended. What does not rise for a while is another
# program's, or stays with the driver: waiting does not bring it, and the launch checks whether the rest is enough.
_MEMORY_WITHIN, _MEMORY_EVERY, _SETTLED = 20.0, 0.3, 1.5
_COMES_BACK = GIB / 8
_SLACK = 4 * GIB
AVAILABLE = "available:"


async def stop(bus: EventBus, fault: str = "") -> Stopped:
    """Idempotent. What runs on a node that cannot be asked is left, and said. fault: the kind that it is about."""
    context = bus.context
    found = await census(context)
    grace = min(_SHORTER.get(fault, GRACE), context.engine.stop.grace)
    left = await _ended(context, found, grace) if found.all else []
    found = await census(context) if found.all else found
    note(bus, found)
    left += [f"{context.label(r.rank)} still runs" for r in found.all if r.running and not left]
    left += found.unseen.values()
    retained = () if left else await _retained(context, found)
    needs = await bus.explained()
    return Stopped(context.now(), tuple(left), retained, needs.recovery, needs.why, found.boots)


async def _ended(context: DeploymentContext, found: Census, grace: float) -> list[str]:
    """Under the leases of the nodes that answer; waits for whoever has them."""
    nodes = [node for node in context.nodes if node not in found.unseen]
    while True:
        try:
            async with holding(context.services, nodes, f"supervisor of {context.name}: stop"):
                context.seen.doing = ""
                await rank_work.stop_all(context.services, found.all, grace, remove=False)
            return []
        except Busy as busy:
            if not context.seen.doing:
                context.say(f"waiting to stop {context.name}: {busy.message}", warning=True)
            context.seen.doing = busy.message
            await context.services.clock.sleep(_BUSY_AGAIN)
        except NodeError as error:
            return [error.message]


async def _retained(context: DeploymentContext, found: Census) -> tuple[str, ...]:
    """Nodes that have much less memory available than before the start, once no more of it comes back.

    Next to another deployment it is not known: what is missing may be that one's.
    """
    before = {node: context.keep.journal.recall().get(f"{AVAILABLE}{node}", 0.0) for node in context.nodes}
    began = moved = context.services.clock.monotonic()
    least = math.inf
    while True:
        missing = _missing(context, before, found)
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
        context.say(f"{text}: another program has it, or the driver keeps it for the next start", warning=True)
    return tuple(missing)


def _missing(context: DeploymentContext, before: Mapping[str, float], found: Census) -> dict[str, float]:
    alone = [node for node in context.nodes if not found.others.get(node)]
    short = {node: _short(before[node], found.samples.get(node)) for node in alone}
    return {node: missing for node, missing in short.items() if missing > 0}


def _short(before: float, sample: Sample | None) -> float:
    """Bytes less than before the start, 0 for what may be caches and daemons."""
    memory = sample.memory if sample else None
    if memory is None or isinstance(memory, Unknown) or not before:
        return 0.0
    missing = before - memory.available
    return missing if missing > max(_SLACK, 0.05 * before) else 0.0
