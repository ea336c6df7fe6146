"""Going on after the supervisor was killed, or its node was rebooted: what was under way is taken up, once.

A rank on a node that could not be asked is unseen, not ended. Detectors begin anew, so what they had found is forgotten
and said again by them. The gateway is told again in every phase: it may have missed the last word.
"""

from dataclasses import replace

from sparkwright.domain.deployment import DeploymentState
from sparkwright.supervision import guard, moves
from sparkwright.supervision.effects import Admit, Refuse
from sparkwright.supervision.events import Fault, Rebooted, Resumed
from sparkwright.supervision.handlers import broken, rebooted
from sparkwright.supervision.moves import Move
from sparkwright.supervision.policy import Policy
from sparkwright.supervision.state import Recovery, State


def serving(state: State, event: Resumed, policy: Policy) -> Move:
    """Still serving, unless a rank has ended; the canary proves it. Whether it is degraded, detectors say again."""
    known = _known(state, event)
    if event.ended:
        moved, effects = broken(known, _exited(state, event), policy)
        return _told((replace(moved, rebooters=tuple(sorted(_rebooted(state, event)))), effects))
    since = state.since if state.phase is DeploymentState.READY else event.at
    return _told((replace(known, phase=DeploymentState.READY, since=since, reason="", refusing=False), ()))


def capturing(state: State, event: Resumed, policy: Policy) -> Move:
    return _told(moves.capture(_known(state, event), event.at, policy))


def stopping(state: State, event: Resumed, policy: Policy) -> Move:
    return _told(moves.stop(_known(state, event), event.at))


def waiting(state: State, event: Resumed, policy: Policy) -> Move:
    """What was verified gone stays so, unless a rank runs after all or a node cannot be asked."""
    known = _known(state, event)
    if state.gone and not event.running and not event.unseen:
        return _told((known, ()))
    return _told(moves.stop(known, event.at))


def launching(state: State, event: Resumed, policy: Policy) -> Move:
    """Rank 0 is started last: where it runs and none has ended, all were started. Else all are stopped and launched.

    Cut off once, that launch is counted already; one that is cut off again and again may be what kills the supervisor.
    """
    known = _known(state, event)
    if not event.ended and 0 in event.running:
        return _told(moves.watch(known, event.at))
    return _told(moves.stop(replace(known, counted=not (state.counted or state.planned)), event.at))


def swapping(state: State, event: Resumed, policy: Policy) -> Move:
    """Whether the `up` that replaces it is still there shows in its request."""
    return _told(moves.swap(_known(state, event), event.at, state.reason))


def loading(state: State, event: Resumed, policy: Policy) -> Move:
    known = _known(state, event)
    return _told(broken(known, _exited(state, event), policy) if event.ended else moves.watch(known, event.at))


def rebooting(state: State, event: Resumed, policy: Policy) -> Move:
    """The reboot of the head has ended the supervisor: over when every node has another boot marker."""
    if state.boots and set(dict(state.boots)) <= _rebooted(state, event):
        return _told(rebooted(_known(state, event), Rebooted(event.at), policy))
    return _told(moves.reboot(replace(state, troubles=(), refusals=()), event.at))


def needing(state: State, event: Resumed, policy: Policy) -> Move:
    """A person has done what was asked for, as far as boot markers can tell: one more try, within the guard.

    A reboot that has just been made and did not help is not made again by the machine itself.
    """
    old = {node for node, marker in event.boots if (node, marker) in state.boots}
    if old or not _rebooted(state, event):
        return _told((state, ()))
    return _told(moves.stop(replace(_known(state, event), attempt=0, rebooted=True), event.at))


def resting(state: State, event: Resumed, policy: Policy) -> Move:
    return _told((state, ()))


def _known(state: State, event: Resumed) -> State:
    return replace(guard.rebooted(state, event.boots), troubles=(), refusals=(), unannounced=0.0)


def _rebooted(state: State, event: Resumed) -> set[str]:
    before = dict(state.boots)
    return {node for node, marker in event.boots if before.get(node, marker) != marker}


def _exited(state: State, event: Resumed) -> Fault:
    ranks = ", ".join(str(rank) for rank in event.ended)
    one = len(event.ended) == 1
    what = f"{'rank' if one else 'ranks'} {ranks} {'has' if one else 'have'} ended while nothing watched"
    if nodes := _rebooted(state, event):
        what += f"; {', '.join(sorted(nodes))} {'was' if len(nodes) == 1 else 'were'} rebooted"
    head_went = bool(event.boots) and event.boots[0][0] in nodes  # and its gateway with it
    return Fault(event.at, "rank-exited", what, Recovery.RELAUNCH, since=event.alive if head_went else 0.0)


def _told(move: Move) -> Move:
    state, effects = move
    told = any(isinstance(effect, Refuse | Admit) for effect in effects)
    return state, effects if told else (moves.gateway(state), *effects)
