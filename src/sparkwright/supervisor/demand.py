"""A deployment on demand: a request that waits at the gateway starts it, and it is stopped when none comes any more."""

from sparkwright.domain.live import SERVING, Ask, DeploymentState, Request
from sparkwright.domain.units import duration
from sparkwright.supervisor.context import DeploymentContext
from sparkwright.supervisor.core.detect.stall import has_work
from sparkwright.supervisor.core.events import Demand, Idle, Ready
from sparkwright.supervisor.endpoint import gateway_use
from sparkwright.supervisor.event_bus import EventBus
from sparkwright.supervisor.nodes import census

_LOOK_EVERY = 0.5
# The gateway refuses from the moment that live.json is there; what it let through before is on its way by then.
_SETTLES, _LOOKS = 0.3, 2
# Who asks again within this time is still there: an agent between two requests.
_BETWEEN = 10.0
_ROOM_WITHIN, _STOPS_WITHIN, _ASK_EVERY = 20.0, 120.0, 1.0


async def watch_demand(bus: EventBus) -> None:
    """Stops the idle deployment. The idle time counts from what was seen here: the unknown is not idle."""
    context, used = bus.context, bus.context.now()
    limit = context.scaled(context.desired.recipe.serving.idle_minutes * 60)
    why = f"stopped after {duration(limit)} without a request"
    while True:
        use, at = await gateway_use(context), context.now()
        idle = use is not None and bus.serving and not (use.under_way or use.waiting or _past(bus))
        used = min(max(used, at - use.quiet), at) if use and idle else at
        room, context.seen.room = context.seen.room, ""
        if use and use.waiting:
            bus.put(Demand(at))
        elif room and at - used >= context.scaled(_BETWEEN):
            bus.put(Idle(at, room))
        elif at - used >= limit:
            bus.put(Idle(at, why))
        await context.services.clock.sleep(_LOOK_EVERY)


def _past(bus: EventBus) -> bool:
    engine = bus.context.seen.engine
    return engine is not None and has_work(engine) and engine.at > bus.context.seen.own_at + _LOOK_EVERY


async def made_room(context: DeploymentContext) -> bool:
    """True if another idle deployment on demand has stopped to make room; they are asked in turn."""
    for name in context.journal.on_demand_next_to(context.nodes):
        if await _yielded(context, name):
            context.notice(f"{name} was idle and has been stopped to make room")
            return True
    return False


async def _yielded(context: DeploymentContext, name: str) -> bool:
    """False for one that is in use."""
    began, why = context.now(), f"stopped, idle, to make room for {context.name}"
    while (phase := context.journal.phase_of(name)) is not DeploymentState.ON_DEMAND:
        limit = _ROOM_WITHIN if phase in SERVING else _STOPS_WITHIN
        if context.now() - began > context.scaled(limit):
            return False
        if phase in SERVING:
            context.journal.ask(name, Request(Ask.YIELD, context.services.who, why, context.services.nonce))
        context.seen.doing = f"{name} to be idle"
        await context.services.clock.sleep(_ASK_EVERY)
    return True


async def recheck_use(bus: EventBus) -> Ready | None:
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
    """True if all ranks still run: an earlier stop may have been cut off."""
    found = (await census(context)).ranks
    return len(found) == len(context.nodes) and all(rank.running for rank in found.values())
