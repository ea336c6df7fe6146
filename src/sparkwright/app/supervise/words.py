"""What the loop tells: the store, the hooks, the log, and through live.json the gateway."""

from collections.abc import Callable

from sparkwright.app.incident import Evidence, explain
from sparkwright.app.supervise.site import BEGUN, LEFT, RELAUNCHES, RESTARTED, RESTARTS, STARTED_IN, Site
from sparkwright.domain.deployment import DeploymentState
from sparkwright.domain.incident import Deployed, Incident, IncidentEvent, News
from sparkwright.supervision.effects import Admit, Announce, Close, Record, Refuse
from sparkwright.supervision.state import State

Word = Refuse | Admit | Close | Record | Announce


class Words:
    """seen: what the supervisor itself saw of the machines since then."""

    def __init__(self, site: Site, seen: Callable[[float], tuple[str, ...]]) -> None:
        self._site, self._seen = site, seen

    async def begin(self, new: bool) -> None:
        """new: nothing is known of a supervisor before."""
        site, desired = self._site, self._site.desired
        if new:
            recipe = desired.recipe
            made = Deployed(
                deployment=site.name,
                at=site.now(),
                recipe=recipe.label,
                recipe_hash=recipe.hash,
                engine=f"{recipe.engine.name} {recipe.engine.version}",
                nodes=site.nodes,
                by=desired.by,
                simulated=site.simulated,
            )
            await site.keep.store.began(made)
            site.remember({RELAUNCHES: 0.0})
        else:
            then = site.keep.journal.recall()
            told = then.get(LEFT, 0.0) >= then.get(BEGUN, 0.0) > 0
            how = "the one before was told to end" if told else "the one before was killed, or its node went down"
            await note_restart(site, "supervisor", how)
        site.remember({BEGUN: site.now()})
        site.seen.relaunches = int(site.keep.journal.recall().get(RELAUNCHES, 0.0))
        site.seen.incidents = await site.keep.store.counts(site.name)
        site.say(f"supervising {site.name} on {', '.join(site.nodes)}")

    async def left(self, state: State) -> None:
        site = self._site
        if state.phase is DeploymentState.STOPPED:
            await site.keep.store.ended(site.name, site.now(), "a person has taken over")
            site.say(f"{site.name}: a person has taken over; this supervisor ends")
        else:
            site.remember({LEFT: site.now()})
            site.say(f"the supervisor of {site.name} ends; nothing was stopped ({state.phase})", warning=True)

    async def changed(self, before: State, state: State) -> None:
        if (before.phase, before.work, before.reason) == (state.phase, state.work, state.reason):
            return
        site = self._site
        number = state.incident or before.incident
        doing = f" ({state.work})" if state.work else ""
        text = f"{state.phase}{doing}{f': {state.reason}' if state.reason else ''}"
        site.say(f"{site.name}: {text}")
        await site.keep.store.note(site.name, IncidentEvent(site.now(), str(state.phase), text), number)

    def _back_at(self, word: Refuse) -> float:
        """When its launch is due, and then as long as the last start took; 0 when either is not known."""
        took = self._site.keep.journal.recall().get(STARTED_IN, 0.0)
        return word.back_at + took if word.back_at and took else 0.0

    async def tell(self, word: Word, state: State) -> None:
        site = self._site
        if isinstance(word, Refuse):
            site.seen.why, site.seen.back_at = word.why, self._back_at(word)
        elif isinstance(word, Admit):
            site.seen.why, site.seen.back_at = "", 0.0
        elif isinstance(word, Close):
            serving = site.now() if state.phase is DeploymentState.READY else 0.0
            site.seen.closed = word.incident or site.seen.incidents[1]
            await site.keep.store.close(site.seen.closed, site.now(), word.outcome, serving)
            site.seen.incidents = await site.keep.store.counts(site.name)
        elif isinstance(word, Record):
            await self._recorded(word)
        elif word.what == "opened" and not state.incident:
            site.seen.opening = word
        else:
            over = word.what in ("closed", "given-up")
            announce(site, word, state, state.incident or (site.seen.closed if over else 0))

    async def _recorded(self, word: Record) -> None:
        """It has no evidence: it was over before anything was saved."""
        site = self._site
        over = Incident(site.name, word.kind, word.what, word.since, simulated=site.simulated)
        opened = await site.keep.store.open(over)
        found = Evidence(site.name, seen=list(self._seen(word.since)))
        for first in (await explain(site.world, found, site.words)).causes[:1]:
            await site.keep.store.explain(opened.number, first.title, first.code, first.fix)
        await site.keep.store.close(opened.number, word.at, "recovered without a restart", word.at)
        site.seen.incidents = await site.keep.store.counts(site.name)


async def note_restart(site: Site, who: str, how: str) -> None:
    """Of a program of ours: in the log, the history and, counted since `up`, in `status`."""
    at, before = site.now(), site.keep.journal.recall().get(f"{RESTARTS}{who}", 0.0)
    site.remember({f"{RESTARTS}{who}": before + 1.0, f"{RESTARTED}{who}": at})
    site.say(f"{site.name}: the {who} was restarted: {how}", warning=True)
    await site.keep.store.note(site.name, IncidentEvent(at, "restarted", f"the {who} was restarted: {how}"))


def announce(site: Site, word: Announce, state: State, incident: int) -> None:
    site.seen.opening = None
    site.say(f"{site.name}: {word.what}: {word.text}", warning=word.what not in ("closed", "recovered"))
    news = News(
        what=word.what,
        text=word.text,
        deployment=site.name,
        at=site.now(),
        state=str(state.phase),
        incident=incident,
        folder=site.seen.folder if incident else "",
        simulated=site.simulated,
    )
    site.keep.notifier.announce(news)
