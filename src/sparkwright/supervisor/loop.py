"""The loop: one queue of events, one machine that decides, one work at a time."""

from functools import partial

from sparkwright.domain.incident import CLOCK, IncidentEvent
from sparkwright.domain.live import SERVING, Ask, DeploymentState, Request
from sparkwright.domain.units import duration
from sparkwright.domain.values import replace
from sparkwright.supervisor import (
    coherence,
    demand,
    disk_cache,
    endpoint,
    event_bus,
    linger,
    nodes,
    prefixes,
    quality,
    reboots,
    wake,
)
from sparkwright.supervisor.announcer import Announcer, live_view
from sparkwright.supervisor.context import DeploymentContext
from sparkwright.supervisor.core import machine
from sparkwright.supervisor.core.detect.detectors import Detectors, is_watch_gap
from sparkwright.supervisor.core.detect.setting import Setting
from sparkwright.supervisor.core.events import Cleared, Disarmed, Event, Fault, Halt, Replaced, Restart, Resumed, Tick
from sparkwright.supervisor.core.minutes import Minutes
from sparkwright.supervisor.core.state import ALIVE, Recovery, State
from sparkwright.supervisor.core.state import Work as Kind
from sparkwright.supervisor.effects import SILENT, EffectRunner, Work, silence
from sparkwright.supervisor.event_bus import EventBus, TaskSupervisor, Unwatched
from sparkwright.supervisor.nodes import Census, census, cure_of

_TICK = 1.0
_CLOCK_STEP = 1.0  # seconds by which a clock that daemons slew does not move between two ticks
_SHOWN_EVERY = 2.0
_UNWRITTEN = "journal"
_ASKED: dict[Ask, type[Restart | Halt]] = {Ask.RESTART: Restart, Ask.HALT: Halt}


async def supervise(context: DeploymentContext) -> None:
    """Returns when a person has taken over. Cancelled it stops nothing: what runs goes on, the next one takes it up."""
    loop = Loop(context)
    try:
        await loop.run()
    finally:
        await loop.end()


