"""The table of phases and events, and the paths through it with all that they have done."""

from dataclasses import replace
from itertools import product
from typing import get_args

import pytest

from sparkwright.domain.live import DeploymentState
from sparkwright.supervisor.core.events import (
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
    Resumed,
    Stopped,
    Tick,
)
from sparkwright.supervisor.core.machine import NEVER, TABLE, step, table_row
from sparkwright.supervisor.core.state import (
    Admit,
    Announce,
    Capture,
    Close,
    Launch,
    Reboot,
    Record,
    Recovery,
    Refuse,
    State,
    StopRanks,
    WatchRanks,
    Work,
)
from unit.for_each import for_each
from unit.supervisor.core.life import BOOTS, NEW_BOOTS, POLICY, RESTING, T0, DeploymentLife, effect_kinds, resumed

EVENTS = get_args(Event)
D = DeploymentState

# Whatever is not here is ignored, and the table says why.
HANDLED = {
    (D.READY, Work.NONE): "Tick Resumed Fault Cleared Disarmed Restart Halt Replaced Idle",
    (D.DEGRADED, Work.NONE): "Tick Resumed Fault Cleared Disarmed Restart Halt Replaced Idle",
    (D.DRAINING, Work.CAPTURE): "Resumed Fault Cleared Disarmed Captured Restart Halt Replaced",
    (D.DRAINING, Work.STOP): "Resumed Fault Cleared Disarmed Stopped Ready Restart Halt Replaced",
    (D.DRAINING, Work.REBOOT): "Resumed Fault Cleared Disarmed Rebooted RebootFailed Restart Halt Replaced",
    (D.BACKING_OFF, Work.NONE): "Tick Resumed Fault Cleared Disarmed Restart Halt Replaced",
    (D.STARTING, Work.LAUNCH): "Resumed Fault Cleared Disarmed Launched LaunchFailed Restart Halt Replaced",
    (D.LOADING, Work.WATCH): "Resumed Fault Cleared Disarmed Ready LaunchFailed Restart Halt Replaced",
    (D.ON_DEMAND, Work.NONE): "Resumed Fault Cleared Disarmed Demand Restart Halt Replaced",
    (D.FAILED, Work.NONE): "Resumed Disarmed Restart Halt Replaced",
    (D.NEEDS_REBOOT, Work.NONE): "Resumed Disarmed Restart Halt Replaced",
    (D.NEEDS_POWER_CYCLE, Work.NONE): "Resumed Disarmed Restart Halt Replaced",
    (D.HALTED, Work.NONE): "Resumed Disarmed Restart Replaced",
    (D.STARTING, Work.SWAP): "Resumed Cleared Disarmed Replaced Returned",
    (D.STOPPED, Work.NONE): "",
}
ANY = {
    Resumed: Resumed(T0, (0, 1), (), (), BOOTS),
    Fault: Fault(T0, "frozen", "no token for 30 s", Recovery.RELAUNCH),
    Cleared: Cleared(T0, "swap"),
    Captured: Captured(T0, 7),
    LaunchFailed: LaunchFailed(T0, "rank 1 ended with 1"),
    RebootFailed: RebootFailed(T0, "spark-2 did not come back"),
}


@for_each("phase, work", list(product(D, Work)))
def test_every_pair_is_in_the_table(phase, work) -> None:
    """No phase, work and event is left to a default: each has a handler, or a sentence that reports why it is
    ignored."""
    cells = table_row(phase, work)
    assert set(cells) == set(EVENTS)
    handled = {kind.__name__ for kind, cell in cells.items() if not isinstance(cell, str)}
    assert handled == set(HANDLED.get((phase, work), "Resumed Disarmed Restart Halt Replaced").split())
    assert all(cell.startswith("ignored: ") and len(cell) > 20 for cell in cells.values() if isinstance(cell, str))


@for_each("phase, work", list(product(D, Work)))
def test_every_step_ends_in_a_state_of_the_table(phase, work) -> None:
    """No pair raises, and none leads out of the states that are known; a file that was edited leads back to them."""
    state = State(phase, T0, "why", work, turn=0, gone=True)
    for kind in EVENTS:
        moved, effects = step(state, ANY.get(kind) or kind(T0), POLICY)
        if isinstance(table_row(phase, work)[kind], str):
            assert (moved, effects) == (state, ())
        else:
            assert (moved.phase, moved.work) in TABLE


