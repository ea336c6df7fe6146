"""The ways from one phase to the next: what changes in the state, what is to be done, and when.

Every launch goes the same way: capture, stop, verified gone, back-off, launch. No handler takes another.
"""

from dataclasses import replace

from sparkwright.domain.incident import TAKEN_OVER
from sparkwright.domain.live import DeploymentState
from sparkwright.domain.units import duration
from sparkwright.supervisor.core.state import (
    DISK_FULL,
    Admit,
    Announce,
    Capture,
    Close,
    Effect,
    Launch,
    Policy,
    Reboot,
    Recovery,
    Refuse,
    ServedAgain,
    State,
    StopRanks,
    SwapRanks,
    WatchRanks,
    Work,
)

_STRENGTH = tuple(Recovery)
Boots = tuple[tuple[str, str], ...]


def stronger(one: Recovery, other: Recovery) -> Recovery:
    return max(one, other, key=_STRENGTH.index)


def relaunch_helps(recovery: Recovery) -> bool:
    """True if a stop and a launch can be the remedy."""
    return recovery not in (Recovery.REBOOT, Recovery.POWER_CYCLE)


def launch_wait(attempt: int, policy: Policy) -> float:
    """Seconds before the launch with this number since the deployment was stable; the first waits for nothing."""
    waits = (0.0, *policy.backoffs)
    return waits[min(attempt, len(waits) - 1)]


def broken_off(state: State, at: float, policy: Policy) -> State:
    """The state at the end of the service, with its launch count: the launch before counts unless the service was
    stable."""
    if not state.ready_at:
        return state
    there = replace(state, down=at, rebooters=())
    if at - state.ready_at < policy.stable:
        return there
    mine = state.launches[-1:] >= (state.down,)
    return replace(there, attempt=0, launches=state.launches[:-1] if mine else state.launches)


def rebooted(state: State, boots: Boots) -> State:
    """The state with these boot markers. Launches of an incident in which somebody reboots a node do not count: once a
    node, since repeated reboots at each launch are nobody's doing; nor do our own reboots count."""
    before = dict(state.boots)
    known = replace(state, boots=tuple((before | dict(boots)).items()))
    nodes = {node for node, marker in boots if before.get(node, marker) != marker}.difference(state.rebooters)
    if not nodes or not state.down or state.ready_at or state.rebooted:
        return known
    return uncounted(replace(known, rebooters=(*state.rebooters, *sorted(nodes))))


def uncounted(state: State) -> State:
    """The state without the launches of this incident."""
    before = tuple(when for when in state.launches if when < state.down)
    attempt = max(0, state.attempt - len(state.launches) + len(before))
    return replace(state, launches=before, attempt=attempt, counted=False)


def too_many(state: State, at: float, policy: Policy) -> str:
    """The number of faults, as text, if no further launch is allowed; else ''. Times ahead of the clock count.

    No window sees a loop whose every load takes an hour, so launches without a stable service between are counted too.
    """
    before, attempt = (state.launches[:-1], state.attempt - 1) if state.counted else (state.launches, state.attempt)
    for most, span in policy.windows:
        if sum(at - when < span for when in before) >= most:
            return f"{most + 1} faults within {duration(span)}"
    in_a_row = max((most for most, _ in policy.windows), default=attempt + 1)
    return f"{in_a_row + 1} faults in a row" if attempt >= in_a_row else ""


def remembered(launches: tuple[float, ...], at: float, policy: Policy) -> tuple[float, ...]:
    """The launches that some window still counts."""
    longest = max((span for _, span in policy.windows), default=0.0)
    return tuple(when for when in launches if at - when < longest)


def is_due_at(due: float, at: float, policy: Policy) -> bool:
    """True if it is due, also when the clock was set back so far that no back-off explains the wait."""
    return at >= due or due - at > max((*policy.backoffs, policy.again))


Move = tuple[State, tuple[Effect, ...]]

_PERSON = {
    DeploymentState.FAILED: "start it again with `sparkwright up` once the cause is fixed",
    DeploymentState.HALTED: "`sparkwright restart` starts it again",
    DeploymentState.NEEDS_REBOOT: "reboot all of its nodes; it starts again automatically",
    DeploymentState.NEEDS_POWER_CYCLE: "take all of its nodes off power for a minute; it starts again automatically",
}
_OUTCOME = {
    DeploymentState.FAILED: "given up",
    DeploymentState.NEEDS_REBOOT: "needs a reboot",
    DeploymentState.NEEDS_POWER_CYCLE: "needs a power cycle",
}


