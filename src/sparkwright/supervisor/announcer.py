"""The deployment at this moment, and where it is reported: store, hooks, log, and live.json for the gateway."""

from collections.abc import Callable, Mapping

from sparkwright.app.diagnose.incident import Evidence, explain
from sparkwright.app.serve.watch import CLAIMED
from sparkwright.domain.incident import HANDED, UNWATCHED, WATCHED, DeploymentRecord, Incident, IncidentEvent, News
from sparkwright.domain.known_keys import mask_keys
from sparkwright.domain.live import DeploymentState, Live, LiveNode, LiveRestart
from sparkwright.domain.values import replace
from sparkwright.supervisor.context import BEGUN, LEFT, RELAUNCHES, RESTARTED, RESTARTS, STARTED_IN, DeploymentContext
from sparkwright.supervisor.core.state import (
    STALLED,
    Admit,
    Announce,
    Close,
    Record,
    Refuse,
    ServedAgain,
    State,
    Told,
    Work,
)
from sparkwright.supervisor.event_bus import EventBus
from sparkwright.supervisor.nodes import waited_for

_AWAITED = {
    Work.CAPTURE: "its evidence to be saved",
    Work.STOP: "its ranks to be stopped",
    Work.LAUNCH: "its ranks to be started",
    Work.WATCH: "the first token of its start",
    Work.REBOOT: "its nodes to be rebooted",
    Work.SWAP: "what replaces it to be ready",
}


def live_view(bus: EventBus, state: State) -> Live:
    context, seen = bus.context, bus.context.seen
    at, quiet = context.now(), bus.detectors.quiet(context.now())
    docker = f"Docker on {', '.join(waited_for(bus))}" if state.refusing and waited_for(bus) else ""
    stale = dict(state.troubles).get(STALLED)
    others = tuple((kind, said) for kind, said in state.troubles if kind != STALLED)
    troubles = (*others, (STALLED, quiet or stale)) if stale and bus.serving else others
    reason = quiet if quiet and state.reason == stale else state.reason
    known = context.journal.recall()
    counted = {name.removeprefix(RESTARTS): int(count) for name, count in known.items() if name.startswith(RESTARTS)}
    return Live(
        at=at,
        deployment=context.name,
        phase=state.phase,
        since=state.since,
        reason=reason,
        refusing=state.refusing,
        why=seen.why if state.refusing else "",
        back_at=seen.back_at if state.refusing and not (seen.doing or docker) else 0.0,
        awaited=docker or seen.doing or _awaited(state),
        due=0.0 if docker else state.due,
        usual=known.get(STARTED_IN, 0.0),
        restarts=tuple(LiveRestart(who, n, known.get(f"{RESTARTED}{who}", 0.0)) for who, n in sorted(counted.items())),
        incident=state.incident,
        last_incident=seen.incidents[1],
        incidents=seen.incidents[0],
        relaunches=seen.relaunches,
        declined=state.declined,
        troubles=(*troubles, *state.refusals),
        ranks=tuple(seen.progress(rank) for _, rank in sorted(seen.ranks.items())),
        nodes=tuple(
            replace(_node(bus, node), claimed=int(known.get(f"{CLAIMED}{node}", 0.0))) for node in context.nodes
        ),
        quiet="" if stale else quiet,
        engine=seen.engine,
        canary=seen.canary,
        engine_address=context.url,
        simulated=context.simulated,
        request=seen.request,
        answers=seen.answers,
        unverified=state.unverified,
        up_since=state.ready_at,
        prefixes=seen.prefixes,
        disk_cache=seen.disk_cache,
        cache_tiers=seen.cache_tiers,
    )


def _awaited(state: State) -> str:
    if state.phase is not DeploymentState.BACKING_OFF:
        return _AWAITED.get(state.work, "")
    return f"back-off before {f'launch {state.attempt + 1}' if state.gone else 'its ranks are stopped again'}"


def _node(bus: EventBus, node: str) -> LiveNode:
    """One that was not sampled yet has no time."""
    at = bus.context.now() if bus.detectors.missed(node) else 0.0
    return bus.detectors.live_node(node) or LiveNode(node, at, reached=False)