def test_the_table_holds_the_states_that_can_be_and_no_others() -> None:
    """A resting state has no work, a working one does not rest, and pairs outside the table have the row for them."""
    assert set(TABLE) == set(HANDLED)
    assert {phase for phase, work in TABLE if work is Work.NONE} == RESTING | {D.BACKING_OFF}
    assert table_row(D.PLANNED, Work.NONE) is table_row(D.READY, Work.STOP) is NEVER


def test_a_dead_rank_is_captured_stopped_launched_and_served_again() -> None:
    """The whole way of a broken service, with every effect in its order; the first relaunch waits for nothing."""
    life, why = DeploymentLife(), "rank 1 ended with 137"
    effects = life.broken()
    assert effects == (
        Refuse(why, T0 + 700),
        Announce("opened", why),
        Capture(0, "rank-exited", why, ("exit 137",), 1, T0 + 700),
    )
    assert life.at() == (D.DRAINING, Work.CAPTURE)
    assert life.handle(Captured(T0 + 701, 4, cause="killed by the kernel")) == (StopRanks(2),)
    assert life.at() == (D.DRAINING, Work.STOP)
    launched = life.handle(Stopped(T0 + 703))
    assert launched == (Refuse("starting again: killed by the kernel", T0 + 703), Launch(3))
    assert life.at() == (D.STARTING, Work.LAUNCH)
    assert life.handle(Launched(T0 + 710)) == (WatchRanks(4),)
    assert life.at() == (D.LOADING, Work.WATCH)
    text = "serving again after: killed by the kernel"
    assert life.handle(Ready(T0 + 900)) == (Admit(), Close(4, "serving again"), Announce("closed", text))
    assert life.at() == (D.READY, Work.NONE)
    assert life.state.incident == 0 and life.state.ready_at == T0 + 900 and not life.state.refusing


def test_the_answer_to_an_earlier_work_changes_nothing() -> None:
    """A Stopped that comes late or twice can never pass for the stop that a launch waits for."""
    life = DeploymentLife()
    life.broken()
    life.handle(Captured(T0 + 701, 1))
    before = life.state
    for late in (Stopped(T0 + 702, turn=1), Stopped(T0 + 702, turn=0), Stopped(T0 + 702, turn=3)):
        assert step(before, late, POLICY) == (before, ())


def test_failed_launches_back_off_longer_each_time_and_then_it_gives_up() -> None:
    """The waits are none, 5 s, 30 s; the fourth launch within 30 minutes is not made: closed, announced, and a person
    asked."""
    life = DeploymentLife()
    life.stopped()
    at = T0 + 710
    for wait in (5.0, 30.0):
        assert life.failed_launch(at) == (Refuse("rank 0 ended with 1", at + 2 + wait),)
        assert life.at() == (D.BACKING_OFF, Work.NONE)
        assert life.handle(Tick(at + 2 + wait - 0.1)) == ()
        assert effect_kinds(life.handle(Tick(at + 2 + wait))) == [Refuse, Launch]
        at += 100
    why = "4 faults within 30 min 00 s: rank 0 ended with 1"
    text = f"{why}; start it again with `sparkwright up` once the cause is fixed"
    assert life.failed_launch(at) == (Refuse(text), Close(1, "given up"), Announce("given-up", text))
    assert life.at() == (D.FAILED, Work.NONE)
    assert life.state.reason == why


def test_slow_failures_are_counted_by_the_longer_window() -> None:
    """Launches that each fail after half an hour escape the short window; the seventh within 6 h is not made."""
    life = DeploymentLife()
    life.stopped()
    at, waits = T0 + 710, []
    for _ in range(6):
        life.failed_launch(at := at + 1800)
        waits.append(life.state.due - (at + 2))
        life.handle(Tick(at := at + 700))
    assert life.state.phase is D.FAILED
    assert waits[:5] == [5.0, 30.0, 120.0, 600.0, 600.0]
    assert "7 faults within 6 h" in life.state.reason


def test_a_loop_too_slow_for_any_window_ends_as_well() -> None:
    """Six launches in a row without a stable service between them are enough, however long each of them takes."""
    life = DeploymentLife()
    life.stopped()
    at, launches = T0 + 710, 1
    for _ in range(10):
        life.failed_launch(at := at + 9000)
        launches += Launch in effect_kinds(life.handle(Tick(at := at + 700)))
    assert launches == 6 and "7 faults in a row" in life.state.reason


