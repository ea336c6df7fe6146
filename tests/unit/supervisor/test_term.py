"""The choice of who may serve: never both, whatever is delayed, lost, paused or rebooted."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sparkwright.domain.cluster import Cluster, Node
from sparkwright.domain.standby import TERM, Term, voters_of
from sparkwright.supervisor.core.term import StandbyWait, Vote, end_of_term, held_by, is_majority

CANDIDATES = ("head", "standby")


@dataclass
class Voter:
    """The rule of remote/votes.sh; tests/functional/remote/test_votes.py compares them. rate, offset: of its clock."""

    rate: float = 1.0
    offset: float = 0.0
    promise: tuple[str, int, str] | None = None  # holder, until, nonce

    def now(self, at: float) -> int:
        return int(self.offset + self.rate * at)

    def known(self, at: float) -> tuple[str, int, str]:
        self.promise = self.promise or ("-", self.now(at) + int(TERM) + 1, "-")
        return self.promise

    def ask(self, at: float, candidate: str, nonce: str) -> bool:
        holder, until, _ = self.known(at)
        if candidate != holder and self.now(at) < until:
            return False
        self.promise = candidate, self.now(at) + int(TERM) + 1, nonce
        return True

    def release(self, at: float, nonce: str) -> None:
        if self.known(at)[2] == nonce:
            self.promise = "-", self.now(at), "-"

    def reboot(self, at: float) -> None:
        """Its clock begins anew, and what it promised is forgotten."""
        self.promise, self.offset = None, -self.rate * at


@dataclass
class VoteCandidate:
    """It serves from when it knows of its votes until the end of its term. rate: of its clock."""

    rate: float
    until: float = -1.0
    served: list[tuple[float, float]] = field(default_factory=list)
    nonces: dict[int, str] = field(default_factory=dict)


@dataclass
class VotingWorld:
    """Events in the order of their times; a message may take as long as it likes, and a process may rest anywhere."""

    voters: list[Voter]
    candidates: dict[str, VoteCandidate]
    events: list[tuple[float, int, Callable[[float], None]]] = field(default_factory=list)
    order: Any = field(default_factory=count)

    def later(self, at: float, does: Callable[[float], None]) -> None:
        heapq.heappush(self.events, (at, next(self.order), does))

    def ask(self, at: float, name: str, ways: list[tuple[float, float]], rest: float) -> None:
        """ways: seconds to each voter and back; rest: until the candidate looks at the answers."""
        candidate, nonce, granted = self.candidates[name], str(next(self.order)), set[int]()
        asked = candidate.rate * at

        def reach(number: int, back: float) -> Callable[[float], None]:
            def arrives(now: float) -> None:
                if self.voters[number].ask(now, name, nonce):
                    self.later(now + back, lambda _: granted.add(number))

            return arrives

        def look(now: float) -> None:
            candidate.nonces |= dict.fromkeys(granted, nonce)
            end = end_of_term(asked, TERM) / candidate.rate
            if is_majority([str(n) for n in granted], [str(n) for n in range(len(self.voters))]) and now < end:
                candidate.served.append((now, end))

        for number, (there, back) in enumerate(ways):
            self.later(at + there, reach(number, back))
        self.later(at + rest, look)

    def give_back(self, at: float, name: str, ways: list[tuple[float, float]]) -> None:
        """It stops first, then the release is under way."""
        candidate = self.candidates[name]
        candidate.served = [(begin, min(end, max(at, begin))) for begin, end in candidate.served]

        def reach(number: int, nonce: str) -> Callable[[float], None]:
            return lambda now: self.voters[number].release(now, nonce)

        for number, nonce in candidate.nonces.items():
            self.later(at + ways[number][0], reach(number, nonce))

    def run(self) -> None:
        while self.events:
            at, _, does = heapq.heappop(self.events)
            does(at)


RATE = st.floats(0.995, 1.005)
QUICK = st.floats(0, 0.05)
DELAY = st.one_of(QUICK, QUICK, QUICK, st.floats(0, 30.0), st.just(1e9))
# Seconds to the next step: a renewal, or about when a term ends.
GAP = st.one_of(st.floats(0, 2.5), st.floats(10.5, 14.5))
STEPS = ("ask", "ask", "ask", "ask", "ask", "give back", "reboot")


@st.composite
def worlds(draw: st.DrawFn) -> VotingWorld:
    """Most messages are quick, so that most terms are begun; voters have been up for long, or were booted."""
    size = draw(st.sampled_from((1, 3, 3, 3, 5)))
    voters = [Voter(draw(RATE), draw(st.floats(0, 1e6)), ("-", 0, "-")) for _ in range(size)]
    world = VotingWorld(voters, {name: VoteCandidate(draw(RATE)) for name in CANDIDATES})
    at = 0.0
    for _ in range(draw(st.integers(2, 12))):
        at += draw(GAP)
        does, name, wild = draw(st.sampled_from(STEPS)), draw(st.sampled_from(CANDIDATES)), draw(st.booleans())
        delay = DELAY if wild or does == "give back" else QUICK
        ways = [(draw(delay), draw(delay)) for _ in range(size)]
        if does == "ask":
            world.later(at, partial(world.ask, name=name, ways=ways, rest=draw(DELAY) if wild else 0.1))
        elif does == "give back":
            world.later(at, partial(world.give_back, name=name, ways=ways))
        else:
            # What a voter has promised is gone
            for voter in draw(st.lists(st.sampled_from(voters), min_size=1)):
                world.later(at, voter.reboot)
    return world


@settings(max_examples=600, deadline=None)
@given(worlds())
def test_never_both(world: VotingWorld) -> None:
    """Guards the promise of the role: no moment is in a term of both, by real time."""
    world.run()
    for begin, end in world.candidates["head"].served:
        for other, until in world.candidates["standby"].served:
            assert max(begin, other) >= min(end, until), f"both serve from {max(begin, other)}"


def test_a_dead_head_is_followed_within_half_a_minute() -> None:
    """Guards the 30 seconds: the votes are free 13 s after the last renewal, and the standby is patient for 3 s."""
    voters, patience, at = [Voter(), Voter()], StandbyWait(started=-100.0), 20.0
    for voter in voters:
        voter.known(0.0)
        assert voter.ask(at, "head", "1")
    while not patience.is_over(at):
        at += 2.0
        patience = patience.noting(all(voter.now(at) >= voter.known(at)[1] for voter in voters), at)
    assert all(voter.ask(at, "standby", "2") for voter in voters)
    assert 12.0 <= at - 20.0 <= 20.0


def test_the_standby_lets_the_head_go_first() -> None:
    """Guards a boot of all nodes, a renewal that comes late, and a role that was given back."""
    assert not StandbyWait(100.0).noting(is_free=True, now=100.0).noting(is_free=True, now=115.0).is_over(115.0)
    late = (
        StandbyWait(0.0).noting(is_free=True, now=50.0).noting(is_free=False, now=52.0).noting(is_free=True, now=54.0)
    )
    assert not late.is_over(56.0) and late.is_over(57.0)
    assert not late.paused(90.0).noting(is_free=True, now=60.0).is_over(89.0)


def test_a_term_counts_by_this_boot_and_this_clock() -> None:
    term = Term("boot-1", 100.0)
    assert term.is_held("boot-1", 99.9) and not term.is_held("boot-1", 100.0) and not term.is_held("boot-2", 1.0)


def test_voters_are_an_odd_number() -> None:
    def made(*names: str) -> Cluster:
        return Cluster("lab", tuple(Node(name, name) for name in names), "a", standby="b")

    assert voters_of(made("a", "b")) == ("b",)
    assert voters_of(made("a", "b", "c")) == ("a", "b", "c")
    assert voters_of(made("a", "c", "d", "b")) == ("a", "b", "c")
    assert len(voters_of(made(*"abcdefgh"))) == 5


def test_the_holder_is_who_has_most_votes() -> None:
    votes: dict[str, Vote | None] = {"a": Vote(True), "b": Vote(False, "spark-2"), "c": Vote(False, "spark-2")}
    assert held_by(votes, ("a", "b", "c")) == "spark-2"
    assert held_by({**votes, "c": None}, ("a", "b", "c")) == ""
    assert held_by({"a": Vote(False, "-"), "b": Vote(False, "-")}, ("a", "b", "c")) == ""
