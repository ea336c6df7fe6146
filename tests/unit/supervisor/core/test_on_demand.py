"""A deployment on demand: stopped when nobody asks, started by a request."""

from sparkwright.domain.live import DeploymentState
from sparkwright.supervisor.core.events import Captured, Demand, Idle, Launched, LaunchFailed, Ready, Stopped
from sparkwright.supervisor.core.state import Admit, Announce, Capture, Launch, Refuse, StopRanks, Work
from unit.supervisor.core.life import POLICY, T0, DeploymentLife, effect_kinds, resumed

D = DeploymentState


def asleep() -> DeploymentLife:
    """Stopped for want of requests."""
    life = DeploymentLife()
    life.handle(Idle(T0 + 900))
    life.handle(Stopped(T0 + 903))
    return life


def test_what_nobody_asks_for_is_stopped_and_started_by_a_request() -> None:
    """Guards a model on demand: no incident, no launch that counts, no news, and 503 with the reason in between."""
    life = DeploymentLife()
    assert life.handle(Idle(T0 + 900, "no request")) == (Refuse("no request"), StopRanks(1))
    assert life.handle(Stopped(T0 + 903)) == (Refuse("no request"),)
    assert life.at() == (D.ON_DEMAND, Work.NONE) and life.state.refusing
    assert life.handle(resumed(T0 + 950, ended=(0, 1))) == (Refuse("no request"),)
    assert life.handle(Demand(T0 + 960)) == (Refuse("a request has asked for it", T0 + 960), Launch(2))
    assert life.handle(Demand(T0 + 961)) == ()
    life.handle(Launched(T0 + 970))
    assert life.handle(Ready(T0 + 980)) == (Admit(),)
    assert life.at() == (D.READY, Work.NONE) and not life.state.idle
    assert (life.state.launches, life.state.attempt) == ((), 0)


def test_a_request_before_the_stop_keeps_it() -> None:
    """Guards a request that runs: the stop for want of any finds it, and it serves as before."""
    life = DeploymentLife()
    life.handle(Idle(T0 + 900))
    assert life.handle(Ready(T0 + 901)) == (Admit(),) and life.at() == (D.READY, Work.NONE)
    life.broken()
    life.handle(Captured(T0 + 701, 1))
    assert life.handle(Ready(T0 + 902)) == () and life.at() == (D.DRAINING, Work.STOP)


def test_a_start_that_the_plan_refuses_stays_stopped_and_is_tried_again_later() -> None:
    """Guards what serves next to it: nothing is captured or stopped, and not every request asks all nodes again."""
    life, why = asleep(), "MEM001 spark-1: does not fit"
    life.handle(Demand(T0 + 960))
    assert life.handle(LaunchFailed(T0 + 962, why, refused=True)) == (Refuse(why),)
    assert life.at() == (D.ON_DEMAND, Work.NONE) and life.state.declined == T0 + 962
    assert life.handle(Demand(T0 + 970)) == ()
    assert effect_kinds(life.handle(Demand(T0 + 962 + POLICY.again))) == [Refuse, Launch]
    life.handle(Launched(T0 + 1000))
    life.handle(Ready(T0 + 1010))
    assert not life.state.declined


def test_a_start_on_demand_that_fails_is_a_fault_like_any_other() -> None:
    """Its evidence is captured, and it is launched again for those who wait, within the guard."""
    life = asleep()
    life.handle(Demand(T0 + 960))
    assert effect_kinds(life.handle(LaunchFailed(T0 + 965, "rank 0 ended with 1"))) == [Refuse, Announce, Capture]
    life.handle(Captured(T0 + 966, 1))
    assert effect_kinds(life.handle(Stopped(T0 + 967))) == [Refuse, Launch] and len(life.state.launches) == 1


def test_ranks_that_run_while_it_is_on_demand_are_stopped() -> None:
    """Guards a supervisor that was killed in a stop: what runs all the same would hold the memory unseen."""
    life = asleep()
    assert effect_kinds(life.handle(resumed(T0 + 950, running=(0,), ended=(1,)))) == [Refuse, StopRanks]
    assert effect_kinds(life.handle(Stopped(T0 + 951))) == [Refuse] and life.at() == (D.ON_DEMAND, Work.NONE)
