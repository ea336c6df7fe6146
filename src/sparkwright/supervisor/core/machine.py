"""The supervisor's next step: what each event does in each phase, and the table of all of them.

Two works are never under way at once: a work begins only in moves.begin, with a turn of its own, and what answers to
another turn is late. A launch comes only from a state whose ranks are verified gone. Everything that the machine knows
is in State, so a supervisor that was killed between two steps resumes with Resumed as if it had only waited: what was
under way is taken up, once. A rank on a node that could not be asked is unseen, not ended. Detectors start without
history, so what they had found is dropped and found again. The gateway is updated in every phase: it may have missed
the last change.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, get_args

from sparkwright.domain.incident import TAKEN_OVER
from sparkwright.domain.live import DeploymentState
from sparkwright.supervisor.core import events, moves
from sparkwright.supervisor.core.moves import Move
from sparkwright.supervisor.core.state import (
    DISK_FULL,
    STALLED,
    Admit,
    Announce,
    Close,
    Policy,
    Record,
    Recovery,
    Refuse,
    State,
    Work,
)

# Seconds; what was shorter is in the supervisor's log and among its events only. Hooks wait longer.
OUTAGE, ANNOUNCED = 10.0, 15.0
Notes = tuple[tuple[str, str], ...]
RESTART_FAILED = "restart-failed"


def fault_while_serving(state: State, event: events.Fault, policy: Policy) -> Move:
    if event.recovery is Recovery.NONE:
        since = state.since if state.phase is DeploymentState.DEGRADED else event.at
        phase, troubles = DeploymentState.DEGRADED, _with(state.troubles, event)
        there = replace(state, phase=phase, since=since, troubles=troubles, reason=event.what)
        if event.kind in dict(state.troubles):
            return there, ()
        if event.kind == STALLED:
            return replace(there, unannounced=event.since), ()
        return there, (Announce("degraded", event.what),)
    if event.recovery is Recovery.REFUSE:
        there = replace(state, refusals=_with(state.refusals, event), refusing=True)
        if event.kind in dict(state.refusals):
            return there, ()
        return there, (Refuse(event.what), Announce("degraded", event.what))
    return broken(state, event, policy)


def broken(state: State, event: events.Fault, policy: Policy) -> Move:
    """The service is over: evidence first, then all ranks."""
    recovery = moves.stronger(state.recovery, event.recovery)
    there = replace(state, fault=event.kind, cause=event.what, evidence=event.evidence, recovery=recovery)
    there = replace(there, lost=state.lost or event.since or event.at)
    moved, (refuse, capture) = moves.capture(there, event.at, policy)
    opened = () if state.incident else (Announce("opened", event.what),)
    return moved, (refuse, *opened, capture)


def ticked_while_serving(state: State, event: events.Tick, policy: Policy) -> Move:
    """A stall that lasts is announced: not every hiccup wakes a person."""
    if not state.unannounced or event.at - state.unannounced < ANNOUNCED:
        return state, ()
    return replace(state, unannounced=0.0), (Announce("degraded", dict(state.troubles).get(STALLED, state.reason)),)


def cleared_while_serving(state: State, event: events.Cleared, policy: Policy) -> Move:
    """One kind may be a trouble that has grown into a refusal: both are over then."""
    there = _without(state, event.kind)
    if there == state:
        return state, ()
    admitted = state.refusing and not there.refusals
    whole = state.phase is DeploymentState.DEGRADED and not there.troubles
    phase, since = (DeploymentState.READY, event.at) if whole else (state.phase, state.since)
    reason = there.troubles[-1][1] if there.troubles else ""
    there = replace(there, phase=phase, since=since, reason=reason, refusing=bool(there.refusals))
    unheard = event.kind == STALLED and state.unannounced > 0
    there = replace(there, unannounced=0.0 if unheard else state.unannounced)
    lasted = event.at - event.since if event.since else 0.0
    said = f"{event.what}; it recovered without a restart" if lasted else f"{event.kind} is over"
    over = (Announce("recovered", said),) if admitted or (whole and not unheard) else ()
    trace = (Record(event.kind, event.what, event.since, event.at),) if lasted >= OUTAGE else ()
    return there, ((Admit(),) if admitted else ()) + trace + over


def fault_while_busy(state: State, event: events.Fault, policy: Policy) -> Move:
    """No second work. A stronger recovery is kept: an Xid that comes now shows that a relaunch will not do."""
    if event.recovery in (Recovery.NONE, Recovery.REFUSE):
        return replace(state, troubles=_with(state.troubles, event)), ()
    return _raised(state, event.recovery, event.what), ()


def fault_while_loading(state: State, event: events.Fault, policy: Policy) -> Move:
    """The watch that runs is cut off by the capture; its own answer comes too late then."""
    if event.recovery in (Recovery.NONE, Recovery.REFUSE):
        return fault_while_busy(state, event, policy)
    return broken(state, event, policy)


def cleared(state: State, event: events.Cleared, policy: Policy) -> Move:
    """A disk that has room again is no longer a reason that clients are given."""
    there = _without(state, event.kind)
    stale = there.refusing and event.kind.startswith(DISK_FULL) and there.troubles != state.troubles
    return there, (moves.gateway(there),) if stale else ()


def cleared_while_waiting(state: State, event: events.Cleared, policy: Policy) -> Move:
    """A node that answers again: what could not be verified gone may be by now."""
    there = _without(state, event.kind)
    return (there, ()) if state.gone or there == state else moves.stop(there, event.at)


def captured(state: State, event: events.Captured, policy: Policy) -> Move:
    known = replace(state, incident=event.incident, evidence=())
    if moves.relaunch_helps(state.recovery):
        known = replace(known, cause=event.cause or state.cause)
    return moves.stop(_raised(known, event.recovery, event.cause), event.at)


def stopped(state: State, event: events.Stopped, policy: Policy) -> Move:
    """Gone, or not. A launch is only for ranks that are verified gone, whatever the fault asked for.

    A rank that ended on one node while another node cannot be asked comes here with `left`: the unseen node's ranks may
    still hold memory and wait in NCCL. So it is stopped again and again, cheaply, until the node answers (after a
    reboot it does within minutes), and given up when policy.patience is over. These tries are no launches.
    A planned restart that gets this far has failed: an incident says so.
    """
    known = _raised(moves.rebooted(state, event.boots), event.recovery, event.why)
    if not moves.relaunch_helps(known.recovery):
        return _beyond_us(known, event.at, policy)
    if event.left:
        return _unverified(known, event, policy)
    if known.halted:
        return moves.halted(known, event.at)
    return moves.relaunch(replace(known, gone=True, unverified=0.0), event.at, policy)


def _unverified(state: State, event: events.Stopped, policy: Policy) -> Move:
    why = f"cannot verify that all is stopped: {', '.join(event.left)}"
    if state.planned and not state.incident:
        return broken(state, events.Fault(event.at, RESTART_FAILED, why, Recovery.RELAUNCH), policy)
    if not state.unverified:
        moved, effects = moves.back_off(
            replace(state, unverified=event.at), event.at, moves.launch_wait(1, policy), why
        )
        return moved, (*effects, Announce("waiting", why))
    if event.at - state.unverified >= policy.patience:
        return moves.move_to_rest(state, DeploymentState.FAILED, why, event.at)
    return moves.back_off(state, event.at, policy.again, why)


def _beyond_us(state: State, at: float, policy: Policy) -> Move:
    if state.recovery is Recovery.POWER_CYCLE:
        return moves.move_to_rest(state, DeploymentState.NEEDS_POWER_CYCLE, state.cause, at)
    if policy.allow_reboot and state.boots and not state.rebooted:
        return moves.reboot(state, at)
    return moves.move_to_rest(state, DeploymentState.NEEDS_REBOOT, state.cause, at)


def ticked_while_waiting(state: State, event: events.Tick, policy: Policy) -> Move:
    if not moves.is_due_at(state.due, event.at, policy):
        return state, ()
    if not state.gone:
        return moves.stop(state, event.at)
    if not moves.relaunch_helps(state.recovery):
        return _beyond_us(state, event.at, policy)
    return moves.launch(state, event.at, policy)


def launch_failed(state: State, event: events.LaunchFailed, policy: Policy) -> Move:
    """Its logs go into the same incident. Busy: nothing was started, so the ranks are as gone as they were."""
    if event.unseen and state.planned and not state.incident:
        return broken(state, events.Fault(event.at, RESTART_FAILED, event.why, Recovery.RELAUNCH), policy)
    if event.busy and state.work is Work.LAUNCH:
        return moves.back_off(replace(state, gone=True, counted=not state.planned), event.at, policy.again, event.why)
    if event.refused and state.idle:
        moved, effects = moves.move_to_sleep(state, event.at, event.why)
        return replace(moved, declined=event.at), effects
    recovery = moves.stronger(event.recovery, Recovery.RELAUNCH)
    fault = events.Fault(event.at, "launch-failed", event.why, recovery)
    return broken(replace(state, counted=False), fault, policy)


def not_stopped(state: State, event: events.Ready, policy: Policy) -> Move:
    """A request came before it was stopped for want of any."""
    return moves.serve(state, event.at) if state.idle else (state, ())


def asked_for(state: State, event: events.Demand, policy: Policy) -> Move:
    """A start that the plan refuses is not tried for every request."""
    if state.declined and 0 <= event.at - state.declined < policy.again:
        return state, ()
    return moves.move_to_wake(state, event.at, policy)


def rebooted(state: State, event: events.Rebooted, policy: Policy) -> Move:
    """No rank can have survived, but a launch comes after a verified stop, always."""
    return moves.stop(replace(state, recovery=Recovery.RELAUNCH), event.at)


def reboot_failed(state: State, event: events.RebootFailed, policy: Policy) -> Move:
    return _beyond_us(replace(state, cause=f"{state.cause}; the reboot failed: {event.why}"), event.at, policy)


def returned(state: State, event: events.Returned, policy: Policy) -> Move:
    if event.again:
        return moves.restart(state, event.at, event.why, policy)
    if event.halted:
        return moves.halted(replace(state, cause=event.why), event.at)
    return moves.move_to_rest(state, DeploymentState.FAILED, event.why, event.at)


def disarmed(state: State, event: events.Disarmed, policy: Policy) -> Move:
    there = replace(
        moves.without_incident(state), phase=DeploymentState.STOPPED, since=event.at, work=Work.NONE, ready_at=0.0
    )
    if not state.fault:
        return there, ()
    return there, (Close(state.incident, TAKEN_OVER), Announce("closed", "a person has taken over"))


def _raised(state: State, recovery: Recovery, why: str) -> State:
    """The state with the fault's own recovery and cause, if a relaunch cannot fix it."""
    if moves.relaunch_helps(recovery) or moves.stronger(state.recovery, recovery) is state.recovery:
        return state
    return replace(state, recovery=recovery, cause=why or state.cause)


