"""The arithmetic of patience: how long to wait, how often is too often, which recovery is the stronger one."""

from sparkwright.domain.units import duration
from sparkwright.supervision.policy import Policy
from sparkwright.supervision.state import Recovery, State

_STRENGTH = tuple(Recovery)


def stronger(one: Recovery, other: Recovery) -> Recovery:
    return max(one, other, key=_STRENGTH.index)


def mends_itself(recovery: Recovery) -> bool:
    """Whether stopping and launching again can be the cure."""
    return recovery not in (Recovery.REBOOT, Recovery.POWER_CYCLE)


def wait(attempt: int, policy: Policy) -> float:
    """Seconds before the launch with this number since the deployment was stable; the first waits for nothing."""
    waits = (0.0, *policy.backoffs)
    return waits[min(attempt, len(waits) - 1)]


def attempts(state: State, at: float, policy: Policy) -> int:
    """Begun anew by a service that was stable."""
    stable = state.ready_at > 0 and at - state.ready_at >= policy.stable
    return 0 if stable else state.attempt


def too_many(state: State, at: float, policy: Policy) -> str:
    """What a launch at `at` would be too many of, in words; empty when it may be. Times ahead of the clock count.

    No window sees a loop whose every load takes an hour, so launches without a stable service between are counted too.
    """
    before, attempt = (state.launches[:-1], state.attempt - 1) if state.counted else (state.launches, state.attempt)
    for most, span in policy.windows:
        if sum(at - when < span for when in before) >= most:
            return f"{most} launches within {duration(span)}"
    in_a_row = max((most for most, _ in policy.windows), default=attempt + 1)
    return f"{in_a_row} launches in a row" if attempt >= in_a_row else ""


def remembered(launches: tuple[float, ...], at: float, policy: Policy) -> tuple[float, ...]:
    """Without those that no window sees any more."""
    longest = max((span for _, span in policy.windows), default=0.0)
    return tuple(when for when in launches if at - when < longest)


def is_due(due: float, at: float, policy: Policy) -> bool:
    """Also when the clock was set back so far that no back-off explains the wait."""
    return at >= due or due - at > max((*policy.backoffs, policy.again))
