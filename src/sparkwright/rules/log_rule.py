"""The protocols of rules about logs: a rule is a module of one file, made of signs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sparkwright.domain.diagnosis import Proof
from sparkwright.rules.coded import Coded
from sparkwright.rules.sign import Sign


class CauseRule(Coded, Protocol):
    """A rule that names a cause. SEVERITY INFO: harmless lines, never blamed.

    CAUSE: key of the vocabulary. FIX: steps and commands; `{name}` takes a group of the sign that fired or a word about
    the cluster, `<name>` where there is none; write `{{` for a brace. EXPLAINS: keys of causes that are only
    consequences of this one when both are seen.
    """

    @property
    def CAUSE(self) -> str: ...

    @property
    def FIX(self) -> tuple[str, ...]: ...

    @property
    def EXPLAINS(self) -> tuple[str, ...]: ...


class LogRule(CauseRule, Protocol):
    """Causes that single lines tell, alone or near one another."""

    @property
    def SIGNS(self) -> tuple[Sign, ...]: ...


@dataclass(frozen=True, slots=True)
class Row:
    """Rows of a table that have no word of their own: looked for in a source once its header (a mark) was there."""

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
    """One source as a whole. marks: of StoryRule.MARKS, by name; tail: its last lines; ended: the log is complete."""

    source: str
    lines: int
    marks: Mapping[str, Seen] = field(default_factory=dict)
    tail: tuple[Proof, ...] = ()
    ended: bool = True

    def count(self, mark: str) -> int:
        return self.marks[mark].count if mark in self.marks else 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a story rule concludes: how sure, and from which lines."""

    sure: float
    proof: tuple[Proof, ...]


class StoryRule(CauseRule, Protocol):
    """Causes that no single line tells: hangs, silences, a peer that never came."""

    @property
    def MARKS(self) -> Mapping[str, str]:
        """Name -> pattern; names of all rules share one space: equal names must have equal patterns."""
        ...

    @property
    def ROWS(self) -> Mapping[str, Row]:
        """Name -> rows, counted as marks."""
        ...

    def judge(self, stories: tuple[Story, ...]) -> Iterable[Verdict]:
        """Looks at all sources at once, when they have been read. Never raises."""
        ...