def _with(notes: Notes, event: events.Fault) -> Notes:
    """The notes with this one in place of an older one of its kind: its sentence may have newer figures."""
    return tuple((dict(notes) | {event.kind: event.what}).items())


def _without(state: State, kind: str) -> State:
    troubles = tuple(note for note in state.troubles if note[0] != kind)
    return replace(state, troubles=troubles, refusals=tuple(note for note in state.refusals if note[0] != kind))


# A supervisor that resumes


def resumed_serving(state: State, event: events.Resumed, policy: Policy) -> Move:
    """Still serving, unless a rank has ended; the canary proves it. Whether it is degraded, detectors find again."""
    known = _known(state, event)
    if event.ended:
        moved, effects = broken(known, _exited(state, event), policy)
        return replace(moved, rebooters=tuple(sorted(_rebooted(state, event)))), effects
    since = state.since if state.phase is DeploymentState.READY else event.at
    return replace(known, phase=DeploymentState.READY, since=since, reason="", refusing=False), ()


def resumed_waiting(state: State, event: events.Resumed, policy: Policy) -> Move:
    """Resumes after a verified stop, unless a rank runs after all or a node cannot be asked: then it stops again."""
    known = _known(state, event)
    if state.gone and not event.running and not event.unseen:
        return known, ()
    return moves.stop(known, event.at)


