"""The work on a deployment, one piece at a time: evidence, reboot, hand-over. Each answers with its turn."""

import asyncio
import json
import re
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace

from sparkwright.app.diagnose import incident as evidence
from sparkwright.app.services import ClusterState, finish_all
from sparkwright.causes.diagnose import consequences
from sparkwright.domain.codec import to_json
from sparkwright.domain.errors import NodeError, Unreachable
from sparkwright.domain.incident import Incident, IncidentEvent
from sparkwright.domain.live import OVER, SERVING, Ask, DeploymentState, Request
from sparkwright.domain.recipe import Runtime
from sparkwright.domain.sample import GpuSample
from sparkwright.domain.units import DRAIN_SECONDS, duration
from sparkwright.domain.unknown import known_or_none
from sparkwright.remote import lease
from sparkwright.remote import repair as commands
from sparkwright.supervisor.announcer import announce, live_view
from sparkwright.supervisor.context import DeploymentContext
from sparkwright.supervisor.core.events import Answer, Captured, LaunchFailed, Rebooted, RebootFailed, Returned, Stopped
from sparkwright.supervisor.core.moves import disk_troubles
from sparkwright.supervisor.core.recovery import NOTHING, Needs, of_diagnosis
from sparkwright.supervisor.core.state import Capture, Launch, Reboot, State, StopRanks, SwapRanks, WatchRanks
from sparkwright.supervisor.defects import explain_defect
from sparkwright.supervisor.demand import recheck_use
from sparkwright.supervisor.disk_cache import save_before_stop
from sparkwright.supervisor.endpoint import gateway_use, outage_began
from sparkwright.supervisor.event_bus import EventBus
from sparkwright.supervisor.nodes import Census, census
from sparkwright.supervisor.ranks import launch, note_changes, stop, watch_ranks

# A diagnosis that takes longer is not worth the wait; the evidence stays.
_TITLE = 160  # characters
_DIAGNOSIS = 10.0
_EXITED = re.compile(r"rank (\d+) on (\S+) (?:exited with code (?!1(?:29|30|37|43)\b)|ended)")


async def capture(bus: EventBus, state: State, wanted: Capture) -> Captured:
    """Opens the incident, or continues it, and fills its folder."""
    context = bus.context
    context.seen.captured = wanted.incident
    found_now = Incident(
        deployment=context.name,
        kind=wanted.kind,
        what=wanted.what,
        opened_at=await _began(bus, wanted.since or context.now()),
        number=wanted.incident,
        evidence=(*wanted.evidence, *disk_troubles(state)),
        simulated=context.simulated,
    )
    opened = await context.store.open(context.opened(found_now))
    context.seen.captured = opened.number
    context.seen.folder, context.seen.incidents = opened.folder, await context.store.counts(context.name)
    if context.seen.opening:
        announce(context, context.seen.opening, state, opened.number)
    await bus.let_go()
    ranks = [evidence.IncidentRank(s.rank, s.node, s.runtime, context.handle(s.rank)) for s in context.outline.specs]
    found = await evidence.collect(context.services, context.name, ranks)
    found.files.update(_own(bus, state, wanted))
    found.logs.update({f"nvidia-smi dmon on {node}": _busy(readings) for node, readings in context.seen.gpus.items()})
    found.seen.extend(_seen(bus, wanted))
    ended = wanted.kind == "rank-exited" or (found.ended and wanted.kind != "launch-failed")
    heard = {context.label(rank): context.seen.since_good(rank) for rank in range(len(context.nodes))}
    outage = evidence.Outage(
        wanted.what if ended else "", context.seen.good_at, heard, dict(state.boots), state.rebooters
    )
    bus.explaining = asyncio.create_task(_explained(context, found, opened.number, outage if ended else None))
    bus.save(_saved(context, found, opened.number, bus.explaining))
    dockerless = _dockerless(context, found, wanted.what)
    return Captured(context.now(), opened.number, bus.detectors.asks().recovery, dockerless)


