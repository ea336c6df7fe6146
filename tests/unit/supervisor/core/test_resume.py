"""A supervisor that is killed anywhere and begins again: what was under way is taken up once."""

from dataclasses import replace

import pytest

from sparkwright.domain.live import DeploymentState
from sparkwright.supervisor.core.events import Captured, Cleared, Fault, Launched, LaunchFailed, Ready, Stopped, Tick
from sparkwright.supervisor.core.machine import TABLE, first_state, step
from sparkwright.supervisor.core.state import (
    Admit,
    Announce,
    Capture,
    Close,
    Launch,
    Reboot,
    Recovery,
    Refuse,
    State,
    StopRanks,
    WatchRanks,
    Work,
)
from unit.for_each import for_each
from unit.supervisor.core.life import BOOTS, NEW_BOOTS, POLICY, T0, DeploymentLife, effect_kinds, resumed

D = DeploymentState
ALL = (0, 1)


def test_a_service_that_runs_is_left_alone() -> None:
    """The gateway is informed again, detectors begin again, and since when it serves is kept."""
    life = DeploymentLife()
    life.handle(Fault(T0 + 1, "drift", "acceptance fell", Recovery.NONE))
    life.handle(Fault(T0 + 2, "memory", "6 GiB left", Recovery.REFUSE))
    life.handle(Tick(T0 + 3))
    assert life.handle(resumed(T0 + 9, running=ALL)) == (Admit(),)
    assert life.state == replace(first_state(T0), boots=BOOTS, since=T0 + 9)


@pytest.mark.parametrize(("running", "unseen"), [((0,), (1,)), ((), ALL), ((), ())])
def test_a_rank_that_cannot_be_seen_has_not_ended(running, unseen) -> None:
    """Losing ssh to a node is not losing its rank."""
    life = DeploymentLife()
    assert life.handle(resumed(T0 + 9, running=running, unseen=unseen)) == (Admit(),)
    assert life.at() == (D.READY, Work.NONE)


def test_a_reboot_of_all_nodes_is_reported_and_fixed() -> None:
    """The ranks ended with their nodes: evidence, stop, and a launch that waits for nothing."""
    life = DeploymentLife()
    life.handle(resumed(T0 + 1, running=ALL))
    what = "ranks 0, 1 have ended while nothing watched; spark-1, spark-2 were rebooted"
    effects = life.handle(resumed(T0 + 700, ended=ALL, boots=NEW_BOOTS))
    assert effects == (
        Refuse(what, T0 + 700),
        Announce("opened", what),
        Capture(0, "rank-exited", what, (), 1, T0 + 700),
    )
    life.handle(Captured(T0 + 701, 1))
    assert effect_kinds(life.handle(Stopped(T0 + 702))) == [Refuse, Launch]
    life.handle(Launched(T0 + 703))
    life.handle(Ready(T0 + 713))
    assert life.state.launches == () and life.state.attempt == 0, "a reboot is no fault of a launch"


def test_the_head_that_is_back_before_the_worker_waits_for_it() -> None:
    """Both nodes lose power; the head's supervisor tries to stop until the worker answers, and only then launches."""
    life = DeploymentLife()
    assert effect_kinds(life.handle(resumed(T0 + 60, ended=(0,), unseen=(1,)))) == [Refuse, Announce, Capture]
    life.handle(Captured(T0 + 61, 1))
    life.handle(Stopped(T0 + 62, left=("rank 1 on spark-2",)))
    life.handle(Tick(T0 + 67))
    assert effect_kinds(life.handle(Stopped(T0 + 68))) == [Refuse, Launch]
    assert life.state.launches == (T0 + 68,)


def test_a_capture_goes_on_as_the_same_incident_with_its_evidence() -> None:
    """The capture goes on when the supervisor had not yet heard which number the incident has."""
    life = DeploymentLife()
    life.broken()
    life.handle(Tick(T0 + 701))
    why = "rank 1 ended with 137"
    again = life.handle(resumed(T0 + 702, ended=ALL))
    assert again == (Refuse(why, T0 + 702), Capture(0, "rank-exited", why, ("exit 137",), 2, T0 + 700))


def test_a_stop_is_made_again() -> None:
    """Stopping what is gone costs nothing; launching next to what is not would cost everything."""
    life = DeploymentLife()
    life.broken()
    life.handle(Captured(T0 + 701, 1))
    assert effect_kinds(life.handle(resumed(T0 + 702, running=(0,), ended=(1,)))) == [Refuse, StopRanks]


def test_a_back_off_goes_on_to_its_end() -> None:
    """The verified stop stays so, and the launch comes when it would have come."""
    life = DeploymentLife()
    life.stopped()
    life.failed_launch(T0 + 710)
    assert life.handle(resumed(T0 + 713, ended=ALL)) == (Refuse("rank 0 ended with 1", T0 + 717),)
    assert life.handle(Tick(T0 + 716)) == ()
    assert effect_kinds(life.handle(Tick(T0 + 717))) == [Refuse, Launch]