def resumed_launching(state: State, event: events.Resumed, policy: Policy) -> Move:
    """Rank 0 is started last: where it runs and none has ended, all were started. Else all are stopped and launched.

    Cut off once, that launch is counted already; one that is cut off again and again may be what kills the supervisor.
    """
    known = _known(state, event)
    if not event.ended and 0 in event.running:
        return moves.move_to_watch(known, event.at)
    return moves.stop(replace(known, counted=not (state.counted or state.planned)), event.at)


def resumed_swapping(state: State, event: events.Resumed, policy: Policy) -> Move:
    """Resumes a replacement; its request shows if the replacing `up` still exists."""
    return moves.move_to_swap(_known(state, event), event.at, state.reason)


def resumed_loading(state: State, event: events.Resumed, policy: Policy) -> Move:
    known = _known(state, event)
    return broken(known, _exited(state, event), policy) if event.ended else moves.move_to_watch(known, event.at)


def resumed_asleep(state: State, event: events.Resumed, policy: Policy) -> Move:
    """Resumes a stopped deployment; ranks that run nevertheless are stopped."""
    known = _known(state, event)
    return moves.stop(known, event.at) if event.running else (known, ())


def resumed_rebooting(state: State, event: events.Resumed, policy: Policy) -> Move:
    """The reboot of the head has ended the supervisor: over when every node has another boot marker."""
    if state.boots and set(dict(state.boots)) <= _rebooted(state, event):
        return rebooted(_known(state, event), events.Rebooted(event.at), policy)
    return moves.reboot(replace(state, troubles=(), refusals=()), event.at)


