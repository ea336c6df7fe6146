"""The requests of a person to a supervisor: a restart, and the nodes for something else."""

import pytest

from sparkwright.domain.live import DeploymentState
from sparkwright.supervisor.core.events import (
    Captured,
    Fault,
    Halt,
    Launched,
    LaunchFailed,
    Ready,
    Replaced,
    Restart,
    Returned,
    Stopped,
    Tick,
)
from sparkwright.supervisor.core.state import (
    Admit,
    Announce,
    Capture,
    Close,
    Launch,
    Recovery,
    Refuse,
    ServedAgain,
    StopRanks,
    SwapRanks,
    Work,
)
from unit.supervisor.core.life import T0, DeploymentLife, effect_kinds, resumed

D = DeploymentState


def test_a_restart_by_a_person_is_no_incident_and_no_launch_that_counts() -> None:
    """Guards a maintenance evening: four of them in ten minutes, and the guard still has its three launches."""
    life = DeploymentLife()
    for number in range(4):
        at = T0 + 700 + 100 * number
        assert effect_kinds(life.handle(Restart(at, "restarted by anna@desk"))) == [Refuse, StopRanks]
        assert effect_kinds(life.handle(Stopped(at + 3))) == [Refuse, Launch]
        life.handle(Launched(at + 5))
        assert effect_kinds(life.handle(Ready(at + 20))) == [Admit, Announce]
    assert life.at() == (D.READY, Work.NONE)
    assert (life.state.launches, life.state.attempt, life.state.planned) == ((), 0, False)


@pytest.mark.parametrize("halted", [False, True])
def test_an_outage_that_a_person_takes_over_lasts_until_it_serves(halted: bool) -> None:
    """Guards `away` of an incident that ends with a restart; one that a person has stopped is no outage any more."""
    life = DeploymentLife()
    life.stopped()
    if halted:
        life.handle(Halt(T0 + 705, "stopped by an operator"))
        life.handle(Stopped(T0 + 706))
    life.handle(Restart(T0 + 710, "restarted by anna@desk"))
    life.handle(Restart(T0 + 711, "and again"))
    life.handle(Stopped(T0 + 713))
    life.handle(Launched(T0 + 715))
    assert (ServedAgain() in life.handle(Ready(T0 + 720))) is not halted
    assert not life.state.handed


@pytest.mark.parametrize("broken", [False, True])
def test_what_a_person_has_stopped_stays_so_until_a_restart(broken: bool) -> None:
    """Guards the stop of the console: no incident, no launch by fault, clock or reboot, and the way back."""
    life = DeploymentLife()
    if broken:
        life.broken()
    effects = life.handle(Halt(T0 + 701, "stopped by an operator"))
    assert effect_kinds(effects) == [Refuse, *([Close] if broken else []), StopRanks]
    assert effect_kinds(life.handle(Stopped(T0 + 702, left=("spark-2",)))) == [Refuse, Announce]
    assert effect_kinds(life.handle(Tick(T0 + 2000))) == [StopRanks] and effect_kinds(
        life.handle(Stopped(T0 + 2001))
    ) == [Refuse]
    assert life.at() == (D.HALTED, Work.NONE) and "restart" in life.handle(resumed(T0 + 2002, ended=(0, 1)))[0].why
    fault = Fault(T0 + 2003, "rank-exited", "rank 1 ended", Recovery.RELAUNCH)
    for event in (fault, Tick(T0 + 9000), Halt(T0 + 9001)):
        assert life.handle(event) == () and life.at() == (D.HALTED, Work.NONE)
    assert effect_kinds(life.handle(Restart(T0 + 9002))) == [Refuse, StopRanks]
    assert effect_kinds(life.handle(Stopped(T0 + 9003))) == [Refuse, Launch] and not life.state.launches


def test_a_restart_that_fails_is_a_fault_like_any_other() -> None:
    """Its evidence is captured, and what follows counts."""
    life = DeploymentLife()
    life.handle(Restart(T0 + 1, "restarted by anna@desk"))
    life.handle(Stopped(T0 + 2))
    assert effect_kinds(life.handle(LaunchFailed(T0 + 5, "rank 0 ended with 1"))) == [Refuse, Announce, Capture]
    life.handle(Captured(T0 + 6, 1))
    assert effect_kinds(life.handle(Stopped(T0 + 7))) == [Refuse, Launch] and len(life.state.launches) == 1


