"""Decision which of two nodes may serve: the one that most voters have promised their votes to, for a term.

A voter promises its vote to one node only, for `term` seconds after it was asked. Two majorities share a voter, so two
nodes never have one at the same time. A node counts its term from the moment before it asked, and a little less of it:
it stops by its own clock before any voter is free to choose another one. Only clocks that run on through a suspend
count, and never two clocks against each other; their rates may differ by one percent. See docs/adr/0027.
"""

from collections.abc import Collection, Mapping

from sparkwright.domain.values import dataclass

RENEW_EVERY = 2.0
ASK_LIMIT = 3.0
"""Seconds that a voter has to answer."""
RATE, SLACK = 0.01, 0.5
_SETTLED, _FREE = 20.0, 3.0


@dataclass(frozen=True, slots=True)
class Vote:
    """A voter's answer. holder: the node that has its vote, '-' while it promises it to nobody, '' if it is free."""

    granted: bool
    holder: str = ""


def is_majority(granted: Collection[str], voters: Collection[str]) -> bool:
    return 2 * len(set(granted) & set(voters)) > len(set(voters))


def end_of_term(asked: float, term: float) -> float:
    """Time until which a node may serve that got its votes after `asked`, by its own clock."""
    return asked + term * (1 - RATE) - SLACK


def held_by(votes: Mapping[str, Vote | None], voters: Collection[str]) -> str:
    """The node that a majority has voted for, '' if none is known."""
    names = {vote.holder for vote in votes.values() if vote and vote.holder not in ("", "-")}
    for name in sorted(names):
        if is_majority([voter for voter, vote in votes.items() if vote and vote.holder == name], voters):
            return name
    return ""


@dataclass(frozen=True, slots=True)
class StandbyWait:
    """The standby's wait before it asks for votes. started: of its process. free_since: since when most votes have been
    free, None while they are not. not_before: after it has given the role back, or got too few votes.

    The head goes first after a boot of all nodes, and after a single late renewal.
    """

    started: float
    free_since: float | None = None
    not_before: float = 0.0

    def noting(self, is_free: bool, now: float) -> "StandbyWait":
        since = (self.free_since if self.free_since is not None else now) if is_free else None
        return StandbyWait(self.started, since, self.not_before)

    def paused(self, until: float) -> "StandbyWait":
        return StandbyWait(self.started, None, until)

    def is_over(self, now: float) -> bool:
        free = self.free_since is not None and now - self.free_since >= _FREE
        return free and now - self.started >= _SETTLED and now >= self.not_before
