"""A deployment on demand: a request that waits at the gateway starts it, and it is stopped when none comes any more."""

from sparkwright.domain.live import GatewayUse
from sparkwright.domain.units import duration
from sparkwright.supervision.detect.stall import has_work
from sparkwright.supervision.events import Demand, Idle, Ready
from sparkwright.supervisor.context import DeploymentContext
from sparkwright.supervisor.endpoint import gateway_use
from sparkwright.supervisor.event_bus import EventBus
from sparkwright.supervisor.nodes import census

_LOOK_EVERY = 0.5
# The gateway refuses from the moment that live.json is there; what it let through before is on its way by then.
_SETTLES, _LOOKS = 0.3, 2


async def watch(bus: EventBus) -> None:
    """Since when nobody has asked counts from what was seen here: what is not known is not idle."""
    context, used = bus.context, bus.context.now()
    limit = context.scaled(context.desired.recipe.serving.idle_minutes * 60)
    why = f"stopped after {duration(limit)} without a request"
    while True:
        use, at = await gateway_use(context), context.now()
        idle = use is not None and bus.serving and not _in_use(bus, use)
        used = min(max(used, at - use.quiet), at) if use and idle else at
        if use and use.waiting:
            bus.put(Demand(at))
        elif at - used >= limit:
            bus.put(Idle(at, why))
        await context.services.clock.sleep(_LOOK_EVERY)


def _in_use(bus: EventBus, use: GatewayUse) -> bool:
    """By a client of the gateway, or past it; our own probe is none."""
    return bool(use.under_way or use.waiting) or _past(bus)


def _past(bus: EventBus) -> bool:
    engine = bus.context.seen.engine
    return engine is not None and has_work(engine) and engine.at > bus.context.seen.own_at + _LOOK_EVERY


async def in_use(bus: EventBus) -> Ready | None:
    """Ready where a request has come before the gateway refused: then nothing is stopped."""
    context: DeploymentContext = bus.context
    for _ in range(_LOOKS):
        await context.services.clock.sleep(_SETTLES)
        use = await gateway_use(context)
        if (use is None or use.under_way or use.waiting) and await _whole(context):
            context.notice(f"{context.name}: a request came before it was stopped; it continues to serve")
            return Ready(context.now())
    return None


async def _whole(context: DeploymentContext) -> bool:
    """Whether all ranks run still: a stop before this one may have been cut off."""
    found = (await census(context)).ranks
    return len(found) == len(context.nodes) and all(rank.running for rank in found.values())
