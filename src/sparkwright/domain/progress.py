"""Events that a use case emits while it runs."""

from sparkwright.domain.deployment import Phase
from sparkwright.domain.values import dataclass


@dataclass(frozen=True, slots=True)
class StepStarted:
    step: str
    detail: str = ""
    usual: float = 0.0


@dataclass(frozen=True, slots=True)
class StepDone:
    step: str
    seconds: float
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a step or of one rank's phase: done of total in unit; total None if unknown."""

    step: str
    node: str
    done: float | None
    total: float | None
    unit: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class RankPhase:
    """A rank entered a phase; usual: its usual seconds (0: not known)."""

    rank: int
    node: str
    phase: Phase
    text: str = ""
    done: float | None = None
    total: float | None = None
    unit: str = ""
    usual: float = 0.0


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that the user should read now."""

    text: str
    warning: bool = False


Happening = StepStarted | StepDone | Progress | RankPhase | Notice
