"""The ranks' processes, looked at while the engine stands still: what is stopped is not busy."""

import asyncio

from sparkwright.app.tasks import together
from sparkwright.domain.errors import NodeError
from sparkwright.domain.unknown import Unknown
from sparkwright.facts.sample import halts
from sparkwright.supervisor.event_bus import EventBus

_EVERY, _LEAST = 5.0, 1.0
# Of a node that hangs: its processes are not known then.
_LIMIT = 20.0


async def look_into(bus: EventBus) -> None:
    """Costs nothing while tokens come."""
    context = bus.context
    while True:
        if bus.detectors.doubts(context.now()):
            await together(look(bus, rank) for rank in range(len(context.nodes)))
        await context.services.clock.sleep(max(context.scaled(_EVERY), _LEAST))


async def look(bus: EventBus, rank: int) -> None:
    """What cannot be looked at is not stopped."""
    context = bus.context
    fact = halts(context.desired.recipe.engine.runtime, context.handle(rank))
    try:
        async with asyncio.timeout(_LIMIT):
            found = fact.read(await context.services.hosts[context.nodes[rank]].run(fact.command))
    except (NodeError, TimeoutError):
        return
    if not isinstance(found, Unknown):
        bus.found(bus.detectors.looked(context.label(rank), found, context.now()))
