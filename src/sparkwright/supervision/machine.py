"""What the supervisor does next: a table of every phase and event, and nothing beside it.

Two works are never under way at once: a work begins only in moves.begin, with a turn of its own, and what answers to
another turn is late. A launch comes only from a state whose ranks are verified gone. Everything that the machine knows
is in State, so a supervisor that was killed between two steps goes on with Resumed as if it had only waited.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, get_args

from sparkwright.domain.deployment import DeploymentState
from sparkwright.supervision import handlers, resume
from sparkwright.supervision.effects import Announce, Close
from sparkwright.supervision.events import (
    Answer,
    Captured,
    Cleared,
    Disarmed,
    Event,
    Fault,
    Launched,
    LaunchFailed,
    Ready,
    Rebooted,
    RebootFailed,
    Replaced,
    Restart,
    Resumed,
    Returned,
    Stopped,
    Tick,
)
from sparkwright.supervision.moves import Move
from sparkwright.supervision.policy import Policy
from sparkwright.supervision.state import State, Work

Handler = Callable[[State, Any, Policy], Move]
Cell = Handler | str
Situation = tuple[DeploymentState, Work]

_WAITS = "ignored: nothing waits for the clock here"
_UNASKED = "ignored: no work of this kind is under way"
_PERSON = "ignored: a person has to act, whatever happens meanwhile"
_OVER = "ignored: a person has taken over"
_ANOTHERS = "ignored: what runs on the nodes is another's meanwhile"
_NEVER = "ignored: never a state of this machine; Resumed leads out of it"

_NO_ANSWERS: Mapping[type, Cell] = dict.fromkeys(get_args(Answer), _UNASKED)
_PERSONS: Mapping[type, Cell] = {
    Disarmed: handlers.disarmed,
    Restart: handlers.restarted,
    Replaced: handlers.replaced,
}
_COMMON: Mapping[type, Cell] = {Tick: _WAITS, **_NO_ANSWERS, Cleared: handlers.cleared, **_PERSONS}


def _row(resumed: Handler, fault: Cell, changes: Mapping[type, Cell]) -> Mapping[type, Cell]:
    return {**_COMMON, Resumed: resumed, Fault: fault, **changes}


def _resting(resumed: Cell, why: str) -> Mapping[type, Cell]:
    quiet: dict[type, Cell] = dict.fromkeys((Tick, Fault, Cleared), why)
    return {**_NO_ANSWERS, **quiet, Resumed: resumed, **_PERSONS}


_SERVING = _row(
    resume.serving,
    handlers.fault_while_serving,
    {Tick: handlers.ticked_while_serving, Cleared: handlers.cleared_while_serving},
)

TABLE: Mapping[Situation, Mapping[type, Cell]] = {
    (DeploymentState.READY, Work.NONE): _SERVING,
    (DeploymentState.DEGRADED, Work.NONE): _SERVING,
    (DeploymentState.DRAINING, Work.CAPTURE): _row(
        resume.capturing, handlers.fault_while_busy, {Captured: handlers.captured}
    ),
    (DeploymentState.DRAINING, Work.STOP): _row(
        resume.stopping, handlers.fault_while_busy, {Stopped: handlers.stopped}
    ),
    (DeploymentState.DRAINING, Work.REBOOT): _row(
        resume.rebooting,
        handlers.fault_while_busy,
        {Rebooted: handlers.rebooted, RebootFailed: handlers.reboot_failed},
    ),
    (DeploymentState.BACKING_OFF, Work.NONE): _row(
        resume.waiting,
        handlers.fault_while_busy,
        {Tick: handlers.ticked_while_waiting, Cleared: handlers.cleared_while_waiting},
    ),
    (DeploymentState.STARTING, Work.LAUNCH): _row(
        resume.launching,
        handlers.fault_while_busy,
        {Launched: handlers.launched, LaunchFailed: handlers.launch_failed},
    ),
    (DeploymentState.LOADING, Work.WATCH): _row(
        resume.loading, handlers.fault_while_loading, {Ready: handlers.ready, LaunchFailed: handlers.launch_failed}
    ),
    (DeploymentState.FAILED, Work.NONE): _resting(resume.resting, _PERSON),
    (DeploymentState.NEEDS_REBOOT, Work.NONE): _resting(resume.needing, _PERSON),
    (DeploymentState.NEEDS_POWER_CYCLE, Work.NONE): _resting(resume.needing, _PERSON),
    (DeploymentState.STARTING, Work.SWAP): _row(
        resume.swapping, _ANOTHERS, {Restart: _ANOTHERS, Returned: handlers.returned}
    ),
    (DeploymentState.STOPPED, Work.NONE): {**_resting(_OVER, _OVER), **dict.fromkeys(_PERSONS, _OVER)},
}
NEVER = _resting(resume.stopping, _NEVER)


def row(phase: DeploymentState, work: Work) -> Mapping[type, Cell]:
    """Every pair has one; those that cannot come together are only read from a file that somebody has edited."""
    return TABLE.get((phase, work), NEVER)


def step(state: State, event: Event, policy: Policy) -> Move:
    """The next state and what is to be done, in this order. Total: no state and no event raises."""
    cell = row(state.phase, state.work)[type(event)]
    late = isinstance(event, Answer) and event.turn != state.turn
    moved, effects = (state, ()) if late or isinstance(cell, str) else cell(state, event, policy)
    if isinstance(event, Resumed):
        effects = (*state.owed, *effects)
    return replace(moved, owed=tuple(effect for effect in effects if isinstance(effect, Close | Announce))), effects


def first(at: float, ready: bool = True) -> State:
    """Of what `up` has just brought: it answers, or is loading still and Resumed begins to watch it."""
    if ready:
        return State(DeploymentState.READY, at, ready_at=at)
    return State(DeploymentState.LOADING, at, "is being started", Work.WATCH, turn=1, refusing=True)
