"""The waits between launches, and the number of faults after which the supervisor gives up."""

from itertools import pairwise

from sparkwright.domain.live import DeploymentState
from sparkwright.supervisor.core import moves
from sparkwright.supervisor.core.events import Captured, Fault, Launched, LaunchFailed, Ready, Stopped, Tick
from sparkwright.supervisor.core.state import Capture, Policy, Recovery, State
from unit.for_each import for_each
from unit.supervisor.core.life import T0, DeploymentLife

POLICY = Policy()


def state_after(*launches: float, attempt: int = 0, counted: bool = False) -> State:
    return State(DeploymentState.DRAINING, 0.0, launches=launches, attempt=attempt, counted=counted)


def test_waits_grow_and_end() -> None:
    """The waits are none, 5 s, 30 s, 2 min, 10 min, and 10 min from there on."""
    assert [moves.launch_wait(n, POLICY) for n in range(7)] == [0.0, 5.0, 30.0, 120.0, 600.0, 600.0, 600.0]


@for_each(
    "state, at, limit",
    [
        (state_after(100.0, 200.0), 300.0, ""),
        (state_after(100.0, 200.0, 300.0), 1899.0, "4 faults within 30 min 00 s"),
        (state_after(100.0, 200.0, 300.0), 1900.0, ""),
        (state_after(100.0, 200.0, 300.0, counted=True), 400.0, ""),
        (state_after(*range(0, 18000, 3000)), 21599.0, "7 faults within 6 h 00 min"),
        (state_after(*range(0, 18000, 3000)), 21600.0, ""),
        (state_after(9e9, 9e9, 9e9), 300.0, "4 faults within 30 min 00 s"),
        (state_after(attempt=5), 300.0, ""),
        (state_after(attempt=6), 300.0, "7 faults in a row"),
        (state_after(0.0, attempt=6, counted=True), 300.0, ""),
    ],
)
def test_the_guard_counts_what_its_windows_see(state, at, limit) -> None:
    """Guards the limits of each window to the second. A launch counts once, even one that lies ahead of a clock that
    was set back."""
    assert moves.too_many(state, at, POLICY) == limit


def test_only_what_a_window_can_see_is_remembered() -> None:
    """The state file does not grow with the years."""
    assert moves.remembered((0.0, 100.0, 21000.0), 21650.0, POLICY) == (100.0, 21000.0)


def test_a_clock_that_was_set_back_holds_nothing_up() -> None:
    """A wait that would last longer than the longest back-off is over: the clock was set back."""
    assert not moves.is_due_at(1000.0, 999.0, POLICY) and moves.is_due_at(1000.0, 1000.0, POLICY)
    assert not moves.is_due_at(1000.0, 400.0, POLICY) and moves.is_due_at(1000.0, 399.0, POLICY)


def test_the_stronger_recovery_wins() -> None:
    """A power cycle beats a reboot, and a reboot beats a relaunch, whichever is asked for first."""
    order = [Recovery.NONE, Recovery.REFUSE, Recovery.RELAUNCH, Recovery.STOP, Recovery.REBOOT, Recovery.POWER_CYCLE]
    for weaker, stronger in pairwise(order):
        assert moves.stronger(weaker, stronger) is moves.stronger(stronger, weaker) is stronger


def test_an_incident_counts_from_the_first_request_that_got_nothing() -> None:
    """Launches that fail in between do not move the beginning of an incident. Only `ready` ends it."""
    life = DeploymentLife()
    *_, saving = life.handle(Fault(T0 + 40, "frozen", "nothing moves", Recovery.RELAUNCH, since=T0 + 4))
    assert saving == Capture(0, "frozen", "nothing moves", (), 1, T0 + 4)
    life.handle(Captured(T0 + 41, 1))
    life.handle(Stopped(T0 + 42))
    life.handle(LaunchFailed(T0 + 50, "rank 0 ended with 1"))
    assert life.state.lost == T0 + 4
    life.handle(Captured(T0 + 51, 1))
    life.handle(Stopped(T0 + 52))
    life.handle(Tick(T0 + 60))
    life.handle(Launched(T0 + 61))
    life.handle(Ready(T0 + 65))
    assert life.state.phase is DeploymentState.READY and life.state.lost == 0.0
