"""The deployment at this moment, for whoever looks."""

from collections.abc import Mapping

from sparkwright.domain.live import DeploymentState, Live, LiveNode, LiveRestart
from sparkwright.supervision.state import STALLED, State, Work
from sparkwright.supervisor.context import RESTARTED, RESTARTS, STARTED_IN
from sparkwright.supervisor.event_bus import EventBus
from sparkwright.supervisor.sources.listing import waited_for

_AWAITED = {
    Work.CAPTURE: "its evidence to be saved",
    Work.STOP: "its ranks to be stopped",
    Work.LAUNCH: "its ranks to be started",
    Work.WATCH: "the first token of its start",
    Work.REBOOT: "its nodes to be rebooted",
    Work.SWAP: "what replaces it to be ready",
}


def view(bus: EventBus, state: State) -> Live:
    context, seen = bus.context, bus.context.seen
    at, quiet = context.now(), bus.detectors.quiet(context.now())
    docker = f"Docker on {', '.join(waited_for(bus))}" if state.refusing and waited_for(bus) else ""
    stale = dict(state.troubles).get(STALLED)
    others = tuple((kind, said) for kind, said in state.troubles if kind != STALLED)
    troubles = (*others, (STALLED, quiet or stale)) if stale and bus.serving else others
    reason = quiet if quiet and state.reason == stale else state.reason
    known = context.keep.journal.recall()
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
        restarts=_restarts(known),
        incident=state.incident,
        last_incident=seen.incidents[1],
        incidents=seen.incidents[0],
        relaunches=seen.relaunches,
        troubles=(*troubles, *state.refusals),
        ranks=tuple(rank for _, rank in sorted(seen.ranks.items())),
        nodes=tuple(_node(bus, node) for node in context.nodes),
        quiet="" if stale else quiet,
        engine=seen.engine,
        canary=seen.canary,
        engine_address=context.url,
        simulated=context.simulated,
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


def _node(bus: EventBus, node: str) -> LiveNode:
    """One that was not looked at yet has no time."""
    at = bus.context.now() if bus.detectors.missed(node) else 0.0
    return bus.detectors.live_node(node) or LiveNode(node, at, reached=False)
