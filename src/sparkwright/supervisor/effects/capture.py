"""Evidence first: what is stopped can no longer be asked."""

import asyncio
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace

from sparkwright.app import incident as evidence
from sparkwright.domain.codec import to_json
from sparkwright.domain.incident import Incident, IncidentEvent
from sparkwright.domain.recipe import Runtime
from sparkwright.domain.sample import GpuSample
from sparkwright.domain.unknown import Unknown
from sparkwright.supervision.effects import Capture
from sparkwright.supervision.events import Captured
from sparkwright.supervision.recovery import NOTHING, Needs, of_diagnosis
from sparkwright.supervision.state import State
from sparkwright.supervisor.announcer import announce
from sparkwright.supervisor.context import DeploymentContext
from sparkwright.supervisor.event_bus import EventBus
from sparkwright.supervisor.live import view

# A diagnosis that takes longer is not worth the wait; the evidence stays.
_TITLE = 160  # characters
_DIAGNOSIS = 10.0
_EXITED = re.compile(r"rank (\d+) on (\S+) (?:exited with code (?!1(?:29|30|37|43)\b)|ended)")


async def capture(bus: EventBus, state: State, wanted: Capture) -> Captured:
    """Opens the incident, or goes on with it, and fills its folder."""
    context = bus.context
    opened = await context.keep.store.open(
        Incident(
            deployment=context.name,
            kind=wanted.kind,
            what=wanted.what,
            opened_at=wanted.since or context.now(),
            number=wanted.incident,
            evidence=wanted.evidence,
            simulated=context.simulated,
        )
    )
    context.seen.folder, context.seen.incidents = opened.folder, await context.keep.store.counts(context.name)
    if context.seen.opening:
        announce(context, context.seen.opening, state, opened.number)
    await bus.let_go()
    ranks = [evidence.Rank(s.rank, s.node, s.runtime, context.handle(s.rank)) for s in context.outline.specs]
    found = await evidence.collect(context.services, context.name, ranks)
    found.files.update(_own(bus, state, wanted))
    found.logs.update({f"nvidia-smi dmon on {node}": _busy(readings) for node, readings in context.seen.gpus.items()})
    found.seen.extend(_seen(bus, wanted))
    ended = wanted.kind == "rank-exited" or (found.ended and wanted.kind != "launch-failed")
    outage = evidence.Outage(wanted.what if ended else "", context.seen.good_at, _heard(context), dict(state.boots))
    bus.explaining = asyncio.create_task(_explained(context, found, opened.number, outage if ended else None))
    bus.save(_saved(context, found, opened.number, bus.explaining))
    return Captured(
        context.now(), opened.number, bus.detectors.asks().recovery, _dockerless(context, found, wanted.what)
    )


def _dockerless(context: DeploymentContext, found: evidence.Evidence, what: str) -> str:
    """The true thing before its consequence: a rank that lost its peer, because that one's Docker is away."""
    if context.desired.recipe.engine.runtime is not Runtime.DOCKER or not found.dockerless:
        return ""
    return "; ".join([*(why for why in sorted(found.dockerless) if why not in what), what])


def _seen(bus: EventBus, wanted: Capture) -> Iterator[str]:
    """Stopped processes, links that were down, and a disk that was full where a rank ended."""
    frozen, exited = wanted.kind == "frozen", _EXITED.match(wanted.what)
    yield from (line for line in wanted.evidence if frozen and line.startswith("rank "))
    for line in bus.detectors.seen(bus.context.seen.good_at - bus.context.policy.sample_every):
        full = line.startswith("disk full on ")
        if not full:
            yield line
        elif exited and line.startswith(f"disk full on {exited[2]}:"):
            yield f"{line}; rank {exited[1]} ended there"


def _heard(context: DeploymentContext) -> dict[str, evidence.Heard]:
    return {context.label(rank): context.seen.since_good(rank) for rank in range(len(context.nodes))}


async def _saved(
    context: DeploymentContext, found: evidence.Evidence, number: int, explaining: "asyncio.Task[Needs]"
) -> None:
    """The rest, behind what the relaunch waits for: nothing waits for it."""
    await asyncio.wait({explaining})
    await evidence.complete(context.services, found, context.nodes)
    trouble = await context.keep.store.save(number, found.files)
    text = f"{len(found.files)} files of evidence{f'; {trouble}' if trouble else ''}"
    await context.keep.store.note(context.name, IncidentEvent(context.now(), "captured", text), number)
    for sentence in filter(None, (*found.trouble, trouble)):
        context.say(f"incident {number}: {sentence}", warning=True)


async def _explained(
    context: DeploymentContext, found: evidence.Evidence, number: int, outage: evidence.Outage | None
) -> Needs:
    """What the first cause is called, and what recovery all of them ask for: the stop waits for it."""
    await evidence.decisive(context.services, found, context.nodes)
    try:
        async with asyncio.timeout(_DIAGNOSIS):
            told = await evidence.explain(context.services, found, context.words, outage)
    except TimeoutError:
        found.trouble.append(f"the diagnosis took longer than {_DIAGNOSIS:.0f} s")
        return NOTHING
    found.files["diagnosis.json"] = json.dumps(asdict(told), indent=1)
    if (why := told.explanation) and not told.causes:
        await context.keep.store.explain(number, why.title or why.line.text[:_TITLE], "", why.next)
    if not told.causes:
        return NOTHING
    first = told.causes[0]
    what = outage.sentence(found.boots) if outage else ""
    await context.keep.store.explain(number, first.title, first.code, first.fix, what)
    return replace(of_diagnosis(told), why=first.title)


def _busy(readings: Iterable[GpuSample]) -> str:
    """The last minute of a GPU as `nvidia-smi dmon` would have told it: asking now would take seconds."""
    rows = [f"    0 {g.utilization:5.0f} {g.memory_busy:5.0f}\n" for g in readings if _is_told(g)]
    return "".join(("# gpu    sm   mem\n", *rows)) if rows else ""


def _is_told(gpu: GpuSample) -> bool:
    return not isinstance(gpu.utilization, Unknown) and not isinstance(gpu.memory_busy, Unknown)


def _own(bus: EventBus, state: State, wanted: Capture) -> dict[str, str]:
    """What the supervisor itself knew."""
    context = bus.context
    files = {"live.json": to_json(view(bus, state), indent=1), "state.json": to_json(state, indent=1)}
    files["fault.txt"] = "\n".join((wanted.what, *wanted.evidence)) + "\n"
    files |= {f"gpu-busy-{node}.txt": _busy(readings) for node, readings in context.seen.gpus.items()}
    files["metrics.txt"] = context.seen.page
    return {name: text for name, text in files.items() if text}