# What is found so soon after nobody watched had begun before.
_SOON_AFTER = 60.0


async def _began(bus: EventBus, since: float) -> float:
    """Start of an outage; one that nobody watched began after the last byte that the gateway got from the engine."""
    unwatched = bus.unwatched
    if unwatched is None or not unwatched.since <= since <= unwatched.until + bus.context.scaled(_SOON_AFTER):
        return since
    return min(since, await outage_began(bus.context, unwatched.since))


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


async def _saved(
    context: DeploymentContext, found: evidence.Evidence, number: int, explaining: "asyncio.Task[Needs]"
) -> None:
    """The rest, behind what the relaunch waits for: nothing waits for it."""
    await asyncio.wait({explaining})
    await evidence.complete(context.services, found, context.nodes)
    await note_changes(context, ClusterState(found.facts), number)
    trouble = await context.store.save(number, found.files)
    text = f"{len(found.files)} files of evidence{f'; {trouble}' if trouble else ''}"
    await context.store.note(context.name, IncidentEvent(context.now(), "captured", text), number)
    for sentence in filter(None, (*found.trouble, trouble)):
        context.notice(f"incident {number}: {sentence}", warning=True)


async def _explained(
    context: DeploymentContext, found: evidence.Evidence, number: int, outage: evidence.Outage | None
) -> Needs:
    """The needs of all causes, and the first cause's name for the incident: the stop waits for it."""
    await evidence.decisive(context.services, found, context.nodes)
    try:
        async with asyncio.timeout(_DIAGNOSIS):
            told = await evidence.explain(context.services, found, context.fix_values, outage)
    except TimeoutError:
        found.trouble.append(f"the diagnosis took longer than {_DIAGNOSIS:.0f} s")
        return NOTHING
    found.files["diagnosis.json"] = json.dumps(asdict(told), indent=1)
    if (why := told.explanation) and not told.named:
        await context.store.explain(number, why.title or why.line.text[:_TITLE], "", why.next)
    if not told.named:
        return NOTHING
    first = told.named[0]
    what = outage.sentence(found.boots) if outage else ""
    # A start that fails afterwards shows what followed from the cause: that is no better one
    if first.key not in context.seen.followers.get(number, ()):
        await context.store.explain(number, first.title, first.code, first.fix, what)
        context.seen.followers = {number: consequences(first.key)}
    return replace(of_diagnosis(told), why=first.title)


def _busy(readings: Iterable[GpuSample]) -> str:
    """The last minute of a GPU as `nvidia-smi dmon` would have printed it: asking now would take seconds."""
    told = ((known_or_none(gpu.utilization), known_or_none(gpu.memory_busy)) for gpu in readings)
    rows = [f"    0 {busy:5.0f} {memory:5.0f}\n" for busy, memory in told if busy is not None and memory is not None]
    return "".join(("# gpu    sm   mem\n", *rows)) if rows else ""


def _own(bus: EventBus, state: State, wanted: Capture) -> dict[str, str]:
    """The files with the supervisor's own knowledge."""
    context = bus.context
    files = {"live.json": to_json(live_view(bus, state), indent=1), "state.json": to_json(state, indent=1)}
    files["fault.txt"] = "\n".join((wanted.what, *wanted.evidence)) + "\n"
    files |= {f"gpu-busy-{node}.txt": _busy(readings) for node, readings in context.seen.gpus.items()}
    files["metrics.txt"] = context.seen.page
    return {name: text for name, text in files.items() if text}


# A GB10 is back within two minutes; one that checks its disks takes longer.
_WITHIN, _EVERY = 1200.0, 5.0


