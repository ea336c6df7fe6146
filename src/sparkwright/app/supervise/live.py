"""The deployment at this moment, for whoever looks."""

from collections.abc import Mapping

from sparkwright.app.supervise.senses import Senses
from sparkwright.app.supervise.site import RESTARTED, RESTARTS, STARTED_IN
from sparkwright.app.supervise.sources.listing import waited_for
from sparkwright.domain.live import DeploymentState, Live, LiveNode, LiveRestart
from sparkwright.supervision.state import STALLED, State, Work

_AWAITED = {
    Work.CAPTURE: "its evidence to be saved",
    Work.STOP: "its ranks to be stopped",
    Work.LAUNCH: "its ranks to be started",
    Work.WATCH: "the first token of its start",
    Work.REBOOT: "its nodes to be rebooted",
    Work.SWAP: "what replaces it to be ready",
}


def view(senses: Senses, state: State) -> Live:
    site, seen = senses.site, senses.site.seen
    at, quiet = site.now(), senses.detectors.quiet(site.now())
    docker = f"Docker on {', '.join(waited_for(senses))}" if state.refusing and waited_for(senses) else ""
    stale = dict(state.troubles).get(STALLED)
    others = tuple((kind, said) for kind, said in state.troubles if kind != STALLED)
    troubles = (*others, (STALLED, quiet or stale)) if stale and senses.serving else others
    reason = quiet if quiet and state.reason == stale else state.reason
    known = site.keep.journal.recall()
    return Live(
        at=at,
        deployment=site.name,
        phase=state.phase,
        since=state.since,
        reason=reason,
        refusing=state.refusing,
        why=seen.why if state.refusing else "",
        back_at=seen.back_at if state.refusing and not (seen.doing or docker) else 0.0,
        awaited=docker or seen.doing or _awaited(state),
        due=0.0 if docker else state.due,
        usual=known.get(STARTED_IN, 0.0),
        restarts=_restarts(known),
        incident=state.incident,
        last_incident=seen.incidents[1],
        incidents=seen.incidents[0],
        relaunches=seen.relaunches,
        troubles=(*troubles, *state.refusals),
        ranks=tuple(rank for _, rank in sorted(seen.ranks.items())),
        nodes=tuple(_node(senses, node) for node in site.nodes),
        quiet="" if stale else quiet,
        engine=seen.engine,
        canary=seen.canary,
        engine_address=site.url,
        simulated=site.simulated,
        request=seen.request,
    )


def _restarts(known: Mapping[str, float]) -> tuple[LiveRestart, ...]:
    counted = {name.removeprefix(RESTARTS): int(count) for name, count in known.items() if name.startswith(RESTARTS)}
    return tuple(LiveRestart(who, n, known.get(f"{RESTARTED}{who}", 0.0)) for who, n in sorted(counted.items()))


def _awaited(state: State) -> str:
    if state.phase is not DeploymentState.BACKING_OFF:
        return _AWAITED.get(state.work, "")
    return (
        f"back-off before launch {state.attempt + 1}" if state.gone else "back-off before its ranks are stopped again"
    )


def _node(senses: Senses, node: str) -> LiveNode:
    """One that was not looked at yet has no time."""
    at = senses.site.now() if senses.detectors.missed(node) else 0.0
    return senses.detectors.live_node(node) or LiveNode(node, at, reached=False)
