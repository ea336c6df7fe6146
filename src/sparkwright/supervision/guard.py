"""The arithmetic of patience: how long to wait, how often is too often, which recovery is the stronger one."""

from dataclasses import replace

from sparkwright.domain.units import duration
from sparkwright.supervision.policy import Policy
from sparkwright.supervision.state import Recovery, State

_STRENGTH = tuple(Recovery)
Boots = tuple[tuple[str, str], ...]


def stronger(one: Recovery, other: Recovery) -> Recovery:
    return max(one, other, key=_STRENGTH.index)


def mends_itself(recovery: Recovery) -> bool:
    """Whether stopping and launching again can be the remedy."""
    return recovery not in (Recovery.REBOOT, Recovery.POWER_CYCLE)


def wait(attempt: int, policy: Policy) -> float:
    """Seconds before the launch with this number since the deployment was stable; the first waits for nothing."""
    waits = (0.0, *policy.backoffs)
    return waits[min(attempt, len(waits) - 1)]


def broken_off(state: State, at: float, policy: Policy) -> State:
    """With the count as it is when the service ends: the launch that it came from counts unless it has held."""
    if not state.ready_at:
        return state
    there = replace(state, down=at, rebooters=())
    if at - state.ready_at < policy.stable:
        return there
    mine = state.launches[-1:] >= (state.down,)
    return replace(there, attempt=0, launches=state.launches[:-1] if mine else state.launches)


def rebooted(state: State, boots: Boots) -> State:
    """With these boot markers. Launches of an incident in which somebody reboots a node do not count: once a node, for
    one that goes down with each launch is no longer somebody's doing; nor are our own reboots."""
    before = dict(state.boots)
    known = replace(state, boots=tuple((before | dict(boots)).items()))
    nodes = {node for node, marker in boots if before.get(node, marker) != marker}.difference(state.rebooters)
    if not nodes or not state.down or state.ready_at or state.rebooted:
        return known
    return uncounted(replace(known, rebooters=(*state.rebooters, *sorted(nodes))))


def uncounted(state: State) -> State:
    """Without the launches of this incident."""
    before = tuple(when for when in state.launches if when < state.down)
    attempt = max(0, state.attempt - len(state.launches) + len(before))
    return replace(state, launches=before, attempt=attempt, counted=False)


def too_many(state: State, at: float, policy: Policy) -> str:
    """How many faults there were with this one, when it may not be launched any more. Times ahead of the clock count.

    No window sees a loop whose every load takes an hour, so launches without a stable service between are counted too.
    """
    before, attempt = (state.launches[:-1], state.attempt - 1) if state.counted else (state.launches, state.attempt)
    for most, span in policy.windows:
        if sum(at - when < span for when in before) >= most:
            return f"{most + 1} faults within {duration(span)}"
    in_a_row = max((most for most, _ in policy.windows), default=attempt + 1)
    return f"{in_a_row + 1} faults in a row" if attempt >= in_a_row else ""


def remembered(launches: tuple[float, ...], at: float, policy: Policy) -> tuple[float, ...]:
    """Without those that no window sees any more."""
    longest = max((span for _, span in policy.windows), default=0.0)
    return tuple(when for when in launches if at - when < longest)


def is_due(due: float, at: float, policy: Policy) -> bool:
    """Also when the clock was set back so far that no back-off explains the wait."""
    return at >= due or due - at > max((*policy.backoffs, policy.again))
