"""One source as a whole: how often its marks came, and how it ends."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sparkwright.domain.diagnosis import Proof


@dataclass(frozen=True, slots=True)
class Row:
    """Rows of a table without a word that is only theirs: searched for below their header (a mark)."""

    header: str
    pattern: bytes


@dataclass(frozen=True, slots=True)
class Seen:
    """How often lines with a mark came, the first and the last of them."""

    count: int
    first: Proof
    last: Proof


@dataclass(frozen=True, slots=True)
class Story:
    """One source as a whole. marks: those looked for, by name; tail: its last lines; ended: the log is complete."""

    source: str
    lines: int
    marks: Mapping[str, Seen] = field(default_factory=dict)
    tail: tuple[Proof, ...] = ()
    ended: bool = True

    def count(self, mark: str) -> int:
        return self.marks[mark].count if mark in self.marks else 0