def test_a_stable_service_begins_to_count_again() -> None:
    """The next relaunch waits for nothing again after 300 s of serving; after less it waits as the next attempt."""
    for served, phase in ((299.0, D.BACKING_OFF), (300.0, D.STARTING)):
        life = DeploymentLife()
        life.loading()
        life.handle(Ready(T0 + 900))
        life.broken(T0 + 900 + served)
        life.handle(Captured(T0 + 2000, 2))
        life.handle(Stopped(T0 + 2001))
        assert life.state.phase is phase


def break_and_recover(life: DeploymentLife, at: float, boots=BOOTS) -> float:
    """A rank ends at `at`, and it serves again ten seconds later, or it is given up; when."""
    life.broken(at)
    life.handle(Captured(at + 1, 1))
    life.handle(Stopped(at + 2, boots=boots))
    if life.state.phase is D.BACKING_OFF:
        at = life.state.due
        life.handle(Tick(at))
    life.handle(Launched(at + 3, boots))
    life.handle(Ready(at + 10))
    return at + 10


def test_launches_that_lasted_do_not_count() -> None:
    """Four faults of four kinds within 25 minutes, each followed by five minutes of service, are no loop of launches;
    four that each follow a minute of service are, and the sentence counts faults: each launch did help."""
    life, at = DeploymentLife(), T0
    for _ in range(8):
        at = break_and_recover(life, at + 300)
        assert life.at() == (D.READY, Work.NONE) and life.state.attempt == 1
    for _ in range(3):
        at = break_and_recover(life, at + 60)
    assert life.at() == (D.FAILED, Work.NONE)
    assert life.state.reason == "4 faults within 30 min 00 s: rank 1 ended with 137"


def test_an_evening_of_planned_reboots_is_no_loop_of_launches() -> None:
    """Each node is rebooted three times within half an hour, a minute of service apart; then a rank that ends is the
    first fault that counts. So it is, too, where the launch had begun before the node went down."""
    life, at = DeploymentLife(), T0
    life.handle(resumed(T0, running=(0, 1)))
    for n in range(6):
        mark = tuple((node, f"{marker}{n + 1 if node == f'spark-{1 + n % 2}' else n}") for node, marker in BOOTS)
        if n % 3:
            at = break_and_recover(life, at + 60, mark)
        else:
            life.broken(at + 60)
            life.handle(Captured(at + 61, 1))
            life.handle(Stopped(at + 62, boots=life.state.boots))
            life.handle(LaunchFailed(at + 63, "spark-2: connection closed", busy=True))
            life.handle(Tick(at + 95))
            life.handle(Launched(at := at + 96, mark))
            life.handle(Ready(at := at + 10))
        assert life.at() == (D.READY, Work.NONE) and life.state.launches == ()
    break_and_recover(life, at + 60, mark)
    assert len(life.state.launches) == 1


def test_a_node_that_goes_down_with_each_launch_is_given_up() -> None:
    """The first reboot within an incident may be a person's; those after it are the launches' doing."""
    life = DeploymentLife()
    life.handle(resumed(T0, running=(0, 1)))
    life.stopped()
    at = T0 + 710
    for n in range(9):
        life.handle(LaunchFailed(at := at + 30, "spark-2: connection lost"))
        life.handle(Captured(at + 1, 1))
        life.handle(Stopped(at + 2, boots=(("spark-1", "a"), ("spark-2", f"again {n}"))))
        life.handle(Tick(at := at + 60))
    assert life.at() == (D.FAILED, Work.NONE) and "4 faults" in life.state.reason


def test_a_rank_that_dies_while_loading_cuts_the_watch_off() -> None:
    """The detector is quicker than the watch: evidence is captured once, and the watch's own answer comes too late."""
    life = DeploymentLife()
    life.loading()
    watch = life.state.turn
    assert effect_kinds(life.broken(T0 + 720)) == [Refuse, Capture]
    assert life.state.incident == 1
    before = life.state
    assert life.handle(LaunchFailed(T0 + 721, "rank 1 ended")) == ()
    assert step(before, LaunchFailed(T0 + 721, "rank 1 ended", turn=watch), POLICY) == (before, ())