@pytest.mark.parametrize(("running", "unseen"), [((1,), ()), ((), (1,))])
def test_a_back_off_that_finds_ranks_or_cannot_look_stops_first(running, unseen) -> None:
    """Gone is only what was seen to be gone."""
    life = DeploymentLife()
    life.stopped()
    life.failed_launch(T0 + 710)
    assert effect_kinds(life.handle(resumed(T0 + 713, running=running, unseen=unseen))) == [Refuse, StopRanks]


@pytest.mark.parametrize(("running", "unseen"), [(ALL, ()), ((0,), (1,))])
def test_a_launch_that_was_whole_is_watched(running, unseen) -> None:
    """The head's rank is started last: where it runs, no second launch is needed."""
    life = DeploymentLife()
    life.stopped()
    assert effect_kinds(life.handle(resumed(T0 + 705, running=running, unseen=unseen))) == [Refuse, WatchRanks]
    assert life.state.launches == (T0 + 703,)


@pytest.mark.parametrize(
    ("running", "ended", "unseen"),
    [((1,), (0,), ()), ((0,), (1,), ()), ((), ALL, ()), ((), (0,), (1,)), ((1,), (), (0,))],
)
def test_a_launch_that_was_cut_off_is_made_again_and_counted_once(running, ended, unseen) -> None:
    """All of it is stopped first; the launch then counts at its new time and waits for nothing."""
    life = DeploymentLife()
    life.stopped()
    assert effect_kinds(life.handle(resumed(T0 + 705, running=running, ended=ended, unseen=unseen))) == [
        Refuse,
        StopRanks,
    ]
    assert effect_kinds(life.handle(Stopped(T0 + 706))) == [Refuse, Launch]
    assert life.state.launches == (T0 + 706,) and life.state.attempt == 1
    life.handle(Launched(T0 + 707))
    assert not life.state.counted


def test_a_launch_that_is_cut_off_again_and_again_is_counted() -> None:
    """It may be the launch that kills the supervisor: the guard ends that loop, too."""
    life, launches, at = DeploymentLife(), 1, T0 + 703
    life.stopped()
    for _ in range(30):
        life.handle(resumed(at := at + 5, ended=ALL))
        launches += Launch in effect_kinds(life.handle(Stopped(at := at + 1)))
        launches += Launch in effect_kinds(life.handle(Tick(at := at + 700)))
    assert life.state.phase is D.FAILED and 3 < launches <= 12


def test_a_watch_goes_on_unless_a_rank_has_ended() -> None:
    """A load of a quarter of an hour survives its supervisor."""
    life = DeploymentLife()
    life.loading()
    assert life.handle(resumed(T0 + 720, running=(0,), unseen=(1,))) == (
        Refuse("starting again: rank 1 ended with 137", T0 + 710),
        WatchRanks(5),
    )
    assert effect_kinds(life.handle(resumed(T0 + 730, running=(0,), ended=(1,)))) == [Refuse, Capture]
    assert life.state.incident == 1


def test_up_that_was_not_ready_yet_is_watched_to_its_end() -> None:
    """The supervisor may be armed before the first token; the gateway opens with it."""
    life = DeploymentLife(state=first_state(T0, ready=False))
    assert life.handle(resumed(T0 + 1, running=ALL)) == (Refuse("is being started", T0), WatchRanks(2))
    assert life.handle(Ready(T0 + 60)) == (Admit(), Announce("recovered", "serving"))


def test_the_reboot_of_the_head_ends_the_supervisor_and_not_the_recovery() -> None:
    """The reboot is over when every node has another marker; until then it continues with the markers from before."""
    life = DeploymentLife(replace(POLICY, allow_reboot=True))
    life.stopped(recovery=Recovery.REBOOT)
    half = (("spark-1", "c"),)
    assert life.handle(resumed(T0 + 800, ended=(0,), unseen=(1,), boots=half))[-1] == Reboot(BOOTS, 4)
    assert life.handle(resumed(T0 + 810, ended=ALL, boots=(*half, ("spark-2", "b"))))[-1] == Reboot(BOOTS, 5)
    assert effect_kinds(life.handle(resumed(T0 + 820, ended=ALL, boots=NEW_BOOTS))) == [Refuse, StopRanks]
    assert effect_kinds(life.handle(Stopped(T0 + 821, boots=NEW_BOOTS))) == [Refuse, Launch]


@pytest.mark.parametrize("recovery", [Recovery.REBOOT, Recovery.POWER_CYCLE])
def test_what_a_person_was_asked_for_and_has_done_restores_it(recovery) -> None:
    """All nodes have other boot markers: stop, launch; a node that still has its old one is waited for."""
    life = DeploymentLife()
    life.stopped(recovery=recovery)
    resting = life.at()
    life.handle(Tick(T0 + 704))
    assert effect_kinds(life.handle(resumed(T0 + 800, ended=ALL))) == [Refuse]
    assert effect_kinds(life.handle(resumed(T0 + 800, ended=ALL, boots=(("spark-1", "c"), ("spark-2", "b"))))) == [
        Refuse
    ]
    assert life.at() == resting
    assert effect_kinds(life.handle(resumed(T0 + 900, ended=ALL, boots=NEW_BOOTS))) == [Refuse, StopRanks]
    assert effect_kinds(life.handle(Stopped(T0 + 901, boots=NEW_BOOTS))) == [Refuse, Launch]
    life.handle(Launched(T0 + 902))
    assert life.handle(Ready(T0 + 990)) == (Admit(), Announce("recovered", "serving"))