def begin_work(state: State, phase: DeploymentState, work: Work, at: float) -> State:
    """The next work; whatever was under way is over with it."""
    since = state.since if state.phase is phase else at
    return replace(state, phase=phase, since=since, work=work, turn=state.turn + 1, due=0.0)


def capture(state: State, at: float, policy: Policy) -> Move:
    """Nothing is served from here on. What is wrong is in state.fault, .cause and .evidence."""
    state = broken_off(state, at, policy)
    opened = replace(state, reason=state.cause, ready_at=0.0, refusing=True, refusals=(), planned=False, idle=False)
    there = begin_work(opened, DeploymentState.DRAINING, Work.CAPTURE, at)
    back_at = at + launch_wait(there.attempt, policy) if relaunch_helps(there.recovery) else 0.0
    saving = Capture(there.incident, there.fault, there.cause, there.evidence, there.turn, there.lost)
    return there, (Refuse("; ".join([there.reason, *disk_troubles(there)]), back_at), saving)


def stop(state: State, at: float) -> Move:
    there = begin_work(replace(state, reason=state.cause, gone=False), DeploymentState.DRAINING, Work.STOP, at)
    return there, (StopRanks(there.turn),)


def relaunch(state: State, at: float, policy: Policy) -> Move:
    """The move after a verified stop: launch at once, later, at the next request, or never again."""
    if state.idle:
        return move_to_sleep(state, at, state.cause)
    pause = 0.0 if state.counted else launch_wait(state.attempt, policy)
    if pause and not too_many(state, at + pause, policy):
        return back_off(state, at, pause, state.cause)
    return launch(state, at, policy)


def back_off(state: State, at: float, pause: float, why: str) -> Move:
    waiting = replace(state, phase=DeploymentState.BACKING_OFF, since=at, work=Work.NONE, reason=why)
    there = replace(waiting, due=at + pause, refusing=True)
    return there, (gateway(there),)


def launch(state: State, at: float, policy: Policy) -> Move:
    """Launches the ranks, once they are verified gone, and never past the guard. What is counted is counted at its new
    time."""
    if not state.planned and (limit := too_many(state, at, policy)):
        return move_to_rest(state, DeploymentState.FAILED, f"{limit}: {state.cause}", at)
    before = state.launches[:-1] if state.counted else state.launches
    attempt = state.attempt if state.counted or state.planned else state.attempt + 1
    launches = remembered(before, at, policy) + (() if state.planned else (at,))
    reason = state.cause if state.idle else f"starting again: {state.cause}"
    launching = replace(state, gone=False, launches=launches, attempt=attempt, reason=reason)
    there = begin_work(launching, DeploymentState.STARTING, Work.LAUNCH, at)
    return there, (gateway(there), Launch(there.turn))


def restart(state: State, at: float, why: str, policy: Policy) -> Move:
    """The move for a person's restart: neither an incident nor a counted launch."""
    ended = without_incident(broken_off(state, at, policy))
    asked = replace(ended, cause=why, ready_at=0.0, refusing=True, planned=True, attempt=0, down=at)
    asked = replace(asked, handed=waited_for(state))
    moved, effects = stop(asked, at)
    return moved, (Refuse(why, at), *taken_over(state), *effects)


def stop_idle(state: State, at: float, why: str, policy: Policy) -> Move:
    """The move for an idle stop. The stop checks for a new request once the gateway holds the next ones."""
    ended = without_incident(broken_off(state, at, policy))
    moved, effects = stop(replace(ended, cause=why, ready_at=0.0, refusing=True, idle=True, down=at), at)
    return moved, (Refuse(why), *taken_over(state), *effects)


def move_to_sleep(state: State, at: float, why: str) -> Move:
    """Stopped until a request comes."""
    stopped = replace(without_incident(state), reason=why, refusing=True, idle=True, gone=True)
    there = replace(stopped, phase=DeploymentState.ON_DEMAND, since=at, work=Work.NONE)
    return there, (gateway(there),)


def move_to_wake(state: State, at: float, policy: Policy) -> Move:
    return launch(replace(state, planned=True, cause="a request has asked for it"), at, policy)