def test_a_lease_that_somebody_holds_is_waited_for_and_not_counted() -> None:
    """Nothing was started, so the same launch is tried again, without another stop and without another count."""
    life = DeploymentLife()
    life.stopped()
    for n in range(10):
        at = T0 + 710 + 100 * n
        busy = LaunchFailed(at, "the lease is held by ann@laptop", busy=True)
        assert life.handle(busy) == (Refuse("the lease is held by ann@laptop", at + 30),)
        assert life.handle(Tick(at + 29)) == ()
        assert effect_kinds(life.handle(Tick(at + 31))) == [Refuse, Launch]
    assert life.state.launches == (T0 + 710 + 931,) and life.state.attempt == 1


def test_a_watch_that_finds_the_lease_taken_has_failed_like_any_other() -> None:
    """Its ranks run, so they are stopped before anything else is tried."""
    life = DeploymentLife()
    life.loading()
    assert effect_kinds(life.handle(LaunchFailed(T0 + 711, "the lease is held by ann@laptop", busy=True))) == [
        Refuse,
        Capture,
    ]


def test_a_launch_that_was_cut_off_and_then_fails_is_a_launch() -> None:
    """The one after it is counted and waits as any other."""
    life = DeploymentLife()
    life.stopped()
    life.handle(resumed(T0 + 704, ended=(0, 1)))
    life.handle(Stopped(T0 + 705))
    assert life.failed_launch(T0 + 710) == (Refuse("rank 0 ended with 1", T0 + 717),)
    life.handle(Tick(T0 + 717))
    assert life.state.launches == (T0 + 705, T0 + 717)


def test_ranks_on_a_node_that_cannot_be_asked_are_never_launched_over() -> None:
    """Stop is tried again, after 5 s and then every 30 s; the launch comes only after all is verified gone."""
    life = DeploymentLife()
    why = "cannot verify that all is stopped: rank 1 on spark-2"
    left = ("rank 1 on spark-2",)
    assert life.stopped(left=left) == (Refuse(why), Announce("waiting", why))
    assert life.handle(Tick(T0 + 707)) == ()
    assert life.handle(Tick(T0 + 708)) == (StopRanks(3),)
    assert life.handle(Stopped(T0 + 709, left=left)) == (Refuse(why),)
    assert life.handle(Tick(T0 + 738)) == ()
    assert life.handle(Tick(T0 + 739)) == (StopRanks(4),)
    assert effect_kinds(life.handle(Stopped(T0 + 740))) == [Refuse, Launch]
    assert life.state.launches == (T0 + 740,)


def test_a_node_that_answers_again_is_stopped_at_once() -> None:
    """Nobody waits out a back-off when the lost node is back."""
    life = DeploymentLife()
    life.stopped(left=("rank 1 on spark-2",))
    assert life.handle(Fault(T0 + 704, "unseen:spark-2", "spark-2 does not answer", Recovery.NONE)) == ()
    assert life.handle(Cleared(T0 + 705, "unseen:spark-1")) == ()
    assert life.handle(Cleared(T0 + 705, "unseen:spark-2")) == (StopRanks(3),)


def test_a_node_that_never_answers_again_is_given_up() -> None:
    """A person is asked after six hours."""
    life = DeploymentLife()
    life.stopped(left=("rank 1 on spark-2",))
    at = T0 + 703
    while at < T0 + 703 + 21600:
        assert life.state.phase is D.BACKING_OFF
        life.handle(Tick(at := at + 30))
        life.handle(Stopped(at := at + 1, left=("rank 1 on spark-2",)))
    assert life.at() == (D.FAILED, Work.NONE)


def test_a_trouble_is_shown_and_stops_nothing() -> None:
    """Degraded while any trouble is left; announced once each, and ready again after the last."""
    life = DeploymentLife()
    drift = Fault(T0 + 1, "drift", "acceptance fell by a quarter", Recovery.NONE)
    assert life.handle(drift) == (Announce("degraded", "acceptance fell by a quarter"),)
    assert life.handle(replace(drift, at=T0 + 2, what="acceptance fell by a third")) == ()
    assert life.state.troubles == (("drift", "acceptance fell by a third"),)
    life.handle(Fault(T0 + 3, "swap", "swaps", Recovery.NONE))
    assert life.handle(Cleared(T0 + 4, "drift")) == () and life.state.phase is D.DEGRADED
    assert life.handle(Cleared(T0 + 5, "swap")) == (Announce("recovered", "swap is over"),)
    assert life.state.phase is D.READY and life.state.ready_at == T0


