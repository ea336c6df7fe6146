"""A diagnosis: causes with the lines that prove them, what is harmless, and what could not be determined."""

from collections.abc import Sequence
from enum import StrEnum

from sparkwright.domain.finding import Severity
from sparkwright.domain.values import dataclass

CONFIDENT = 0.85  # from here on a cause is named with confidence: its own message says what is wrong
_NEARLY, _HINT = 0.6, 0.5  # of the best; below, a sign is only a hint
_MESSAGE = 60  # characters at the end of a line, by which its message is known


class LogState(StrEnum):
    """The state of a server where its log ends. UNKNOWN: no line shows one, as in a kernel log or a build's output."""

    SERVING = "serving"
    STARTING = "starting"
    STOPPED = "stopped"  # in good order
    FAILED = "failed"
    UNKNOWN = "unknown"


class Sureness(StrEnum):
    """A confidence as text."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, slots=True)
class Proof:
    """One line. source: file, or `rank 1 on spark-2`; number: from 1; at: seconds since the epoch, None without a time.

    who: the process as the line itself names it (`Worker_TP1 pid=4385`), '' where it does not.
    """

    source: str
    number: int
    text: str
    at: float | None = None
    who: str = ""


@dataclass(frozen=True, slots=True)
class StatedFact:
    """A fact that a line states without a message: `df: /models is 100 % full`, `driver 590.48 is in the range ...`."""

    text: str
    line: Proof


@dataclass(frozen=True, slots=True)
class Cause:
    """key: of the vocabulary; confidence: 0 to 1; fix: commands and steps, ready to paste; seen: how often.

    resembles: rare words shared with its description, where no sign of it was found. versions: for or against it.
    """

    key: str
    code: str
    title: str
    severity: Severity
    confidence: float
    why: str
    fix: tuple[str, ...]
    proof: tuple[Proof, ...]
    seen: int = 1
    resembles: tuple[str, ...] = ()
    versions: tuple[StatedFact, ...] = ()

    @property
    def sureness(self) -> Sureness:
        if self.confidence >= CONFIDENT:
            return Sureness.HIGH
        return Sureness.MEDIUM if self.confidence >= 0.6 else Sureness.LOW


def likely(causes: Sequence[Cause]) -> tuple[Cause, ...]:
    """The first, and those that are nearly as sure."""
    return tuple(cause for cause in causes if cause.confidence >= _NEARLY * causes[0].confidence)


@dataclass(frozen=True, slots=True)
class Explanation:
    """The line that explains, where no cause is known.

    mechanism: its key, '' when not even that is known; families: of causes that it may belong to, the likeliest first;
    place: in the source of the program (`file.py:12 function`), ''; phase: what the engine was in, ''; next: steps;
    same: other sources that report it; then: the last exception that it led to, None.
    """

    line: Proof
    mechanism: str
    title: str
    families: tuple[str, ...]
    place: str
    phase: str
    next: tuple[str, ...]
    same: tuple[str, ...] = ()
    then: Proof | None = None


def named_causes(causes: Sequence[Cause], why: Explanation | None) -> tuple[Cause, ...]:
    """The causes; none where the line that explains is the answer, and they may only be related to it."""
    if not why or not causes:
        return tuple(causes)
    first = causes[0]
    same = any(why.line.text[-_MESSAGE:] in proof.text for proof in first.proof)
    is_hint = bool(why.families) and first.confidence < _HINT and not same
    return () if first.resembles or is_hint else tuple(causes)


@dataclass(frozen=True, slots=True)
class LogSource:
    """A log that was read. first_at, last_at: seconds since the epoch; shift: seconds added to align the clocks."""

    name: str
    lines: int
    bytes: int
    first_at: float | None = None
    last_at: float | None = None
    shift: float = 0.0


@dataclass(frozen=True, slots=True)
class Difference:
    """A setting, a place or a collective that is not the same on all ranks. values: (source, value)."""

    what: str
    values: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """causes: at most three, the root first; none: no known cause. harmless: lines that look bad and are not.

    untold: what could not be determined. collect: commands that would narrow it down. explanation: of a failure without
    a likely cause. stated: what outputs of commands in the logs show; differs: between the logs.

    state: of the server; serves: the line since which it does; failure: whether a line reports one; notes: what
    explains no failure, as it was printed before the server was ready, or nothing failed.
    """

    causes: tuple[Cause, ...]
    harmless: tuple[Cause, ...]
    sources: tuple[LogSource, ...]
    untold: tuple[str, ...] = ()
    collect: tuple[str, ...] = ()
    explanation: Explanation | None = None
    stated: tuple[StatedFact, ...] = ()
    differs: tuple[Difference, ...] = ()
    notes: tuple[Cause, ...] = ()
    state: LogState = LogState.UNKNOWN
    serves: Proof | None = None
    failure: bool = False

    @property
    def named(self) -> tuple[Cause, ...]:
        return named_causes(self.causes, self.explanation)
