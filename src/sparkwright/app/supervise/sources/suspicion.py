"""A cause that a log tells is believed when the engine does not answer either.

Engines print fatal words and live on; what a log alone says never stops a service.
"""

from sparkwright.app.supervise.senses import Senses
from sparkwright.app.supervise.sources.engine import asked
from sparkwright.domain.diagnosis import Cause
from sparkwright.domain.incident import IncidentEvent
from sparkwright.supervision.events import Fault
from sparkwright.supervision.recovery import of_cause
from sparkwright.supervision.state import Recovery


async def weigh_all(senses: Senses) -> None:
    while True:
        await weigh(senses, await senses.suspects.get())


async def weigh(senses: Senses, cause: Cause) -> None:
    """Silence alone may be a long prefill: then only what a relaunch cannot mend anyway counts."""
    site, needs = senses.site, of_cause(cause.key)
    proof = tuple(f"{one.source}: {one.text}" for one in cause.proof)
    canary = await asked(site)
    if canary.seconds is None and (canary.refused or needs.recovery is not Recovery.NONE):
        recovery = Recovery.RELAUNCH if needs.recovery is Recovery.NONE else needs.recovery
        senses.tell(Fault(site.now(), cause.key, f"{cause.title}; {canary.said}", recovery, proof))
        return
    text = f"the log tells {cause.key} ({cause.code}): {'; '.join(proof[:1])}"
    await site.keep.store.note(site.name, IncidentEvent(site.now(), "noticed", text))