def test_the_memory_floor_closes_the_gateway_and_opens_it_again() -> None:
    """New work is refused while it lasts; the service itself stays ready."""
    life = DeploymentLife()
    low = Fault(T0 + 1, "memory", "6 GiB left", Recovery.REFUSE)
    assert life.handle(low) == (Refuse("6 GiB left"), Announce("degraded", "6 GiB left"))
    assert life.handle(replace(low, what="5 GiB left")) == ()
    assert life.at() == (D.READY, Work.NONE) and life.state.refusing
    assert life.handle(Cleared(T0 + 9, "memory")) == (Admit(), Announce("recovered", "memory is over"))
    assert not life.state.refusing


def test_the_second_floor_stops_and_launches_again() -> None:
    """Stopped cleanly before the host wedges; a counted launch like any other."""
    life = DeploymentLife()
    life.handle(Fault(T0 + 1, "memory", "6 GiB left", Recovery.REFUSE))
    assert effect_kinds(life.handle(Fault(T0 + 2, "memory", "2 GiB left", Recovery.STOP))) == [
        Refuse,
        Announce,
        Capture,
    ]
    assert life.handle(Captured(T0 + 3, 1)) == (StopRanks(2),)
    assert effect_kinds(life.handle(Stopped(T0 + 4))) == [Refuse, Launch]
    assert life.state.launches == (T0 + 4,)


def test_faults_of_ranks_that_are_being_stopped_start_nothing() -> None:
    """One work at a time; but what a relaunch cannot fix is kept, with its reason."""
    life = DeploymentLife()
    life.broken()
    assert life.broken(T0 + 701) == ()
    assert life.handle(Fault(T0 + 702, "xid", "Xid 79 on spark-1", Recovery.REBOOT)) == ()
    assert life.handle(Captured(T0 + 703, 1, Recovery.RELAUNCH, "killed")) == (StopRanks(2),)
    life.handle(Stopped(T0 + 704, boots=BOOTS))
    assert life.at() == (D.NEEDS_REBOOT, Work.NONE) and life.state.reason == "Xid 79 on spark-1"


@pytest.mark.parametrize(
    ("recovery", "phase", "outcome", "hint"),
    [
        (Recovery.REBOOT, D.NEEDS_REBOOT, "needs a reboot", "reboot all of its nodes"),
        (Recovery.POWER_CYCLE, D.NEEDS_POWER_CYCLE, "needs a power cycle", "off power for a minute"),
    ],
)
def test_what_no_relaunch_fixes_asks_for_a_person(recovery, phase, outcome, hint) -> None:
    """Ranks are stopped first; then it rests, and the gateway reports what a person should do."""
    life = DeploymentLife()
    refuse, close, announce = life.stopped(recovery=recovery, why="memory stays with the driver")
    assert hint in refuse.why and refuse.back_at == 0.0
    assert close == Close(1, outcome)
    assert announce == Announce("given-up", refuse.why)
    assert life.at() == (phase, Work.NONE)


def test_it_reboots_only_where_it_may_and_only_once() -> None:
    """All nodes together, then stop, then launch; a second need within the incident is a person's."""
    life = DeploymentLife(replace(POLICY, allow_reboot=True))
    refuse, reboot = life.stopped(recovery=Recovery.REBOOT)
    assert reboot == Reboot(BOOTS, 3) and "rebooted" in refuse.why
    assert life.handle(Rebooted(T0 + 800)) == (StopRanks(4),)
    assert effect_kinds(life.handle(Stopped(T0 + 801, boots=NEW_BOOTS))) == [Refuse, Launch]
    life.handle(LaunchFailed(T0 + 900, "Xid 79", Recovery.REBOOT))
    life.handle(Captured(T0 + 901, 1))
    assert effect_kinds(life.handle(Stopped(T0 + 902))) == [Refuse, Close, Announce]
    assert life.at() == (D.NEEDS_REBOOT, Work.NONE)


def test_a_power_cycle_is_never_tried_with_a_reboot() -> None:
    """A warm reboot does not help the wedge that asks for it."""
    life = DeploymentLife(replace(POLICY, allow_reboot=True))
    life.stopped(recovery=Recovery.POWER_CYCLE)
    assert life.at() == (D.NEEDS_POWER_CYCLE, Work.NONE)


