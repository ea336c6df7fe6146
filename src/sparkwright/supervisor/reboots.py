"""Boots of nodes that the supervisor lived through or woke up after: noted in the incident, with how the last ended."""

import json
from dataclasses import asdict

from sparkwright.app.incident import RESET, Evidence, Outage, explain
from sparkwright.domain.errors import NodeError
from sparkwright.domain.incident import IncidentEvent
from sparkwright.domain.sample import Sample
from sparkwright.domain.unknown import known
from sparkwright.facts.settings import TIMES
from sparkwright.supervisor.context import DeploymentContext
from sparkwright.supervisor.event_bus import EventBus

REBOOTED = "rebooted"
# Until the incident of the same reboot is open; a supervisor that has just begun looks at its ranks first.
_PATIENCE, _LOOK_AGAIN = 30.0, 0.5


def note_boot(bus: EventBus, node: str, sample: Sample) -> None:
    """Compares the boot marker with the last known one."""
    before = bus.context.seen.boots.get(node, "")
    if not sample.boot or sample.boot == before:
        return
    bus.context.seen.boots[node] = sample.boot
    if before:
        bus.save(_explained(bus, node, sample, before))


async def _explained(bus: EventBus, node: str, sample: Sample, before: str) -> None:
    context = bus.context
    sentence = await how_it_ended(context, node, sample)
    number = await _open_incident(context)
    await context.store.note(context.name, IncidentEvent(context.now(), REBOOTED, sentence), number)
    context.notice(sentence, warning=True)
    if not number or not sample.was_reset:
        return
    await bus.explained()
    found = Evidence(context.name, boots={node: sample.boot}, resets=[node])
    told = await explain(context.services, found, context.fix_values, Outage("", 0.0, {}, {node: before}))
    if told.named:
        first = told.named[0]
        await context.store.explain(number, first.title, first.code, first.fix)
        await context.store.save(number, {"diagnosis.json": json.dumps(asdict(told), indent=1)})


async def how_it_ended(context: DeploymentContext, node: str, sample: Sample) -> str:
    """A sentence about the end of the boot before this one."""
    if sample.was_reset:
        return f"{node} {RESET}: it had frozen"
    try:
        times = known(await context.services.read(node, TIMES))
    except NodeError:
        times = None
    if times and times.unclean is True:
        return f"{node} ended without a shutdown: it froze, lost its power, or switched itself off"
    return f"{node} was rebooted" + (" in order" if times and times.unclean is False else "")


async def _open_incident(context: DeploymentContext) -> int:
    """Its number; 0 if none is opened in time."""
    until = context.services.clock.monotonic() + context.scaled(_PATIENCE)
    while not (number := context.seen.incident):
        if context.services.clock.monotonic() > until:
            return 0
        await context.services.clock.sleep(_LOOK_AGAIN)
    return number