def resumed_needing(state: State, event: events.Resumed, policy: Policy) -> Move:
    """A person has done what was asked for, as far as boot markers show: one more try, within the guard.

    A reboot that has just been made and did not help is not made again by the machine itself.
    """
    old = {node for node, marker in event.boots if (node, marker) in state.boots}
    if old or not _rebooted(state, event):
        return state, ()
    return moves.stop(replace(_known(state, event), attempt=0, rebooted=True), event.at)


def _known(state: State, event: events.Resumed) -> State:
    return replace(moves.rebooted(state, event.boots), troubles=(), refusals=(), unannounced=0.0)


def _rebooted(state: State, event: events.Resumed) -> set[str]:
    before = dict(state.boots)
    return {node for node, marker in event.boots if before.get(node, marker) != marker}


def _exited(state: State, event: events.Resumed) -> events.Fault:
    ranks = ", ".join(str(rank) for rank in event.ended)
    one = len(event.ended) == 1
    what = f"{'rank' if one else 'ranks'} {ranks} {'has' if one else 'have'} ended while nothing watched"
    if nodes := _rebooted(state, event):
        what += f"; {', '.join(sorted(nodes))} {'was' if len(nodes) == 1 else 'were'} rebooted"
    head_went = bool(event.boots) and event.boots[0][0] in nodes  # and its gateway with it
    return events.Fault(event.at, "rank-exited", what, Recovery.RELAUNCH, since=event.alive if head_went else 0.0)


# The table

Handler = Callable[[State, Any, Policy], Move]
Cell = Handler | str
Situation = tuple[DeploymentState, Work]

_WAITS = "ignored: nothing waits for the clock here"
_UNASKED = "ignored: no work of this kind is under way"
_PERSON = "ignored: a person has to act, whatever happens meanwhile"
_OVER = "ignored: a person has taken over"
_ANOTHERS = "ignored: what runs on the nodes is another's meanwhile"
_UNCALLED = "ignored: only what is stopped for want of requests is started by one"
_IN_USE = "ignored: it does not serve now"
_NEVER = "ignored: never a state of this machine; Resumed leads out of it"

_NO_ANSWERS: Mapping[type, Cell] = dict.fromkeys(get_args(events.Answer), _UNASKED)
_PERSONS: Mapping[type, Cell] = {
    events.Disarmed: disarmed,
    events.Restart: lambda state, event, policy: moves.restart(state, event.at, event.why, policy),
    events.Halt: lambda state, event, policy: moves.move_to_halt(state, event.at, event.why, policy),
    events.Replaced: lambda state, event, _: moves.move_to_swap(state, event.at, event.why),
}
_CLIENTS: Mapping[type, Cell] = {events.Idle: _IN_USE, events.Demand: _UNCALLED}
_COMMON: Mapping[type, Cell] = {
    events.Tick: _WAITS,
    **_NO_ANSWERS,
    **_CLIENTS,
    events.Cleared: cleared,
    **_PERSONS,
}


def _row(resumed: Handler, fault: Cell, changes: Mapping[type, Cell]) -> Mapping[type, Cell]:
    return {**_COMMON, events.Resumed: resumed, events.Fault: fault, **changes}


def _resting(resumed: Cell, why: str) -> Mapping[type, Cell]:
    quiet: dict[type, Cell] = dict.fromkeys((events.Tick, events.Fault, events.Cleared), why)
    return {**_NO_ANSWERS, **_CLIENTS, **quiet, events.Resumed: resumed, **_PERSONS}


