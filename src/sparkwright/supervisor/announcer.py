"""What the loop tells: the store, the hooks, the log, and through live.json the gateway."""

from collections.abc import Callable

from sparkwright.app.incident import Evidence, explain
from sparkwright.domain.deployment import DeploymentState
from sparkwright.domain.incident import Deployed, Incident, IncidentEvent, News
from sparkwright.supervision.effects import Admit, Announce, Close, Record, Refuse
from sparkwright.supervision.state import State
from sparkwright.supervisor.context import BEGUN, LEFT, RELAUNCHES, RESTARTED, RESTARTS, STARTED_IN, DeploymentContext

Word = Refuse | Admit | Close | Record | Announce


class Announcer:
    """seen: what the supervisor itself saw of the machines since then."""

    def __init__(self, context: DeploymentContext, seen: Callable[[float], tuple[str, ...]]) -> None:
        self._context, self._seen = context, seen

    async def begin(self, new: bool) -> None:
        """new: nothing is known of a supervisor before."""
        context, desired = self._context, self._context.desired
        if new:
            recipe = desired.recipe
            made = Deployed(
                deployment=context.name,
                at=context.now(),
                recipe=recipe.label,
                recipe_hash=recipe.hash,
                engine=f"{recipe.engine.name} {recipe.engine.version}",
                nodes=context.nodes,
                by=desired.by,
                simulated=context.simulated,
            )
            await context.keep.store.began(made)
            context.remember({RELAUNCHES: 0.0})
        else:
            then = context.keep.journal.recall()
            told = then.get(LEFT, 0.0) >= then.get(BEGUN, 0.0) > 0
            how = "the one before was told to end" if told else "the one before was killed, or its node went down"
            await note_restart(context, "supervisor", how)
        context.remember({BEGUN: context.now()})
        context.seen.relaunches = int(context.keep.journal.recall().get(RELAUNCHES, 0.0))
        context.seen.incidents = await context.keep.store.counts(context.name)
        context.say(f"supervising {context.name} on {', '.join(context.nodes)}")

    async def left(self, state: State) -> None:
        context = self._context
        if state.phase is DeploymentState.STOPPED:
            await context.keep.store.ended(context.name, context.now(), "a person has taken over")
            context.say(f"{context.name}: a person has taken over; this supervisor ends")
        else:
            context.remember({LEFT: context.now()})
            context.say(f"the supervisor of {context.name} ends; nothing was stopped ({state.phase})", warning=True)

    async def changed(self, before: State, state: State) -> None:
        if (before.phase, before.work, before.reason) == (state.phase, state.work, state.reason):
            return
        context = self._context
        number = state.incident or before.incident
        doing = f" ({state.work})" if state.work else ""
        text = f"{state.phase}{doing}{f': {state.reason}' if state.reason else ''}"
        context.say(f"{context.name}: {text}")
        await context.keep.store.note(context.name, IncidentEvent(context.now(), str(state.phase), text), number)

    def _back_at(self, word: Refuse) -> float:
        """When its launch is due, and then as long as the last start took; 0 when either is not known."""
        took = self._context.keep.journal.recall().get(STARTED_IN, 0.0)
        return word.back_at + took if word.back_at and took else 0.0

    async def tell(self, word: Word, state: State) -> None:
        context = self._context
        if isinstance(word, Refuse):
            context.seen.why, context.seen.back_at = word.why, self._back_at(word)
        elif isinstance(word, Admit):
            context.seen.why, context.seen.back_at = "", 0.0
        elif isinstance(word, Close):
            serving = context.now() if state.phase is DeploymentState.READY else 0.0
            context.seen.closed = word.incident or context.seen.incidents[1]
            await context.keep.store.close(context.seen.closed, context.now(), word.outcome, serving)
            context.seen.incidents = await context.keep.store.counts(context.name)
        elif isinstance(word, Record):
            await self._recorded(word)
        elif word.what == "opened" and not state.incident:
            context.seen.opening = word
        else:
            over = word.what in ("closed", "given-up")
            announce(context, word, state, state.incident or (context.seen.closed if over else 0))

    async def _recorded(self, word: Record) -> None:
        """It has no evidence: it was over before anything was saved."""
        context = self._context
        over = Incident(context.name, word.kind, word.what, word.since, simulated=context.simulated)
        opened = await context.keep.store.open(over)
        found = Evidence(context.name, seen=list(self._seen(word.since)))
        for first in (await explain(context.services, found, context.words)).causes[:1]:
            await context.keep.store.explain(opened.number, first.title, first.code, first.fix)
        await context.keep.store.close(opened.number, word.at, "recovered without a restart", word.at)
        context.seen.incidents = await context.keep.store.counts(context.name)


async def note_restart(context: DeploymentContext, who: str, how: str) -> None:
    """Of a program of ours: in the log, the history and, counted since `up`, in `status`."""
    at, before = context.now(), context.keep.journal.recall().get(f"{RESTARTS}{who}", 0.0)
    context.remember({f"{RESTARTS}{who}": before + 1.0, f"{RESTARTED}{who}": at})
    context.say(f"{context.name}: the {who} was restarted: {how}", warning=True)
    await context.keep.store.note(context.name, IncidentEvent(at, "restarted", f"the {who} was restarted: {how}"))


def announce(context: DeploymentContext, word: Announce, state: State, incident: int) -> None:
    context.seen.opening = None
    context.say(f"{context.name}: {word.what}: {word.text}", warning=word.what not in ("closed", "recovered"))
    news = News(
        what=word.what,
        text=word.text,
        deployment=context.name,
        at=context.now(),
        state=str(state.phase),
        incident=incident,
        folder=context.seen.folder if incident else "",
        simulated=context.simulated,
    )
    context.keep.notifier.announce(news)
