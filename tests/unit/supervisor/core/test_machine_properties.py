"""The machine in a simulated world that answers as it likes: what must hold in any order of events and kills."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from sparkwright.domain.codec import from_json, to_json
from sparkwright.domain.live import DeploymentState
from sparkwright.supervisor.core import events as now
from sparkwright.supervisor.core import state
from sparkwright.supervisor.core.machine import TABLE, first_state, step
from sparkwright.supervisor.core.state import Policy, Recovery, State, Work
from unit.supervisor.core.life import RESTING

WORKS = {
    state.Capture: Work.CAPTURE,
    state.StopRanks: Work.STOP,
    state.Launch: Work.LAUNCH,
    state.WatchRanks: Work.WATCH,
    state.Reboot: Work.REBOOT,
    state.SwapRanks: Work.SWAP,
}
SERVING = (DeploymentState.READY, DeploymentState.DEGRADED)
MILD = (Recovery.NONE, Recovery.REFUSE)


class Dice:
    """Choices read from bytes: hypothesis can shrink them. Out of bytes, the first choice."""

    def __init__(self, data: bytes) -> None:
        self._bytes: Iterator[int] = iter(data)
        self.left = len(data)

    def below(self, count: int) -> int:
        self.left -= 1
        return next(self._bytes, 0) % count

    def of(self, choices):
        return choices[self.below(len(choices))]


@dataclass
class MachineWorld:
    """Two nodes with a rank each, a supervisor that can be killed, and what the machine must never be seen doing."""

    dice: Dice
    policy: Policy
    mild: bool = False
    at: float = 1e9
    alive: list[bool] = field(default_factory=lambda: [True, True])
    boots: list[int] = field(default_factory=lambda: [1, 1])
    reached: bool = True
    doomed: bool = False
    lease_free: bool = False
    settled: bool = False  # nobody kills the supervisor any more
    work: object = None
    begun: list[tuple[float, bool]] = field(default_factory=list)
    counts: bool = True  # the launch that is under way was not asked for by a person
    counted: int = 0  # launches before this one do not count any more
    reboots: int = 0
    opened: int = 0
    closed: set[int] = field(default_factory=set)
    asked: bool = False  # a person asks just now
    admits: bool = True
    effects: int = 0

    def __post_init__(self) -> None:
        self.state: State = first_state(self.at)
        self.handle(self.resumed())

    def resumed(self) -> now.Resumed:
        seen = [0, 1] if self.reached else [0]
        running = tuple(rank for rank in seen if self.alive[rank])
        ended = tuple(rank for rank in seen if not self.alive[rank])
        unseen = () if self.reached else (1,)
        return now.Resumed(self.at, running, ended, unseen, self.markers())

    def markers(self):
        return tuple((f"node-{rank}", str(self.boots[rank])) for rank in ([0, 1] if self.reached else [0]))

    def handle(self, event) -> None:
        """One step of the loop. A doomed supervisor is killed after the journal and before any effect."""
        before = self.state
        self.state, effects = step(before, event, self.policy)
        assert (self.state.phase, self.state.work) in TABLE
        if before.ready_at and not self.state.ready_at and self.at - before.ready_at >= self.policy.stable:
            self.counted = len(self.begun)
        if before.rebooters and self.state.ready_at and not before.ready_at:
            self.counted = len(self.begun)  # nor one of an incident in which somebody reboots a node
        if before.phase is DeploymentState.STOPPED:
            assert self.state.phase is DeploymentState.STOPPED
            assert [effect for effect in effects if type(effect) in WORKS] == []
        assert sum(type(effect) in WORKS for effect in effects) <= 1, "two works in one step"
        if self.doomed:
            self.doomed = False
            self.kill()
        else:
            for effect in effects:
                self.carry_out(effect)
            self.look()

    def kill(self) -> None:
        """SIGKILL; what was being launched stays as it is, half done."""
        if isinstance(self.work, state.Launch) and self.counts:
            self.begun[-1] = (self.begun[-1][0], True)
        self.work, written = None, to_json(self.state)
        self.state = from_json(State, written)
        assert to_json(self.state) == written
        self.handle(self.resumed())

    def carry_out(self, effect) -> None:
        if type(effect) in WORKS:
            self.begin(effect)
        if isinstance(effect, state.Refuse | state.Admit):
            self.admits = isinstance(effect, state.Admit)
        if isinstance(effect, state.Close):
            self.closed.add(effect.incident or self.opened)

    def begin(self, effect) -> None:
        self.effects += 1
        assert effect.turn == self.state.turn and self.state.work is WORKS[type(effect)]
        cut_off = self.work is not None
        faulty = isinstance(self.work, state.WatchRanks) and isinstance(effect, state.Capture)
        asked = isinstance(effect, state.StopRanks | state.SwapRanks) and self.asked
        assert not cut_off or faulty or asked, "two works"
        self.work = effect
        if isinstance(effect, state.Capture) and effect.incident == 0 and self.opened in self.closed | {0}:
            self.opened += 1
            self.reboots = 0
        if isinstance(effect, state.Launch):
            assert self.alive == [False, False], "a second launch"
            self.counts = not self.state.planned
            if self.counts:
                self.begun.append((self.at, False))
            self.count()
        if isinstance(effect, state.Reboot):
            assert self.policy.allow_reboot and effect.before

    def count(self) -> None:
        """A launch that was cut off with its supervisor may be made once more. A reboot, and a launch that has held,
        let the count begin again."""
        for most, span in self.policy.windows:
            within = [cut for when, cut in self.begun[self.counted :] if self.at - when < span]
            assert within.count(False) <= most and len(within) <= 2 * most + 1, "past the loop guard"

    def look(self) -> None:
        """The conditions that hold after every step."""
        state = self.state
        assert (self.work is None) == (state.work is Work.NONE)
        if state.phase is not DeploymentState.STOPPED:
            assert self.admits == (not state.refusing)
            assert state.refusing == (state.phase not in SERVING or bool(state.refusals))
        if state.phase in RESTING:
            assert set(range(1, self.opened + 1)) <= self.closed, "an incident is left open"
        assert self.reboots <= 1

    # What happens in the world.

    def pass_time(self) -> None:
        self.at += self.dice.of((1.0, 5.0, 40.0, 130.0, 700.0, 4000.0))
        self.handle(now.Tick(self.at))

    def answer(self) -> None:
        if self.work is not None:
            self.at += self.dice.of((0.0, 1.0, 60.0, 900.0))
            getattr(self, f"_{type(self.work).__name__.lower()}")()

    def finished(self, event) -> None:
        turn = self.work.turn
        self.work = None
        self.handle(replace(event, turn=turn))

    def _capture(self) -> None:
        raised = self.dice.of((*[Recovery.NONE] * 6, Recovery.RELAUNCH, Recovery.REBOOT, Recovery.POWER_CYCLE))
        self.finished(now.Captured(self.at, self.opened, raised, self.dice.of(("", "the cause"))))

    def _stopranks(self) -> None:
        stubborn = self.dice.below(8) == 1
        self.alive = [False, self.alive[1] and (stubborn or not self.reached)]
        left = ("rank 1",) if self.alive[1] or not self.reached else ()
        raised = Recovery.REBOOT if self.dice.below(16) == 1 else Recovery.NONE
        self.finished(now.Stopped(self.at, left, recovery=raised, boots=self.markers()))

    def _launch(self) -> None:
        outcome = self.dice.of(("launched", "launched", "failed", "half", "busy")) if self.reached else "failed"
        if outcome == "busy" and not (any(self.alive) or self.lease_free):
            if self.counts:
                self.begun.pop()
            return self.finished(now.LaunchFailed(self.at, "somebody holds the lease", busy=True))
        self.alive = [outcome == "launched", outcome in ("launched", "half")]
        event = now.Launched(self.at) if outcome == "launched" else now.LaunchFailed(self.at, "did not start")
        return self.finished(event)

    def _watchranks(self) -> None:
        works = all(self.alive) and self.dice.below(3) != 1
        self.alive = [alive and (works or self.dice.below(2) == 1) for alive in self.alive]
        self.finished(
            now.Ready(self.at) if works else now.LaunchFailed(self.at, "no token came", busy=bool(self.dice.below(2)))
        )

    def _reboot(self) -> None:
        if self.dice.below(3) == 1:
            return self.finished(now.RebootFailed(self.at, "it does not answer"))
        before = dict(self.work.before)
        if before["node-0"] == str(self.boots[0]):
            self.reboots += 1
        for rank in (0, 1):
            if before.get(f"node-{rank}") == str(self.boots[rank]):
                self.counted = len(self.begun)
                self.boots[rank] += 1
                self.alive[rank] = False
        return self.kill() if self.dice.below(2) and not self.settled else self.finished(now.Rebooted(self.at))

    def _swapranks(self) -> None:
        """The replacement is gone, or it is not to come back."""
        self.finished(now.Returned(self.at, "not replaced", self.dice.below(3) != 1))

    def ask(self) -> None:
        """A person's request, whatever is under way: the loop cuts that off."""
        self.asked, self.reboots = True, 0
        self.handle(self.dice.of((now.Restart, now.Halt, now.Replaced))(self.at, "as a person wants"))
        self.asked = False

    def half_launch(self) -> None:
        if isinstance(self.work, state.Launch) and self.reached:
            self.alive = [self.dice.below(2) == 1, True]

    def fault(self) -> None:
        recovery = self.dice.of(MILD if self.mild else tuple(Recovery))
        self.handle(now.Fault(self.at, self.dice.of(("a", "b")), "a figure", recovery))

    def clear(self) -> None:
        self.handle(now.Cleared(self.at, self.dice.of(("a", "b"))))

    def toggle_worker(self) -> None:
        self.reached = not self.reached
        kind = "unseen:node-1"
        lost = now.Fault(self.at, kind, "node-1 does not answer", Recovery.NONE)
        self.handle(now.Cleared(self.at, kind) if self.reached else lost)

    def lose_rank(self) -> None:
        rank = self.dice.below(2)
        self.alive[rank] = False
        if self.state.work is not Work.LAUNCH and (rank == 0 or self.reached):
            self.handle(now.Fault(self.at, "rank-exited", f"rank {rank} has ended", Recovery.RELAUNCH))

    def reboot_by_itself(self) -> None:
        rank = self.dice.below(3)
        for node in (0, 1) if rank == 2 else (rank,):
            self.alive[node] = False
            self.boots[node] += 1
        self.counted = len(self.begun)
        self.kill()

    def late_answer(self) -> None:
        kinds = (now.Captured, now.Stopped, now.Launched, now.Ready, now.LaunchFailed, now.Rebooted, now.RebootFailed)
        kind = self.dice.of(kinds)
        extra = {now.Captured: (1,), now.LaunchFailed: ("late",), now.RebootFailed: ("late",)}.get(kind, ())
        turn, effects = self.state.turn - 1 - self.dice.below(3), self.effects
        doomed, before = self.doomed, replace(self.state, owed=())
        self.handle(kind(self.at, *extra, turn=turn))
        assert doomed or (replace(self.state, owed=()) == before and self.effects == effects)

    def doom(self) -> None:
        self.doomed = True

    def disarm(self) -> None:
        if self.dice.below(8) == 1:
            self.work = None
            self.handle(now.Disarmed(self.at))


