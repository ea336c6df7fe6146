"""A cause that a log tells is believed when the engine does not answer either.

Engines print fatal words and live on; what a log alone says never stops a service.
"""

from sparkwright.domain.diagnosis import Cause
from sparkwright.domain.incident import IncidentEvent
from sparkwright.supervision.events import Fault
from sparkwright.supervision.recovery import of_cause
from sparkwright.supervision.state import Recovery
from sparkwright.supervisor.event_bus import EventBus
from sparkwright.supervisor.sources.engine import asked


async def weigh_all(bus: EventBus) -> None:
    while True:
        await weigh(bus, await bus.suspects.get())


async def weigh(bus: EventBus, cause: Cause) -> None:
    """Silence alone may be a long prefill: then only what a relaunch cannot mend anyway counts."""
    context, needs = bus.context, of_cause(cause.key)
    proof = tuple(f"{one.source}: {one.text}" for one in cause.proof)
    canary = await asked(context)
    if canary.seconds is None and (canary.refused or needs.recovery is not Recovery.NONE):
        recovery = Recovery.RELAUNCH if needs.recovery is Recovery.NONE else needs.recovery
        bus.tell(Fault(context.now(), cause.key, f"{cause.title}; {canary.said}", recovery, proof))
        return
    text = f"the log tells {cause.key} ({cause.code}): {'; '.join(proof[:1])}"
    await context.keep.store.note(context.name, IncidentEvent(context.now(), "noticed", text))
