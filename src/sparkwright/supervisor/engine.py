"""The engine, asked on its own address: its metrics every second or two, and now and then for a real token."""

import asyncio

from sparkwright.domain.diagnosis import Cause
from sparkwright.domain.errors import NotReady
from sparkwright.domain.incident import IncidentEvent
from sparkwright.domain.live import LiveCanary, LiveEngine
from sparkwright.engines.tables import metric_names
from sparkwright.facts.engine_metrics import read
from sparkwright.supervision.detect.stall import has_work
from sparkwright.supervision.events import Fault
from sparkwright.supervision.recovery import of_cause
from sparkwright.supervision.state import Recovery
from sparkwright.supervisor.context import DeploymentContext
from sparkwright.supervisor.event_bus import EventBus

# While requests run, whether anything moves is seen sooner.
_FIGURES_EVERY, _AT_WORK, _LATELY = 2.0, 1.0, 10.0
_LOOK_EVERY = 0.5
# One token does not show garbage; three answers at the start are what later ones are compared with.
QUESTION, TOKENS, RECORDED = "Write the numbers from one to five.", 8, 3


async def figures(bus: EventBus) -> None:
    """/metrics, again and again. A page that does not come is reported, too."""
    context, before = bus.context, dict[int, int]()
    while True:
        lines = dict(context.seen.count)
        context.seen.engine, at = await shown(context), context.now()
        bus.figures = bus.figures or context.seen.engine is not None
        bus.put(*bus.detectors.engine(context.seen.engine, at))
        if bus.detectors.life.proved == at:  # work came out since the look before
            context.seen.answered(before, at)
        before = lines
        lately = has_work(context.seen.engine) or at - bus.detectors.life.proved < _LATELY
        await context.pause(_AT_WORK if lately else _FIGURES_EVERY)


async def shown(context: DeploymentContext) -> LiveEngine | None:
    """The engine's metrics now, None without an answer."""
    page = await context.services.endpoint.page(context.url, context.engine.metrics_page, context.key)
    context.seen.page = page or context.seen.page  # the last one is evidence
    return read(page, metric_names(context.engine.name), context.now()) if page else None


async def canary(bus: EventBus) -> None:
    """One small request while nothing else proves that the engine computes; at once when its figures stay away."""
    context = bus.context
    while True:
        if _due(bus):
            bus.detectors.canaries.pending = context.now()
            lines = dict(context.seen.count)
            context.seen.canary = said = await asked(context)
            if said.seconds is not None:
                context.seen.answered(lines, said.at)
                if bus.recorded < RECORDED:
                    bus.recorded += 1
                    bus.detectors.garbage.record(said.said)
            bus.put(*bus.detectors.canary(said, context.now()))
        await context.pause(_LOOK_EVERY)


def _due(bus: EventBus) -> bool:
    context, last = bus.context, bus.context.seen.canary
    if _keyless(context):
        return False
    if bus.recorded < RECORDED or last is None or last.seconds is None:
        return True
    silent = bus.figures and context.seen.engine is None
    waited = context.now() - last.at
    hurried = silent or bus.detectors.hurries(context.now())
    return bus.detectors.wants_canary(context.now()) and (hurried or waited >= context.policy.canary_every)


def _keyless(context: DeploymentContext) -> bool:
    """It would be refused for want of the key, which proves nothing about the engine."""
    return bool(context.desired.recipe.serving.api_key_env) and context.key is None


async def asked(context: DeploymentContext) -> LiveCanary:
    """The answer, or why there is none."""
    at, limit = context.now(), context.policy.canary_limit
    if _keyless(context):
        return LiveCanary(at, None, "not asked: its key is not known here")
    try:
        async with asyncio.timeout(limit):
            model = context.outline.served_name
            answer = await context.services.endpoint.greedy(context.url, model, QUESTION, TOKENS, context.key)
    except TimeoutError:
        return LiveCanary(at, None, f"no answer within {limit:g} s")
    except NotReady as error:
        return LiveCanary(at, None, error.message, refused=True)
    return LiveCanary(at, answer.total, answer.text)


async def weigh_suspects(bus: EventBus) -> None:
    while True:
        await weigh_suspect(bus, await bus.suspects.get())


async def weigh_suspect(bus: EventBus, cause: Cause) -> None:
    """Silence alone may be a long prefill: then only what a relaunch cannot fix anyway counts."""
    context, needs = bus.context, of_cause(cause.key)
    proof = tuple(f"{one.source}: {one.text}" for one in cause.proof)
    canary = await asked(context)
    if canary.seconds is None and (canary.refused or needs.recovery is not Recovery.NONE):
        recovery = Recovery.RELAUNCH if needs.recovery is Recovery.NONE else needs.recovery
        bus.put(Fault(context.now(), cause.key, f"{cause.title}; {canary.said}", recovery, proof))
        return
    text = f"the log shows {cause.key} ({cause.code}): {'; '.join(proof[:1])}"
    await context.store.note(context.name, IncidentEvent(context.now(), "noticed", text))