class Announcer:
    """seen: what the supervisor itself saw of the machines since then."""

    def __init__(self, context: DeploymentContext, seen: Callable[[float], tuple[str, ...]]) -> None:
        self._context, self._seen = context, seen

    async def begin(self, known: State | None) -> None:
        """known: what a supervisor before has left, None where nothing is known of one."""
        context, desired = self._context, self._context.desired
        if known is None:
            recipe = desired.recipe
            made = DeploymentRecord(
                deployment=context.name,
                at=context.now(),
                recipe=recipe.label,
                recipe_hash=recipe.hash,
                engine=recipe.engine.label,
                nodes=context.nodes,
                by=desired.by,
                simulated=context.simulated,
            )
            await context.store.began(made)
            context.remember({RELAUNCHES: 0.0})
        else:
            then = context.journal.recall()
            told = then.get(LEFT, 0.0) >= then.get(BEGUN, 0.0) > 0
            how = "the one before was asked to end" if told else "the one before was killed, or its node went down"
            await note_restart(context, "supervisor", how)
            if known.incident:
                text = "a supervisor watches it again"
                await context.store.note(context.name, IncidentEvent(context.now(), WATCHED, text), known.incident)
        context.remember({BEGUN: context.now()})
        context.seen.relaunches = int(context.journal.recall().get(RELAUNCHES, 0.0))
        context.seen.incidents = await context.store.counts(context.name)
        context.notice(f"supervising {context.name} on {', '.join(context.nodes)}")

    async def take_up(self, state: State) -> State:
        """The first state after `up`, with the outage that it took over; where it serves already, that ends now."""
        if not await self._context.store.is_handed(self._context.seen.incidents[1]):
            return state
        if state.phase is not DeploymentState.READY:
            return replace(state, handed=True)
        await self.report(ServedAgain(), state)
        return state

    async def left(self, state: State) -> None:
        context = self._context
        if state.phase is DeploymentState.STOPPED:
            await context.store.ended(context.name, context.now(), "a person has taken over")
            context.notice(f"{context.name}: a person has taken over; this supervisor ends")
        else:
            await self._noted_end(state)
            context.remember({LEFT: context.now()})
            context.notice(f"the supervisor of {context.name} ends; nothing was stopped ({state.phase})", warning=True)

    async def _noted_end(self, state: State) -> None:
        """Readers of an open incident learn that nothing watches; the next supervisor learns of one that was handed."""
        context, at = self._context, self._context.now()
        if number := state.incident or (context.seen.captured if state.work is Work.CAPTURE else 0):
            text = "the supervisor was asked to end: nothing watches it until one is started"
            await context.store.note(context.name, IncidentEvent(at, UNWATCHED, text), number)
        elif state.handed and state.work is Work.SWAP:
            text = "the supervisor ends for the `up` that takes over"
            await context.store.note(context.name, IncidentEvent(at, HANDED, text), context.seen.incidents[1])

    async def changed(self, before: State, state: State) -> None:
        if (before.phase, before.work, before.reason) == (state.phase, state.work, state.reason):
            return
        context = self._context
        number = state.incident or before.incident
        doing = f" ({state.work})" if state.work else ""
        text = f"{state.phase}{doing}{f': {state.reason}' if state.reason else ''}"
        context.notice(f"{context.name}: {text}")
        await context.store.note(context.name, IncidentEvent(context.now(), str(state.phase), text), number)

    async def report(self, word: Told, state: State) -> None:
        context = self._context
        if isinstance(word, Refuse):
            # When its launch is due, and then as long as the last start took; 0 when either is not known
            took = context.journal.recall().get(STARTED_IN, 0.0)
            context.seen.why, context.seen.back_at = word.why, word.back_at + took if word.back_at and took else 0.0
        elif isinstance(word, Admit):
            context.seen.why, context.seen.back_at = "", 0.0
        elif isinstance(word, Close):
            serving = context.now() if state.phase is DeploymentState.READY else 0.0
            context.seen.closed = word.incident or context.seen.incidents[1]
            context.seen.ended = await context.store.close(
                context.seen.closed, context.now(), word.outcome, serving, context.uptime()
            )
            context.seen.incidents = await context.store.counts(context.name)
        elif isinstance(word, ServedAgain):
            number = context.seen.closed or context.seen.incidents[1]
            await context.store.served(number, context.now(), context.uptime())
        elif isinstance(word, Record):
            await self._recorded(word)
        elif word.what == "opened" and not state.incident:
            context.seen.opening = word
        else:
            over = word.what in ("closed", "given-up")
            announce(context, word, state, state.incident or (context.seen.closed if over else 0))

    async def _recorded(self, word: Record) -> None:
        """Write the outage down, then its cause. It has no evidence: it was over before anything was saved."""
        context = self._context
        over = Incident(context.name, word.kind, word.what, word.since, simulated=context.simulated)
        opened = await context.store.open(over)
        await context.store.close(opened.number, word.at, "recovered without a restart", word.at)
        context.seen.incidents = await context.store.counts(context.name)
        found = Evidence(context.name, seen=list(self._seen(word.since)))
        for first in (await explain(context.services, found, context.fix_values)).named[:1]:
            await context.store.explain(opened.number, first.title, first.code, first.fix)


async def note_restart(context: DeploymentContext, who: str, how: str, seen: Mapping[str, float] | None = None) -> None:
    """Notes a restart of a program of ours: in the log, the history and, counted since `up`, in `status`.

    seen: what shows that it was this restart, written down together with its count: a supervisor that is killed in
    between would know the new process and not have counted it.
    """
    at, before = context.now(), context.journal.recall().get(f"{RESTARTS}{who}", 0.0)
    context.remember({**(seen or {}), f"{RESTARTS}{who}": before + 1.0, f"{RESTARTED}{who}": at})
    context.notice(f"{context.name}: the {who} was restarted: {how}", warning=True)
    await context.store.note(context.name, IncidentEvent(at, "restarted", f"the {who} was restarted: {how}"))


def announce(context: DeploymentContext, word: Announce, state: State, incident: int) -> None:
    context.seen.opening = None
    context.notice(f"{context.name}: {word.what}: {word.text}", warning=word.what not in ("closed", "recovered"))
    ended = context.seen.ended if context.seen.ended and context.seen.ended.number == incident else None
    news = News(
        what=word.what,
        text=mask_keys(word.text),
        deployment=context.name,
        at=context.now(),
        state=str(state.phase),
        incident=incident,
        folder=context.seen.folder if incident else "",
        simulated=context.simulated,
        fault=ended.what if ended else "",
        away=ended.away if ended else None,
        away_word=ended.away_word if ended else "",
    )
    for notifier in context.notifiers:
        notifier.announce(news)
