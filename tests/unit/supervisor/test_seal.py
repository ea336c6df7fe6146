"""The choice of who may supervise: never two on one node, whatever is delayed, lost or comes back."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count, pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sparkwright.domain.standby import Seal
from sparkwright.supervisor.core.seal import next_seal
from sparkwright.supervisor.core.term import is_majority

CANDIDATES = ("head", "standby")


@dataclass
class SealedNode:
    """The rule of remote/seal.sh; tests/functional/remote/test_seal.py compares them.

    done: (seal, begin, end) of each command that began here.
    """

    seal: Seal = field(default_factory=Seal)
    done: list[tuple[Seal, float, float]] = field(default_factory=list)

    def raise_to(self, at: float, seal: Seal) -> str:
        if seal.number > self.seal.number:
            self.seal = seal
        if self.seal != seal:
            return "held"
        return "busy" if any(end > at for _, _, end in self.done) else "sealed"

    def command(self, at: float, seal: Seal, seconds: float) -> bool:
        if self.seal == seal:
            self.done.append((seal, at, at + seconds))
        return self.seal == seal


@dataclass
class SealWorld:
    """Terms follow each other, as test_term.py shows. A message of one may arrive whenever it likes, also never."""

    nodes: list[SealedNode]
    voters: int
    events: list[tuple[float, int, Callable[[float], object]]] = field(default_factory=list)
    order: Any = field(default_factory=count)
    active: list[tuple[float, Seal]] = field(default_factory=list)

    def later(self, at: float, does: Callable[[float], object]) -> None:
        heapq.heappush(self.events, (at, next(self.order), does))

    def run(self) -> None:
        while self.events:
            at, _, does = heapq.heappop(self.events)
            does(at)


QUICK = st.floats(0, 0.2)
DELAY = st.one_of(QUICK, QUICK, QUICK, st.floats(0, 40.0), st.just(1e9))
TAKES = st.sampled_from((0.0, 0.1, 8.0, 60.0))


@dataclass
class SealTerm:
    """One term: a keeper of votes as supervisor/standby.py, then commands of a supervisor. end: of the term."""

    world: SealWorld
    end: float
    name: str
    draw: Callable[[st.SearchStrategy[Any]], Any]
    seen: dict[str, Seal | None] = field(default_factory=dict)
    sealed: set[str] = field(default_factory=set)

    @property
    def voters(self) -> list[str]:
        return [str(number) for number in range(self.world.voters)]

    def ask(self, at: float) -> None:
        for number in range(self.world.voters):
            self.world.later(at + self.draw(DELAY), partial(self.look, number=number))
        self.world.later(at + 0.5, self.choose)

    def look(self, at: float, number: int) -> None:
        seal = self.world.nodes[number].seal
        self.world.later(at + self.draw(DELAY), lambda _: self.seen.setdefault(str(number), seal))

    def choose(self, at: float) -> None:
        if seal := next_seal(dict(self.seen), self.voters, self.name):
            for number in range(len(self.world.nodes)):
                self.world.later(at + self.draw(DELAY), partial(self.rise, number=number, seal=seal))
            self.world.later(at + 1.0, partial(self.act, seal=seal))

    def rise(self, at: float, number: int, seal: Seal) -> None:
        if self.world.nodes[number].raise_to(at, seal) == "sealed":
            self.world.later(at + self.draw(DELAY), lambda _: self.sealed.add(str(number)))

    def act(self, at: float, seal: Seal) -> None:
        """It looks at its term right before each command; that may be under way for as long as it likes."""
        if at >= self.end or not is_majority(self.sealed, self.voters):
            return
        self.world.active.append((at, seal))
        for _ in range(self.draw(st.integers(0, 3))):
            sent, node = at + self.draw(QUICK), self.draw(st.sampled_from(self.world.nodes))
            if sent < self.end:
                self.world.later(sent + self.draw(DELAY), partial(node.command, seal=seal, seconds=self.draw(TAKES)))


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_never_two_supervisors(data: st.DataObject) -> None:
    """Guards the nodes: commands of two supervisors never run on one node at a time, none of an earlier one begins
    after one of a later one, and no two ever have the same number."""
    voters = data.draw(st.sampled_from((1, 3, 3, 5)))
    world = SealWorld([SealedNode() for _ in range(voters + data.draw(st.integers(0, 1)))], voters)
    at = 0.0
    for _ in range(data.draw(st.integers(1, 5))):
        name, length = data.draw(st.sampled_from(CANDIDATES)), data.draw(st.floats(1.5, 12.0))
        world.later(at, SealTerm(world, at + length, name, data.draw).ask)
        at += length
    world.run()
    for node in world.nodes:
        for (before, _, end), (after, begin, _) in pairwise(node.done):
            assert before.number <= after.number
            assert before == after or end <= begin, f"{before} runs until {end}, {after} from {begin}"
    for (_, before), (_, after) in pairwise(world.active):
        assert before.number < after.number or before == after


def test_the_next_number_is_above_all_that_most_voters_have() -> None:
    """Guards the choice: too few answers are none, an own seal stays, and of two of one number neither does."""
    voters = ("a", "b", "c")
    assert next_seal({"a": Seal(4, "head"), "b": None}, voters, "head") is None
    assert next_seal({"a": Seal(4, "head"), "b": Seal()}, voters, "head") == Seal(4, "head")
    assert next_seal({"a": Seal(4, "head"), "b": Seal()}, voters, "standby") == Seal(5, "standby")
    assert next_seal({"a": Seal(4, "head"), "b": Seal(4, "standby")}, voters, "head") == Seal(5, "head")
    assert next_seal(dict.fromkeys(voters, Seal()), voters, "head") == Seal(1, "head")