class Loop:
    """Owns the state. Everything else puts events into its queue, and does what the machine decides."""

    def __init__(self, context: DeploymentContext) -> None:
        self.context = context
        self.bus = EventBus(context, Detectors(Setting.of(context.desired, context.nodes, context.rdma)))
        self._announcer = Announcer(context, self.bus.detectors.seen)
        self._effects = EffectRunner(self.bus)
        self._nodes = TaskSupervisor(context.services.clock, self._trouble)
        self._ranks = TaskSupervisor(context.services.clock, self._trouble)
        self._state = machine.first_state(context.now(), ready=False)
        self._shown = self._ticked = self._real = 0.0
        self._minutes = Minutes()
        self._review_of = ""  # nonce of the request that is looked at; a `replace` stays until its work begins

    async def run(self) -> None:
        known, found = self._known(), await census(self.context)
        await self._announcer.begin(known)
        nodes.note_census(self.bus, found)
        # What `up` has just reported as ready is not refused at the gateway.
        if known is None:
            answers = (await endpoint.ask_canary(self.context)).seconds is not None
            known = await self._announcer.take_up(machine.first_state(self.context.now(), ready=answers))
        self._state = known
        self.context.seen.boots = dict(self._state.boots)
        for node in self.context.nodes:
            self._nodes.begin(f"samples of {node}", partial(nodes.watch_node, self.bus, node))
        self._nodes.begin("last seconds", partial(reboots.copy_to_peer, self.bus))
        self._nodes.begin("wake", partial(wake.wake_nodes, self.bus))
        self._nodes.begin("clock", self._tick)
        self._nodes.begin("gateway", partial(endpoint.watch_gateway, self.bus))
        self._nodes.begin("gateway probe", partial(endpoint.probe_gateway, self.bus))
        self._nodes.begin("gateway's programs", partial(endpoint.programs, self.bus))
        self._nodes.begin("linger", partial(linger.watch_linger, self.bus))
        self._nodes.begin("Docker", partial(nodes.watch_docker, self.bus))
        if self.context.desired.recipe.serving.on_demand:
            self._nodes.begin("demand", partial(demand.watch_demand, self.bus))
        self._nodes.begin("records", partial(event_bus.watch_files, self.bus))
        await self._step(self._resumed(found))
        while self._state.phase is not DeploymentState.STOPPED:
            await self._step(await self.bus.events.get())

    async def end(self) -> None:
        await self._effects.cut()
        await self.bus.let_go()
        await self.bus.saved()
        for tasks in (self._ranks, self._nodes):
            tasks.release()
            await tasks.gone()
        await self._announcer.left(self._state)
        if self._state.phase is not DeploymentState.STOPPED:
            self.context.journal.show(replace(live_view(self.bus, self._state), left=self.context.now()))

    def _known(self) -> State | None:
        """One that was disarmed has left nothing to resume: this one was started for a new `up`."""
        known = self.context.journal.load()
        return None if known and known.phase is DeploymentState.STOPPED else known

    def _resumed(self, found: Census) -> Resumed:
        unseen = tuple(k for k, node in enumerate(self.context.nodes) if node in found.unseen)
        running = tuple(k for k, rank in found.ranks.items() if rank.running)
        ended = tuple(k for k in range(len(self.context.nodes)) if k not in (*unseen, *running))
        alive = self.context.journal.recall().get(ALIVE, 0.0)
        if alive:
            self.bus.unwatched = Unwatched(alive, self.context.now())
        # The gateway of a replica elsewhere did not go with that node
        gone_with_head = alive if self.context.supervisor_node == self.context.head else 0.0
        return Resumed(self.context.now(), running, ended, unseen, found.boots, gone_with_head)

    async def _tick(self) -> None:
        """Time passes for the machine, for detectors, and for who looks."""
        while True:
            await self.context.services.clock.sleep(_TICK)
            self._look()

    def _look(self) -> None:
        at = self.context.now()
        self._gap(at)
        if not self.context.journal.wanted():
            self.bus.put(Disarmed(at))
        self._follow_request(at)
        if self._unwritten:
            self._save()
        nodes.report_silent(self.bus)
        if self.bus.serving:
            self.bus.put(*self.bus.detectors.tick(at))
        self.bus.put(Tick(at))
        if at - self._shown >= _SHOWN_EVERY:
            self._show()

    def _follow_request(self, at: float) -> None:
        """One that is old was for a supervisor that did not run then."""
        request = self.context.journal.request()
        if request is None or self._state.work is Kind.SWAP:
            self._review_of = ""
            return
        if request.nonce == self._review_of:
            return
        fresh = request.age <= (silence(self.context) if request.ask is Ask.REPLACE else SILENT)
        if fresh and (request.ask in _ASKED or request.ask is Ask.REPLACE):
            self._review_of = request.nonce
            self._nodes.begin("request", partial(self._review, request))
            return
        self.context.journal.answered(request.nonce)
        if request.ask is Ask.YIELD:
            self.context.seen.room = request.why

    async def _review(self, request: Request) -> None:
        """Takes up what a person asks for. What serves is not stopped for work that cannot be done."""
        context = self.context
        unseen = (await census(context)).unseen if self._state.phase in SERVING else {}
        if unseen:
            why = f"{context.name} serves and was left as it is: {'; '.join(unseen.values())}"
            cure = next(filter(None, map(cure_of, unseen.values())), "")
            context.notice(f"{request.ask} by {request.by} refused: {why}", warning=True)
            context.seen.answer(request.nonce, why, cure)
            context.journal.answered(request.nonce)
            self._review_of = ""
            self._show()
            return
        context.seen.drain = request.drain
        if request.ask is Ask.REPLACE:
            self.bus.put(Replaced(context.now(), request.why))
            return
        context.journal.answered(request.nonce)
        self._review_of = ""
        self.bus.put(_ASKED[request.ask](context.now(), request.why, request.nonce))

    def _gap(self, at: float) -> None:
        """Discards a gap in watching or a clock change: it is no silence of the engine."""
        before, clock = self._ticked or at, self.context.services.clock.uptime().seconds
        passed, real, self._ticked, self._real = at - before, clock - (self._real or clock), at, clock
        if is_watch_gap(passed) and is_watch_gap(real):
            self.bus.unwatched = Unwatched(before, at)
        if is_watch_gap(passed):
            why = f"{real:.0f} s passed since the last look, {passed:.0f} s by this node's clock"
            self.context.notice(f"{why} (it was set, or nothing ran); stall timers reset")
            self._shown = 0.0
            self.bus.looked_away()
        if abs(passed - real) >= _CLOCK_STEP:
            self._nodes.begin("clock step", partial(self._note_step, at, passed - real))

    async def _note_step(self, at: float, step: float) -> None:
        """Tell readers of the open incident why its times do not add up."""
        if number := self._state.incident:
            how = f"this node's clock was set {'forward' if step > 0 else 'back'} by {duration(abs(step))}"
            await self.context.store.note(self.context.name, IncidentEvent(at, CLOCK, how, step), number)

    def _show(self) -> None:
        self._shown = self.context.now()
        live = live_view(self.bus, self._state)
        self.context.journal.show(live)
        if minute := self._minutes.add(live):
            self.context.store.sample(minute)

    async def _step(self, event: Event) -> None:
        """Decided, saved, reported, and only then done."""
        before = self._state
        if isinstance(event, Restart | Halt):
            self.context.seen.answer(event.request)
        self._state, effects = machine.step(before, event, self.context.policy)
        self.context.seen.incident = self._state.incident
        if self._state != before:
            self._save()
            await self._announcer.changed(before, self._state)
        for effect in effects:
            if not isinstance(effect, Work):
                await self._announcer.report(effect, self._state)
        if self._state != before or effects:
            self._show()
        for effect in effects:
            if isinstance(effect, Work):
                await self._effects.begin(effect, self._state)
        self._listen()

    @property
    def _unwritten(self) -> bool:
        return any(kind == _UNWRITTEN for kind, _ in self._state.troubles)

    def _save(self) -> None:
        why, told = self.context.journal.save(self._state), self._unwritten
        if why and not told:
            what = f"the supervisor's own state cannot be written: {why}"
            self.bus.put(Fault(self.context.now(), _UNWRITTEN, what, Recovery.NONE))
        elif told and not why:
            self.bus.put(Cleared(self.context.now(), _UNWRITTEN))

    def _listen(self) -> None:
        """The ranks are followed while they serve, and not a moment longer: the next start's are others."""
        serving = self._state.phase in SERVING
        if serving == self.bus.serving:
            return
        self.bus.serving = serving
        if not serving:
            self._ranks.release()
            self.bus.detectors.end()
            return
        self.bus.begin(self._state.ready_at)
        for rank in range(len(self.context.nodes)):
            self._ranks.begin(f"follower of rank {rank}", partial(nodes.follow_rank, self.bus, rank))
        self._ranks.begin("causes", partial(endpoint.weigh_suspects, self.bus))
        self._ranks.begin("figures", partial(endpoint.figures, self.bus))
        self.bus.speaks = None if coherence.is_judged(self.context) else True
        self._ranks.begin("coherence", partial(coherence.watch_answers, self.bus))
        self._ranks.begin("disk cache", partial(disk_cache.watch_disks, self.bus))
        self._ranks.begin("slots", partial(disk_cache.keep_slots, self.bus))
        self._ranks.begin("prefixes", partial(prefixes.send_kept, self.bus, self._state.ready_at))
        self._ranks.begin("canary", partial(endpoint.canary, self.bus))
        self._ranks.begin("answers", partial(quality.watch_quality, self.bus))
        self._ranks.begin("requests in flight", partial(endpoint.in_flight, self.bus))
        self._ranks.begin("listing", partial(nodes.watch_listing, self.bus))
        self._ranks.begin("stillness", partial(nodes.inspect_processes, self.bus))

    def _trouble(self, name: str, error: Exception | None) -> None:
        """A source that failed is a defect of ours: shown, and it is begun again."""
        at, kind = self.context.now(), f"blind:{name}"
        if error is None:
            self.bus.put(Cleared(at, kind))
            return
        self.context.notice(f"{name} failed: {error!r}", warning=True)
        self.bus.put(Fault(at, kind, f"{name} failed and is begun again: {error!r}", Recovery.NONE))