async def reboot(context: DeploymentContext, before: Sequence[tuple[str, str]]) -> Rebooted | RebootFailed:
    """Reboots the nodes that still have the marker of before; its own at last, which ends this supervisor."""
    old = dict(before)
    unknown = [node for node in context.nodes if node not in old]
    if unknown:
        why = f"{', '.join(unknown)}: whether it was rebooted could not be verified afterwards"
        return RebootFailed(context.now(), why)
    due = _still(await census(context), old)
    # Why it cannot be done; asked of all before the first one goes
    asked = await finish_all(context.services.run(node, commands.may_repair()) for node in due)
    not_us = [node for node, done in zip(due, asked, strict=True) if not done.ok]
    if not_us:
        return RebootFailed(context.now(), f"{', '.join(not_us)}: `sudo -n systemctl reboot` is not allowed there")
    await finish_all(_order(context, node) for node in due if node != context.supervisor_node)
    if context.supervisor_node in due:
        await _order(context, context.supervisor_node)
    deadline = context.services.clock.monotonic() + context.scaled(_WITHIN)
    while context.services.clock.monotonic() < deadline:
        await context.pause(_EVERY)
        found = await census(context)
        if not _still(found, old) and len(found.boots) == len(context.nodes):
            return Rebooted(context.now())
    late = [*_still(found, old), *found.unseen]
    return RebootFailed(context.now(), f"{', '.join(late)} not back within {duration(context.scaled(_WITHIN))}")


def _still(found: Census, old: dict[str, str]) -> list[str]:
    return [node for node, marker in found.boots if old[node] == marker]


async def _order(context: DeploymentContext, node: str) -> None:
    context.notice(f"rebooting {node}", warning=True)
    with suppress(Unreachable):  # it went before it could answer
        await context.services.run(node, commands.reboot())


# Six renewals missed, as with a lease; on a busy machine each takes seconds, however short a drill makes other waits.
SILENT, _LEAST_SILENCE = 60.0, 20.0
_LOOK_AGAIN = 0.5
# The gateway refuses from the moment that live.json is there; what it let through before is on its way by then.
_SETTLES = 0.3


async def drained(context: DeploymentContext) -> None:
    """Wait before a stop that a person asked for, so that requests which the gateway has let through may end.

    Returns once none is under way, or after as long as the request for the stop allows; at once where no gateway
    answers, and where the engine does not answer any more.
    """
    began, limit = context.now(), context.scaled(context.seen.drain)
    if began - context.seen.good_at > context.policy.canary_every + context.scaled(DRAIN_SECONDS):
        return
    await context.services.clock.sleep(_SETTLES)
    while (use := await gateway_use(context)) and use.under_way:
        some = f"{use.under_way} request{'s' if use.under_way > 1 else ''}"
        if context.now() - began > limit:
            context.notice(f"{context.name}: {some} under way after {limit:.0f} s, cut by the stop", warning=True)
            break
        context.seen.doing = f"the end of {some}"
        await context.services.clock.sleep(_LOOK_AGAIN)
    context.seen.doing = ""


async def swap_ranks(bus: EventBus, state: State) -> Returned:
    """Shown first: only then does the `up` stop a rank."""
    context = bus.context
    await drained(context)
    while True:
        request = context.journal.request()
        if request is None:
            return Returned(context.now(), "the `up` that was replacing it has withdrawn")
        if request.ask is not Ask.REPLACE:
            context.journal.answered(request.nonce)
            halted = request.ask is Ask.HALT
            return Returned(context.now(), request.why, request.ask is not Ask.LEAVE and not halted, halted)
        if request.age > silence(context):
            return await _unfinished(context, request)
        if request.nonce != context.seen.request:
            context.seen.answer(request.nonce)
            context.journal.show(live_view(bus, state))
        await context.services.clock.sleep(_LOOK_AGAIN)


def silence(context: DeploymentContext) -> float:
    """Seconds without a renewal after which an `up` that was replacing this deployment has ended."""
    return max(context.scaled(SILENT), _LEAST_SILENCE)


