"""Signs: what in a log points to a cause; stories: one source as a whole."""

from collections.abc import Mapping

from sparkwright.domain.diagnosis import Proof
from sparkwright.domain.values import dataclass, field

# How sure a sign makes of its cause.
CERTAIN = 0.95  # the line itself says what is wrong, and nothing else prints it
LIKELY = 0.75  # nearly always this cause
POSSIBLE = 0.5  # one of a few causes
HINT = 0.3  # goes along with it; better than nothing

ANYWHERE, WINDOW = 10**12, 60  # lines around one; farther apart than those is anywhere


@dataclass(frozen=True, slots=True)
class Sign:
    """Regular expressions that are searched in single lines, without regard to case.

    patterns: all of them must be seen within `within` lines of one another in one source (0: in the same line).
    times: how often before it counts. unless: a line that this matches does not count. only: ranks, engines, phases.
    above: names of two groups; the amount in the first is above that in the second.
    """

    patterns: tuple[str, ...]
    sure: float
    within: int = 0
    times: int = 1
    unless: str = ""
    only: tuple[tuple[str, tuple[str, ...]], ...] = ()
    above: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TableRows:
    """Rows of a table without a word that is only theirs: searched for below their header (a mark)."""

    header: str
    pattern: bytes


@dataclass(frozen=True, slots=True)
class MarkCount:
    """The lines with a mark: their number, the first and the last."""

    count: int
    first: Proof
    last: Proof


@dataclass(frozen=True, slots=True)
class Story:
    """One source as a whole. marks: those looked for, by name; tail: its last lines; ended: the log is complete."""

    source: str
    lines: int
    marks: Mapping[str, MarkCount] = field(default_factory=dict)
    tail: tuple[Proof, ...] = ()
    ended: bool = True

    def count(self, mark: str) -> int:
        return self.marks[mark].count if mark in self.marks else 0
