"""The supervisor's next step: a table of every phase and event.

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

from sparkwright.domain.live import DeploymentState
from sparkwright.supervisor.core import events, handlers, moves
from sparkwright.supervisor.core.handlers import broken, rebooted
from sparkwright.supervisor.core.moves import Move
from sparkwright.supervisor.core.state import Admit, Announce, Close, Policy, Recovery, Refuse, State, Work


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
        return moves.watch(known, event.at)
    return moves.stop(replace(known, counted=not (state.counted or state.planned)), event.at)


def resumed_swapping(state: State, event: events.Resumed, policy: Policy) -> Move:
    """Resumes a replacement; its request shows if the replacing `up` still exists."""
    return moves.swap(_known(state, event), event.at, state.reason)


def resumed_loading(state: State, event: events.Resumed, policy: Policy) -> Move:
    known = _known(state, event)
    return broken(known, _exited(state, event), policy) if event.ended else moves.watch(known, event.at)


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
    events.Disarmed: handlers.disarmed,
    events.Restart: lambda state, event, policy: moves.restart(state, event.at, event.why, policy),
    events.Halt: lambda state, event, policy: moves.halt(state, event.at, event.why, policy),
    events.Replaced: lambda state, event, _: moves.swap(state, event.at, event.why),
}
_CLIENTS: Mapping[type, Cell] = {events.Idle: _IN_USE, events.Demand: _UNCALLED}
_COMMON: Mapping[type, Cell] = {
    events.Tick: _WAITS,
    **_NO_ANSWERS,
    **_CLIENTS,
    events.Cleared: handlers.cleared,
    **_PERSONS,
}


def _row(resumed: Handler, fault: Cell, changes: Mapping[type, Cell]) -> Mapping[type, Cell]:
    return {**_COMMON, events.Resumed: resumed, events.Fault: fault, **changes}


def _resting(resumed: Cell, why: str) -> Mapping[type, Cell]:
    quiet: dict[type, Cell] = dict.fromkeys((events.Tick, events.Fault, events.Cleared), why)
    return {**_NO_ANSWERS, **_CLIENTS, **quiet, events.Resumed: resumed, **_PERSONS}


_SERVING = _row(
    resumed_serving,
    handlers.fault_while_serving,
    {
        events.Tick: handlers.ticked_while_serving,
        events.Cleared: handlers.cleared_while_serving,
        events.Idle: lambda state, event, policy: moves.stop_idle(state, event.at, event.why, policy),
    },
)

TABLE: Mapping[Situation, Mapping[type, Cell]] = {
    (DeploymentState.READY, Work.NONE): _SERVING,
    (DeploymentState.DEGRADED, Work.NONE): _SERVING,
    (DeploymentState.DRAINING, Work.CAPTURE): _row(
        lambda state, event, policy: moves.capture(_known(state, event), event.at, policy),
        handlers.fault_while_busy,
        {events.Captured: handlers.captured},
    ),
    (DeploymentState.DRAINING, Work.STOP): _row(
        lambda state, event, _: moves.stop(_known(state, event), event.at),
        handlers.fault_while_busy,
        {events.Stopped: handlers.stopped, events.Ready: handlers.not_stopped},
    ),
    (DeploymentState.DRAINING, Work.REBOOT): _row(
        resumed_rebooting,
        handlers.fault_while_busy,
        {events.Rebooted: handlers.rebooted, events.RebootFailed: handlers.reboot_failed},
    ),
    (DeploymentState.BACKING_OFF, Work.NONE): _row(
        resumed_waiting,
        handlers.fault_while_busy,
        {events.Tick: handlers.ticked_while_waiting, events.Cleared: handlers.cleared_while_waiting},
    ),
    (DeploymentState.STARTING, Work.LAUNCH): _row(
        resumed_launching,
        handlers.fault_while_busy,
        {
            events.Launched: lambda state, event, _: moves.watch(moves.rebooted(state, event.boots), event.at),
            events.LaunchFailed: handlers.launch_failed,
        },
    ),
    (DeploymentState.LOADING, Work.WATCH): _row(
        resumed_loading,
        handlers.fault_while_loading,
        {
            events.Ready: lambda state, event, _: moves.serve(state, event.at),
            events.LaunchFailed: handlers.launch_failed,
        },
    ),
    (DeploymentState.ON_DEMAND, Work.NONE): _row(
        resumed_asleep, handlers.fault_while_busy, {events.Demand: handlers.asked_for}
    ),
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
        {events.Restart: _ANOTHERS, events.Halt: _ANOTHERS, events.Returned: handlers.returned},
    ),
    (DeploymentState.STOPPED, Work.NONE): {**_resting(_OVER, _OVER), **dict.fromkeys(_PERSONS, _OVER)},
}
NEVER = _resting(lambda state, event, _: moves.stop(_known(state, event), event.at), _NEVER)


def row(phase: DeploymentState, work: Work) -> Mapping[type, Cell]:
    """Every pair has one; those that cannot come together are only read from a file that somebody has edited."""
    return TABLE.get((phase, work), NEVER)


def step(state: State, event: events.Event, policy: Policy) -> Move:
    """The next state and what is to be done, in this order. Total: no state and no event raises."""
    cell = row(state.phase, state.work)[type(event)]
    late = isinstance(event, events.Answer) and event.turn != state.turn
    moved, effects = (state, ()) if late or isinstance(cell, str) else cell(state, event, policy)
    if isinstance(event, events.Resumed):
        if not isinstance(cell, str) and not any(isinstance(effect, Refuse | Admit) for effect in effects):
            effects = (moves.gateway(moved), *effects)
        effects = (*state.owed, *effects)
    return replace(moved, owed=tuple(effect for effect in effects if isinstance(effect, Close | Announce))), effects


def first(at: float, ready: bool = True) -> State:
    """The first state after `up`: it answers, or it is still loading and Resumed begins to watch it."""
    if ready:
        return State(DeploymentState.READY, at, ready_at=at)
    return State(DeploymentState.LOADING, at, "is being started", Work.WATCH, turn=1, refusing=True)