CALM = ("pass_time", "answer", "fault", "clear", "toggle_worker", "kill", "doom", "late_answer")
WILD = (*CALM, *["answer"] * 6, "half_launch", "lose_rank", "reboot_by_itself", "disarm", "ask")
LOOP = (*["answer"] * 8, "pass_time", "pass_time", "lose_rank", "kill", "doom", "half_launch")


def play_world(data: bytes, policy: Policy, actions=WILD, mild=False) -> MachineWorld:
    world = MachineWorld(Dice(data), policy, mild)
    while world.dice.left > 0:
        getattr(world, world.dice.of(actions))()
    return world


lives = st.binary(min_size=100, max_size=300)


@settings(max_examples=max(100, settings().max_examples), deadline=None)
@given(lives, st.booleans(), st.sampled_from((WILD, LOOP)), st.sampled_from(((3, 6), (2, 3), (1, 2))))
def test_no_order_of_events_and_kills_breaks_it(data, allow_reboot, actions, most) -> None:
    """Never two works, never a launch next to ranks that may run or past the guard, no incident left open."""
    windows = ((most[0], 1800.0), (most[1], 21600.0))
    play_world(data, Policy(windows=windows, allow_reboot=allow_reboot), actions)


@settings(deadline=None)
@given(lives, st.binary(min_size=1, max_size=20))
def test_it_comes_to_rest(data, ends) -> None:
    """The deployment serves or asks for a person once nothing happens but works that end somehow and time that
    passes."""
    world = play_world(data, Policy(allow_reboot=True))
    world.doomed, world.dice, world.lease_free, world.settled = False, Dice(ends * 100), True, True
    for _ in range(200):
        if world.state.phase in RESTING:
            break
        world.answer()
        world.at += 600.0
        world.handle(now.Tick(world.at))
    assert world.state.phase in RESTING


@settings(deadline=None)
@given(lives)
def test_troubles_kill_nothing(data) -> None:
    """A trouble that no detector calls fatal, a lost node and a killed supervisor included, never stops running
    ranks."""
    world = play_world(data, Policy(), CALM, mild=True)
    assert world.effects == 0 and world.alive == [True, True]
    assert world.state.phase in SERVING