_RESTS_WITHIN, _STARTS = 180.0, (DeploymentState.STARTING, DeploymentState.LOADING)


async def _unfinished(context: DeploymentContext, request: Request) -> Returned:
    """The end of a switch to a deployment that rested here, whoever began it is gone: it serves, or this one returns.

    A start of it that is under way goes on. One that fails is stopped before this one returns: both may not fit.
    """
    if not (name := request.successor):
        return await _abandoned(context, request.by, request.nonce)
    while (phase := context.journal.phase_of(name)) in _STARTS:
        await context.services.clock.sleep(_LOOK_AGAIN)
    if phase in SERVING:
        context.journal.answered(request.nonce)
        return Returned(context.now(), f"{name} serves in its place", again=False, halted=True)
    if phase is not None and phase not in OVER:
        why = f"{context.name} is started again in its place"
        context.journal.ask(name, Request(Ask.HALT, request.by, why, context.services.nonce, drain=0.0))
        until = context.services.clock.monotonic() + context.scaled(_RESTS_WITHIN)
        while context.services.clock.monotonic() < until and context.journal.phase_of(name) not in (None, *OVER):
            await context.services.clock.sleep(_LOOK_AGAIN)
    return await _abandoned(context, request.by, request.nonce)


async def _abandoned(context: DeploymentContext, by: str, nonce: str) -> Returned:
    """A process that was killed gives back no lease."""

    async def free(node: str) -> None:
        try:
            await context.services.run(node, lease.release(nonce))
        except NodeError as error:
            context.notice(f"its lease may be left: {error.message}", warning=True)

    await finish_all(free(node) for node in context.nodes)
    context.journal.answered(nonce)
    silent = duration(context.scaled(SILENT))
    return Returned(context.now(), f"the `up` of {by} that was replacing it sent no renewal for {silent}")


Work = Capture | StopRanks | Launch | WatchRanks | Reboot | SwapRanks


class EffectRunner:
    def __init__(self, bus: EventBus) -> None:
        self._bus = bus
        self._task: asyncio.Task[None] | None = None
        self._launched = False

    async def begin(self, work: Work, state: State) -> None:
        await self.cut()
        self._task = asyncio.create_task(self._answered(work, state), name=type(work).__name__)

    async def cut(self) -> None:
        """Ends the work under way; a change on a node is finished first."""
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._task = None

    async def _answered(self, work: Work, state: State) -> None:
        try:
            answer = await self._done(work, state)
        except Exception as error:
            self._bus.context.notice("".join(traceback.format_exception(error)), warning=True)
            answer = self._failed(work, await explain_defect(self._bus.context, error))
        self._bus.put(replace(answer, turn=work.turn))

    async def _done(self, work: Work, state: State) -> Answer:
        context = self._bus.context
        if isinstance(work, Capture):
            return await capture(self._bus, state, work)
        if isinstance(work, StopRanks):
            if state.planned or state.halted:
                await drained(context)
                await save_before_stop(self._bus)
            still = await recheck_use(self._bus) if state.idle else None
            return still or await stop(self._bus, state.fault)
        if isinstance(work, Launch):
            self._launched = True
            return await launch(context, asked_for=state.idle)
        if isinstance(work, WatchRanks):
            return await watch_ranks(context, self._launched)
        if isinstance(work, SwapRanks):
            returned = await swap_ranks(self._bus, state)
            context.seen.forget_request()
            return returned
        return await reboot(context, work.before)

    def _failed(self, work: Work, why: str) -> Answer:
        """A work always answers: else the machine would wait for ever."""
        at = self._bus.context.now()
        if isinstance(work, Capture):
            return Captured(at, work.incident or self._bus.context.seen.captured)
        if isinstance(work, StopRanks):
            return Stopped(at, left=(why,))
        if isinstance(work, SwapRanks):
            return Returned(at, why)
        return RebootFailed(at, why) if isinstance(work, Reboot) else LaunchFailed(at, why)
