"""The nodes are another `up`'s: its request is renewed for as long as it is at work."""

from sparkwright.app.tasks import each
from sparkwright.domain.errors import NodeError
from sparkwright.domain.live import Ask
from sparkwright.domain.units import duration
from sparkwright.remote import lease
from sparkwright.supervision.events import Returned
from sparkwright.supervision.state import State
from sparkwright.supervisor.context import DeploymentContext
from sparkwright.supervisor.event_bus import EventBus
from sparkwright.supervisor.live import view

# Six renewals missed, as with a lease.
SILENT = 60.0
_LOOK_AGAIN = 0.5


async def swap(bus: EventBus, state: State) -> Returned:
    """Shown first: only then does the `up` stop a rank."""
    context = bus.context
    while True:
        request = context.keep.journal.request()
        if request is None:
            return Returned(context.now(), "the `up` that was replacing it has withdrawn")
        if request.ask is not Ask.REPLACE:
            context.keep.journal.answered()
            return Returned(context.now(), request.why, request.ask is not Ask.LEAVE)
        if request.age > context.scaled(SILENT):
            return await _abandoned(context, request.by, request.nonce)
        if request.nonce != context.seen.request:
            context.seen.request = request.nonce
            context.keep.journal.show(view(bus, state))
        await context.services.clock.sleep(_LOOK_AGAIN)


async def _abandoned(context: DeploymentContext, by: str, nonce: str) -> Returned:
    """A process that was killed gives back no lease."""

    async def free(node: str) -> None:
        try:
            await context.services.hosts[node].run(lease.release(nonce))
        except NodeError as error:
            context.say(f"its lease may be left: {error.message}", warning=True)

    await each(free(node) for node in context.nodes)
    context.keep.journal.answered()
    silent = duration(context.scaled(SILENT))
    return Returned(context.now(), f"the `up` of {by} that was replacing it sent no renewal for {silent}")
