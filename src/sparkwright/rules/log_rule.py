"""The protocols of rules about logs: a rule is a module of one file, made of signs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sparkwright.domain.diagnosis import Proof
from sparkwright.domain.finding import Severity
from sparkwright.rules.sign import Sign


class LogRule(Protocol):
    """A module with these names; its docstring has the headings Detects, Why, Evidence, Remedy, References.

    CAUSE: key of the vocabulary. FIX: steps and commands; `{name}` takes a group of the sign that fired or a word about
    the cluster (Surroundings), `<name>` where there is none; write `{{` for a brace. EXPLAINS: keys of causes that
    are only consequences of this one when both are seen.
    SEVERITY INFO: harmless lines, never blamed.
    """

    @property
    def CODE(self) -> str: ...

    @property
    def STATUS(self) -> str: ...

    @property
    def SEVERITY(self) -> Severity: ...

    @property
    def TITLE(self) -> str: ...

    @property
    def CAUSE(self) -> str: ...

    @property
    def SIGNS(self) -> tuple[Sign, ...]: ...

    @property
    def FIX(self) -> tuple[str, ...]: ...

    @property
    def EXPLAINS(self) -> tuple[str, ...]: ...


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


class StoryRule(Protocol):
    """Causes that no single line tells: hangs, silences, a peer that never came. As LogRule, with MARKS and judge."""

    @property
    def CODE(self) -> str: ...

    @property
    def STATUS(self) -> str: ...

    @property
    def SEVERITY(self) -> Severity: ...

    @property
    def TITLE(self) -> str: ...

    @property
    def CAUSE(self) -> str: ...

    @property
    def MARKS(self) -> Mapping[str, str]:
        """Name -> pattern; names of all rules share one space: equal names must have equal patterns."""
        ...

    @property
    def ROWS(self) -> Mapping[str, Row]:
        """Name -> rows, counted as marks."""
        ...

    @property
    def FIX(self) -> tuple[str, ...]: ...

    @property
    def EXPLAINS(self) -> tuple[str, ...]: ...

    def judge(self, stories: tuple[Story, ...]) -> Iterable[Verdict]:
        """Looks at all sources at once, when they have been read. Never raises."""
        ...
