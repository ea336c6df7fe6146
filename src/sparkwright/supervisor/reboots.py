"""Boots of nodes that the supervisor lived through or woke up after: noted in the incident, with how the last ended."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from sparkwright.app.diagnose.diagnosing import year_of
from sparkwright.app.diagnose.incident import RESET, Evidence, Outage, explain
from sparkwright.domain.command import Command
from sparkwright.domain.errors import NodeError
from sparkwright.domain.facts import Unknown
from sparkwright.domain.host_facts import Times
from sparkwright.domain.incident import IncidentEvent
from sparkwright.domain.last_seconds import SHOWN, RingRecord, table_of, told_of
from sparkwright.domain.sample import GpuSample, Sample
from sparkwright.domain.unknown import known_or_none
from sparkwright.domain.values import dataclass
from sparkwright.facts.ring import copied, keep_copy, last_minutes, parse_ring
from sparkwright.facts.settings import TIMES
from sparkwright.logscan.logline import line_time
from sparkwright.supervisor.context import DeploymentContext
from sparkwright.supervisor.event_bus import EventBus

REBOOTED, LAST_SECONDS = "rebooted", "last-seconds"
# Until the incident of the same reboot is open; a supervisor that has just begun looks at its ranks first. The evidence
# of an incident takes its time, however short a drill makes other waits.
_PATIENCE, _LOOK_AGAIN = 30.0, 0.5


@dataclass(frozen=True, slots=True)
class EndedBoot:
    """A boot that is over. marker: as samples had it. seen: what the head has seen of it itself.

    unseen: seconds until the supervisor saw the next boot, by a clock that nobody sets; None if it saw nothing before.
    """

    node: str
    marker: str
    seen: Sequence[RingRecord]
    unseen: float | None = None


def note_boot(bus: EventBus, node: str, sample: Sample) -> None:
    """Compares the boot marker with the last known one."""
    before = bus.context.seen.boots.get(node, "")
    now, looked = bus.context.services.clock.monotonic(), bus.context.seen.looked.get(node)
    bus.context.seen.looked[node] = now
    if not sample.boot or sample.boot == before:
        return
    bus.context.seen.boots[node] = sample.boot
    if before:
        history = [*bus.context.seen.history.pop(node, ())]
        seen = [_moment(one) for one in history if one.boot == before]
        unseen = None if looked is None else now - looked
        bus.save(_explained(bus, EndedBoot(node, before, seen, unseen), sample))


async def _explained(bus: EventBus, ended: EndedBoot, sample: Sample) -> None:
    """sample: of the next boot."""
    context, node = bus.context, ended.node
    times = await _times(context, node)
    number = await _open_incident(context)
    await _note(context, REBOOTED, how_it_ended(node, sample, times), number)
    if sample.was_reset or not (times and times.unclean is False):
        await _show_last(context, ended, times, number)
    if not number or not sample.was_reset:
        return
    await bus.explained()
    found = Evidence(context.name, boots={node: sample.boot}, resets=[node])
    told = await explain(context.services, found, context.fix_values, Outage("", 0.0, {}, {node: ended.marker}))
    if told.named:
        first = told.named[0]
        await context.store.explain(number, first.title, first.code, first.fix)
        await context.store.save(number, {"diagnosis.json": json.dumps(asdict(told), indent=1)})


async def _note(context: DeploymentContext, kind: str, sentence: str, number: int) -> None:
    await context.store.note(context.name, IncidentEvent(context.now(), kind, sentence), number)
    context.notice(sentence, warning=True)


async def _times(context: DeploymentContext, node: str) -> Times | None:
    try:
        return known_or_none(await context.services.read(node, TIMES))
    except NodeError:
        return None


def how_it_ended(node: str, sample: Sample, times: Times | None) -> str:
    """A sentence about the end of the boot before this one."""
    if sample.was_reset:
        return f"{node} {RESET}: it had frozen"
    if times and times.unclean is True:
        return f"{node} ended without a shutdown: it froze, lost its power, or switched itself off"
    return f"{node} was rebooted" + (" in order" if times and times.unclean is False else "")


async def _show_last(context: DeploymentContext, ended: EndedBoot, times: Times | None, number: int) -> None:
    """The last seconds of that boot, from whoever has the latest record: its own disk, a peer, or this process."""
    node = ended.node
    own = last_minutes(_state(context, node), context.name, ended.marker)
    records = [ended.seen, await _read(context, node, own)]
    if node == context.head and len(context.nodes) > 1:
        peer = context.nodes[1]
        records.append(await _read(context, peer, copied(_state(context, peer), context.name, node)))
    latest = max(records, key=lambda found: max((one.at for one in found), default=0.0))
    now, up = (known_or_none(times.now), known_or_none(times.uptime)) if times else (None, None)
    booted = now - up if now is not None and up is not None else 0.0
    _drop_old_lines(context, latest)
    await _note(context, LAST_SECONDS, told_of(node, latest, booted, ended.unseen), number)
    if number and latest:
        await context.store.save(number, {f"last-seconds-{node}.txt": table_of(latest)})


def _drop_old_lines(context: DeploymentContext, moments: Sequence[RingRecord]) -> None:
    """Keeps the kernel's lines of the last minute; one without a time counts as such."""
    year, end = year_of(context.services), max((one.at for one in moments), default=0.0)
    for one in moments:
        one.kernel = [line for line in one.kernel if (line_time(line, year) or end) >= end - SHOWN]


async def _read(context: DeploymentContext, node: str, command: Command) -> Sequence[RingRecord]:
    try:
        return parse_ring(await context.services.run(node, command))
    except NodeError:
        return ()


def _state(context: DeploymentContext, node: str) -> str:
    return context.services.cluster.node(node).paths.state


def _moment(sample: Sample) -> RingRecord:
    """A sample as a record of the ring."""
    made = RingRecord(sample.at, kernel=list(sample.kernel))
    if not isinstance(sample.memory, Unknown):
        memory = sample.memory
        made.memory = {"MemTotal": memory.total, "MemFree": memory.free, "MemAvailable": memory.available}
    stalls = {"some": known_or_none(sample.stall_some), "full": known_or_none(sample.stall_full)}
    made.stall = {name: value for name, value in stalls.items() if value is not None}
    if isinstance(sample.gpu, GpuSample):
        gpu = sample.gpu
        made.busy, made.watts, made.clock = (
            known_or_none(gpu.utilization),
            known_or_none(gpu.power),
            known_or_none(gpu.clock),
        )
        made.gpu_heat = known_or_none(gpu.temperature)
    return made


COPY_EVERY = 30.0


async def copy_to_peer(bus: EventBus) -> None:
    """The head's last minutes go to the second node: its own disk may not come back. Others' are in this process."""
    context = bus.context
    while len(context.nodes) > 1:
        await context.pause(COPY_EVERY)
        head, peer = context.head, context.nodes[1]
        boot = context.seen.boots.get(head, "")
        try:
            if boot and bus.serving:
                own = await context.services.run(head, last_minutes(_state(context, head), context.name, boot))
                if records := own.stdout.encode()[-COPY_BYTES:]:
                    await context.services.run(peer, keep_copy(_state(context, peer), context.name, head, records))
        except NodeError:
            continue  # a peer that is away or full is named by others


COPY_BYTES = 32 * 1024


async def _open_incident(context: DeploymentContext) -> int:
    """Its number; 0 if none is opened in time."""
    until = context.services.clock.monotonic() + _PATIENCE
    while not (number := context.seen.incident):
        if context.services.clock.monotonic() > until:
            return 0
        await context.services.clock.sleep(_LOOK_AGAIN)
    return number