def move_to_halt(state: State, at: float, why: str, policy: Policy) -> Move:
    """The move for a person's halt: no incident. Supervisor and gateway stay, for a restart."""
    ended = without_incident(broken_off(state, at, policy))
    asked = replace(ended, cause=why, ready_at=0.0, refusing=True, halted=True, attempt=0, down=at)
    moved, effects = stop(asked, at)
    return moved, (Refuse(why), *taken_over(state), *effects)


def halted(state: State, at: float) -> Move:
    """All ranks are verified gone."""
    there = replace(without_incident(state), phase=DeploymentState.HALTED, since=at, work=Work.NONE)
    there = replace(there, reason=state.cause, refusing=True, gone=True)
    return there, (gateway(there),)


def move_to_swap(state: State, at: float, why: str) -> Move:
    """The nodes are another's; the gateway stays and gives the reason."""
    asked = replace(without_incident(state), reason=why, ready_at=0.0, refusing=True, gone=False)
    asked = replace(asked, handed=waited_for(state))
    there = begin_work(asked, DeploymentState.STARTING, Work.SWAP, at)
    return there, (gateway(there), *taken_over(state), SwapRanks(there.turn))


def taken_over(state: State) -> tuple[Effect, ...]:
    return (Close(state.incident, TAKEN_OVER),) if state.fault or state.incident else ()


def waited_for(state: State) -> bool:
    """True if clients get nothing because of an incident, also of one that a person took over before."""
    return bool(state.fault or state.incident or state.handed)


def move_to_watch(state: State, at: float) -> Move:
    there = begin_work(replace(state, gone=False, counted=False), DeploymentState.LOADING, Work.WATCH, at)
    return there, (WatchRanks(there.turn),)


def reboot(state: State, at: float) -> Move:
    known = replace(state, rebooted=True, reason=f"its nodes are being rebooted: {state.cause}")
    there = begin_work(known, DeploymentState.DRAINING, Work.REBOOT, at)
    return there, (gateway(there), Reboot(there.boots, there.turn))


def serve(state: State, at: float) -> Move:
    """A real token: the incident is over. Troubles of the old ranks are forgotten; detectors start without history."""
    counted = uncounted(state) if state.rebooters else state
    there = replace(without_incident(counted), phase=DeploymentState.READY, since=at, work=Work.NONE, ready_at=at)
    text = f"serving again after: {state.cause}" if state.cause else "serving"
    if state.idle:
        return there, (Admit(),)
    again = (ServedAgain(),) if state.handed else ()
    if state.incident:
        return there, (Admit(), *again, Close(state.incident, "serving again"), Announce("closed", text))
    return there, (Admit(), *again, *([Announce("recovered", text)] if state.refusing else []))


def move_to_rest(state: State, phase: DeploymentState, why: str, at: float) -> Move:
    """A person has to act; the gateway's answer has how."""
    why = "; ".join([why, *disk_troubles(state)])
    there = replace(
        without_incident(state), phase=phase, since=at, work=Work.NONE, reason=why, refusing=True, gone=state.gone
    )
    closed = (Close(state.incident, _OUTCOME[phase]),) if state.incident else ()
    return there, (gateway(there), *closed, Announce("given-up", f"{why}; {_PERSON[phase]}"))


def gateway(state: State) -> Effect:
    """The gateway's effect in this state, for a loop that does not know it."""
    if not state.refusing:
        return Admit()
    why = [sentence for _, sentence in state.refusals] or [state.reason]
    hint = [_PERSON[state.phase]] if state.phase in _PERSON else []
    # When the start begins, or has begun: the loop knows how long one takes. 0 where nobody knows.
    begun = state.phase in (DeploymentState.STARTING, DeploymentState.LOADING)
    back_at = state.since if begun else state.due if state.gone else 0.0
    return Refuse("; ".join([*why, *disk_troubles(state), *hint]), back_at)


def disk_troubles(state: State) -> tuple[str, ...]:
    """Sentences about disks that are full or read-only: they end nothing, but who looks for the cause must know."""
    return tuple(sentence for kind, sentence in state.troubles if kind.startswith(DISK_FULL))


def without_incident(state: State) -> State:
    """Nothing of the incident and of what was wrong is left but the count of launches."""
    return replace(
        state, reason="", fault="", cause="", evidence=(), recovery=Recovery.NONE, incident=0, counted=False, due=0.0,
        unverified=0.0, refusing=False, troubles=(), refusals=(), rebooted=False, planned=False, lost=0.0,
        unannounced=0.0, idle=False, declined=0.0, halted=False, handed=False,
    )  # fmt: skip