def test_a_reboot_by_a_person_is_not_followed_by_one_of_ours() -> None:
    """A need for another reboot right after one needs a person."""
    life = DeploymentLife(replace(POLICY, allow_reboot=True))
    life.stopped(recovery=Recovery.POWER_CYCLE)
    life.handle(resumed(T0 + 900, ended=ALL, boots=NEW_BOOTS))
    life.handle(Stopped(T0 + 901, recovery=Recovery.REBOOT, boots=NEW_BOOTS))
    assert life.at() == (D.NEEDS_REBOOT, Work.NONE)


def test_what_was_given_up_stays_so() -> None:
    """Neither a restart nor a reboot begins the loop of launches again; the gateway goes on reporting what to do."""
    life = DeploymentLife(state=State(D.FAILED, T0, "3 launches did not help", refusing=True, boots=BOOTS))
    (refuse,) = life.handle(resumed(T0 + 900, ended=ALL, boots=NEW_BOOTS))
    assert refuse == Refuse(
        "3 launches did not help; start it again with `sparkwright up` once the cause is fixed", 0.0
    )
    assert life.at() == (D.FAILED, Work.NONE)


def test_what_was_to_be_announced_when_it_was_killed_is_announced() -> None:
    """Journaled, not done: closing and announcing are reported again, and not once more after the next event."""
    life = DeploymentLife()
    life.loading()
    said = (Close(1, "serving again"), Announce("closed", "serving again after: rank 1 ended with 137"))
    assert life.handle(Ready(T0 + 900)) == (Admit(), *said)
    assert life.handle(resumed(T0 + 901, running=ALL)) == (*said, Admit())
    life.handle(Tick(T0 + 902))
    assert life.handle(resumed(T0 + 903, running=ALL)) == (Admit(),)


@for_each("situation", [pair for pair in TABLE if pair[0] is not D.STOPPED])
def test_the_gateway_is_informed_in_every_phase(situation) -> None:
    """A supervisor that begins again need not know what the gateway was given last."""
    phase, work = situation
    state = State(phase, T0, "why", work, gone=True, refusing=phase not in (D.READY, D.DEGRADED))
    effects = DeploymentLife(state=state).handle(resumed(T0 + 1, running=ALL))
    assert sum(isinstance(effect, Refuse | Admit) for effect in effects) == 1


def test_the_watch_of_a_killed_supervisor_answers_to_nobody() -> None:
    """The new one watches automatically, and only its own watch can fail the launch."""
    life = DeploymentLife()
    life.loading()
    late = LaunchFailed(T0 + 721, "cut off", turn=life.state.turn)
    life.handle(resumed(T0 + 720, running=ALL))
    assert step(life.state, late, POLICY) == (life.state, ())


def test_who_is_refused_hears_of_the_full_disk() -> None:
    """Guards who looks for the cause: the disk is named with it in every 503, and where a person is asked for."""
    life, full = DeploymentLife(), "disk full on spark-1: 0.0 MiB free in ~/.local/state/sparkwright"
    life.handle(Fault(T0 + 1, "disk-full:spark-1", full, Recovery.NONE))
    effects = life.stopped()
    while life.state.phase is not D.FAILED:
        assert [full in one.why for one in effects if isinstance(one, Refuse)] == [True]
        effects = life.failed_launch(life.state.since + 10) if life.at()[1] else life.handle(Tick(life.state.due))
    assert life.state.reason == f"4 faults within 30 min 00 s: rank 0 ended with 1; {full}"


def test_a_disk_that_has_room_again_leaves_the_answer_to_clients() -> None:
    """Guards a 503 that names a full disk seconds after somebody made room: it is written again with the clearing."""
    life, full = DeploymentLife(), "disk full on spark-1: 0.0 MiB free in ~/.local/state/sparkwright"
    life.handle(Fault(T0 + 1, "disk-full:spark-1", full, Recovery.NONE))
    life.stopped()
    (refusal,) = life.handle(Cleared(life.state.since + 1, "disk-full:spark-1"))
    assert isinstance(refusal, Refuse) and "disk full" not in refusal.why


@pytest.mark.parametrize(("boots", "began"), [(NEW_BOOTS, T0 + 640), (BOOTS, T0 + 700)], ids=["head", "no node"])
def test_a_reboot_of_the_head_counts_from_its_last_sign_of_life(boots, began) -> None:
    """The gateway went with it; without a reboot nobody knows since when the ranks were gone."""
    life = DeploymentLife()
    life.handle(resumed(T0 + 1, running=ALL))
    back = replace(resumed(T0 + 700, ended=ALL, boots=boots), alive=T0 + 640)
    (capture,) = [effect for effect in life.handle(back) if isinstance(effect, Capture)]
    assert capture.since == began