def test_while_it_is_replaced_nothing_is_done_about_its_ranks() -> None:
    """The `up` stops them: that is no fault, and a supervisor that is killed meanwhile goes on waiting."""
    life, why = DeploymentLife(), "being replaced by anna@desk"
    assert life.handle(Replaced(T0 + 1, why)) == (Refuse(why, T0 + 1), SwapRanks(1))
    assert life.at() == (D.STARTING, Work.SWAP)
    assert life.handle(Fault(T0 + 2, "rank-exited", "rank 1 ended", Recovery.RELAUNCH)) == ()
    assert life.handle(resumed(T0 + 3, ended=(0, 1))) == (Refuse(why, T0 + 1), SwapRanks(2))


@pytest.mark.parametrize("broken", [False, True])
def test_what_was_not_replaced_is_started_again(broken: bool) -> None:
    """Everything is stopped first, whatever it was about before, an incident included, and the launch does not
    count."""
    life = DeploymentLife()
    if broken:
        life.stopped()
    before = life.state.launches
    effects = life.handle(Replaced(T0 + 710, "being replaced"))
    assert (Close(1, "taken over") in effects) is broken
    assert effect_kinds(life.handle(Returned(T0 + 720, "the new one ran out of memory"))) == [Refuse, StopRanks]
    assert effect_kinds(life.handle(Stopped(T0 + 721))) == [Refuse, Launch]
    life.handle(Launched(T0 + 722))
    assert life.handle(Ready(T0 + 730)) == (
        Admit(),
        *([ServedAgain()] if broken else []),
        Announce("recovered", "serving again after: the new one ran out of memory"),
    )
    assert life.state.launches == before


def test_without_a_rollback_a_person_has_to_act() -> None:
    """The gateway stays and gives the reason; nothing is started."""
    life = DeploymentLife()
    life.handle(Replaced(T0 + 1, "being replaced"))
    effects = life.handle(Returned(T0 + 20, "the new one ran out of memory", again=False))
    assert effect_kinds(effects) == [Refuse, Announce] and "out of memory" in effects[0].why
    assert life.at() == (D.FAILED, Work.NONE)


def test_a_restart_that_cannot_go_on_is_an_incident_once() -> None:
    """The worker cannot be asked: an incident says why at once, tries are few, and it returns with the node."""
    life = DeploymentLife()
    life.handle(Restart(T0 + 1, "a planned restart"))
    effects = life.handle(Stopped(T0 + 5, left=("spark-2: the host key has CHANGED; run x",)))
    assert effect_kinds(effects) == [Refuse, Announce, Capture] and "host key" in effects[1].text
    life.handle(Captured(T0 + 6, 1))
    assert effect_kinds(life.handle(Stopped(T0 + 7, left=("spark-2",)))) == [Refuse, Announce]
    assert life.state.incident == 1 and life.state.unverified == T0 + 7
    assert effect_kinds(life.handle(Tick(T0 + 60))) == [StopRanks] and effect_kinds(life.handle(Stopped(T0 + 61))) == [
        Refuse,
        Launch,
    ]
    life.handle(Launched(T0 + 62))
    assert effect_kinds(life.handle(Ready(T0 + 70))) == [Admit, Close, Announce]


def test_a_node_that_goes_away_before_the_start_of_a_restart_is_an_incident() -> None:
    """Guards an endless wait that nobody sees: no rank runs, and the launch finds no node."""
    life = DeploymentLife()
    life.handle(Restart(T0 + 1, "a planned restart"))
    life.handle(Stopped(T0 + 2))
    lost = LaunchFailed(T0 + 9, "spark-2: no route to host", busy=True, unseen=True)
    assert effect_kinds(life.handle(lost)) == [Refuse, Announce, Capture]
    assert life.state.fault == "restart-failed"


def test_what_was_replaced_by_another_here_rests() -> None:
    """A switch in the console that went well: no hook calls it given up, and a restart brings it back."""
    life = DeploymentLife()
    life.handle(Replaced(T0 + 1, "being replaced"))
    effects = life.handle(Returned(T0 + 20, "chat2 serves in its place", again=False, halted=True))
    assert effect_kinds(effects) == [Refuse] and "chat2 serves in its place" in effects[0].why
    assert life.at() == (D.HALTED, Work.NONE)
    assert effect_kinds(life.handle(Restart(T0 + 30))) == [Refuse, StopRanks]
