"""What is known of a cause that logs show, and of the causes that only a whole log shows."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from sparkwright.domain.diagnosis import Proof
from sparkwright.domain.finding import Severity
from sparkwright.logscan.sign import Sign
from sparkwright.logscan.story import Row, Story


@dataclass(frozen=True, slots=True)
class LogCause:
    """One cause, as its family's file has it. Severity INFO: harmless lines, never blamed.

    key: of the vocabulary. fix: steps and commands; `{name}` takes a group of the signature that matched or a word
    about the cluster, `<name>` where there is none; write `{{` for a brace. see: public URLs. consequences: keys of
    causes that only follow from this one when both are seen. fires: logs whose first cause this is; silent: look-alikes
    that are another's.
    """

    code: str
    key: str
    title: str
    severity: Severity
    why: str
    fix: tuple[str, ...] = ()
    see: tuple[str, ...] = ()
    consequences: tuple[str, ...] = ()
    signatures: tuple[Sign, ...] = ()
    fires: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    status: str = "stable"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a whole-log rule concludes: how sure, and from which lines."""

    sure: float
    proof: tuple[Proof, ...]


class WholeLogRule(Protocol):
    """A module about a cause that no single line shows: hangs, silences, a peer that never came."""

    @property
    def CAUSE(self) -> LogCause: ...

    @property
    def MARKS(self) -> Mapping[str, str]:
        """Name -> pattern; names of all rules share one space: equal names must have equal patterns."""
        ...

    @property
    def ROWS(self) -> Mapping[str, Row]:
        """Name -> rows, counted as marks."""
        ...

    def judge(self, stories: tuple[Story, ...]) -> Iterable[Verdict]:
        """Reads all sources at once, when they have been read. Never raises."""
        ...