def test_a_reboot_that_cannot_be_verified_is_not_made() -> None:
    """Nobody could report afterwards that it has happened without any boot marker."""
    life = DeploymentLife(replace(POLICY, allow_reboot=True))
    life.broken(recovery=Recovery.REBOOT)
    life.handle(Captured(T0 + 701, 1))
    life.handle(Stopped(T0 + 702))
    assert life.at() == (D.NEEDS_REBOOT, Work.NONE)


def test_a_reboot_that_failed_asks_for_a_person() -> None:
    """The sentence has both reasons."""
    life = DeploymentLife(replace(POLICY, allow_reboot=True))
    life.stopped(recovery=Recovery.REBOOT, why="Xid 79")
    life.handle(RebootFailed(T0 + 1000, "spark-2 did not come back"))
    assert life.at() == (D.NEEDS_REBOOT, Work.NONE)
    assert life.state.reason == "Xid 79; the reboot failed: spark-2 did not come back"


@for_each("phase, work", list(TABLE))
def test_a_person_who_takes_over_ends_it_all(phase, work) -> None:
    """Disarmed from anywhere is stopped, closes what is open, and nothing that comes later starts anything."""
    state = State(phase, T0, "why", work, turn=5, fault="frozen", incident=3, gone=True, refusing=True)
    life = DeploymentLife(state=state)
    effects = life.handle(Disarmed(T0 + 1))
    assert life.at() == (D.STOPPED, Work.NONE)
    if phase is not D.STOPPED:
        assert effects == (Close(3, "taken over"), Announce("closed", "a person has taken over"))
    life.handle(Tick(T0 + 2))
    for kind in EVENTS:
        assert life.handle(ANY.get(kind) or kind(T0 + 90000)) == ()
    assert life.at() == (D.STOPPED, Work.NONE)


def test_a_person_who_takes_over_during_the_capture_closes_what_it_has_opened() -> None:
    """The machine has not heard the number yet: whichever is open."""
    life = DeploymentLife()
    life.broken()
    assert life.handle(Disarmed(T0 + 701))[0] == Close(0, "taken over")


def test_what_was_wrong_while_it_started_is_forgotten_when_it_serves() -> None:
    """Detectors begin again with the new service; a trouble of the old one would never be cleared."""
    life = DeploymentLife()
    life.loading()
    assert life.handle(Fault(T0 + 711, "swap", "swaps", Recovery.NONE)) == ()
    assert life.handle(Fault(T0 + 712, "memory", "6 GiB left", Recovery.REFUSE)) == ()
    assert life.handle(Ready(T0 + 900))[0] == Admit()
    assert life.state.phase is D.READY and life.state.troubles == life.state.refusals == ()


def test_a_trouble_that_is_over_does_not_cut_a_back_off_short() -> None:
    """Only where ranks could not be verified gone is there anything to hurry for."""
    life = DeploymentLife()
    life.stopped()
    life.failed_launch(T0 + 710)
    life.handle(Fault(T0 + 713, "swap", "swaps", Recovery.NONE))
    assert life.handle(Cleared(T0 + 714, "swap")) == ()
    assert life.at() == (D.BACKING_OFF, Work.NONE)


def test_an_outage_that_ends_without_a_restart_stays_in_the_history() -> None:
    """Recorded with its beginning from ten seconds on; hooks hear of one that lasts for 15 s, and of its end."""
    for lasted, recorded in ((9.0, False), (79.0, True)):
        life, at = DeploymentLife(), T0 + lasted
        announced = life.handle(Fault(T0 + 3, "stalled", "no token for 3 s", Recovery.NONE, since=T0))
        assert life.state.phase is D.DEGRADED and not [*announced, *life.handle(Tick(T0 + 14))]
        heard = life.handle(Tick(T0 + 16)) if lasted > 16 else ()
        assert heard == ((Announce("degraded", "no token for 3 s"),) if heard else ())
        effects = life.handle(Cleared(at, "stalled", T0, "no token for 79 s"))
        said = Announce("recovered", "no token for 79 s; it recovered without a restart")
        trace = (Record("stalled", "no token for 79 s", T0, at),) if recorded else ()
        assert effects == ((*trace, said) if heard else trace) and life.state.phase is D.READY