_SERVING = _row(
    resumed_serving,
    fault_while_serving,
    {
        events.Tick: ticked_while_serving,
        events.Cleared: cleared_while_serving,
        events.Idle: lambda state, event, policy: moves.stop_idle(state, event.at, event.why, policy),
    },
)

TABLE: Mapping[Situation, Mapping[type, Cell]] = {
    (DeploymentState.READY, Work.NONE): _SERVING,
    (DeploymentState.DEGRADED, Work.NONE): _SERVING,
    (DeploymentState.DRAINING, Work.CAPTURE): _row(
        lambda state, event, policy: moves.capture(_known(state, event), event.at, policy),
        fault_while_busy,
        {events.Captured: captured},
    ),
    (DeploymentState.DRAINING, Work.STOP): _row(
        lambda state, event, _: moves.stop(_known(state, event), event.at),
        fault_while_busy,
        {events.Stopped: stopped, events.Ready: not_stopped},
    ),
    (DeploymentState.DRAINING, Work.REBOOT): _row(
        resumed_rebooting,
        fault_while_busy,
        {events.Rebooted: rebooted, events.RebootFailed: reboot_failed},
    ),
    (DeploymentState.BACKING_OFF, Work.NONE): _row(
        resumed_waiting,
        fault_while_busy,
        {events.Tick: ticked_while_waiting, events.Cleared: cleared_while_waiting},
    ),
    (DeploymentState.STARTING, Work.LAUNCH): _row(
        resumed_launching,
        fault_while_busy,
        {
            events.Launched: lambda state, event, _: moves.move_to_watch(moves.rebooted(state, event.boots), event.at),
            events.LaunchFailed: launch_failed,
        },
    ),
    (DeploymentState.LOADING, Work.WATCH): _row(
        resumed_loading,
        fault_while_loading,
        {
            events.Ready: lambda state, event, _: moves.serve(state, event.at),
            events.LaunchFailed: launch_failed,
        },
    ),
    (DeploymentState.ON_DEMAND, Work.NONE): _row(resumed_asleep, fault_while_busy, {events.Demand: asked_for}),
    (DeploymentState.FAILED, Work.NONE): _resting(lambda state, event, _: (state, ()), _PERSON),
    (DeploymentState.HALTED, Work.NONE): {
        **_resting(lambda state, event, _: (state, ()), _PERSON),
        events.Halt: "ignored: it is halted",
    },
    (DeploymentState.NEEDS_REBOOT, Work.NONE): _resting(resumed_needing, _PERSON),
    (DeploymentState.NEEDS_POWER_CYCLE, Work.NONE): _resting(resumed_needing, _PERSON),
    (DeploymentState.STARTING, Work.SWAP): _row(
        resumed_swapping,
        _ANOTHERS,
        {events.Restart: _ANOTHERS, events.Halt: _ANOTHERS, events.Returned: returned},
    ),
    (DeploymentState.STOPPED, Work.NONE): {**_resting(_OVER, _OVER), **dict.fromkeys(_PERSONS, _OVER)},
}
NEVER = _resting(lambda state, event, _: moves.stop(_known(state, event), event.at), _NEVER)


def table_row(phase: DeploymentState, work: Work) -> Mapping[type, Cell]:
    """Every pair has one; those that cannot come together are only read from a file that somebody has edited."""
    return TABLE.get((phase, work), NEVER)


def step(state: State, event: events.Event, policy: Policy) -> Move:
    """The next state and what is to be done, in this order. Total: no state and no event raises."""
    cell = table_row(state.phase, state.work)[type(event)]
    late = isinstance(event, events.Answer) and event.turn != state.turn
    moved, effects = (state, ()) if late or isinstance(cell, str) else cell(state, event, policy)
    if isinstance(event, events.Resumed):
        if not isinstance(cell, str) and not any(isinstance(effect, Refuse | Admit) for effect in effects):
            effects = (moves.gateway(moved), *effects)
        effects = (*state.owed, *effects)
    return replace(moved, owed=tuple(effect for effect in effects if isinstance(effect, Close | Announce))), effects


def first_state(at: float, ready: bool = True) -> State:
    """The first state after `up`: it answers, or it is still loading and Resumed begins to watch it."""
    if ready:
        return State(DeploymentState.READY, at, ready_at=at)
    return State(DeploymentState.LOADING, at, "is being started", Work.WATCH, turn=1, refusing=True)
