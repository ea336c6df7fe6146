"""The results of evaluating an endpoint: outcomes of probes, scores of instructions, greedy answers."""

from enum import StrEnum

from sparkwright.domain.values import dataclass


class ProbeState(StrEnum):
    """The state of a probe. Unsupported: the server refuses the request. Broken: no answer. Skipped: nothing to judge
    by.

    Scored: a share of good answers, which a gate may judge.
    """

    PASSED = "passed"
    FAILED = "failed"
    SCORED = "scored"
    UNSUPPORTED = "unsupported"
    BROKEN = "broken"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class ProbeEvidence:
    """One exchange that shows a failure, shortened. what: what was expected and what came."""

    what: str
    sent: str = ""
    received: str = ""


@dataclass(frozen=True, slots=True)
class Score:
    """good of `of`, with its 95 % Wilson interval."""

    good: int
    of: int
    low: float
    high: float

    @property
    def share(self) -> float:
        return self.good / self.of if self.of else 0.0


@dataclass(frozen=True, slots=True)
class ProbeOutcome:
    """The result of one probe, kind of instruction or comparison. cases: how many were judged; failed: how many failed.

    at: when, of a soak, in seconds after the run began. detail: one sentence. means, hint: what a failure usually means
    and how to go on, '' where it did not fail.
    """

    name: str
    state: ProbeState
    detail: str = ""
    cases: int = 0
    failed: int = 0
    means: str = ""
    hint: str = ""
    evidence: tuple[ProbeEvidence, ...] = ()
    score: Score | None = None
    requests: int = 0
    seconds: float = 0.0
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a soak. at: seconds after the run began. kind: a word (incident, floor, gone, back, resumed)."""

    at: float
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Greedy:
    """One prompt's greedy answers, asked `len(texts)` times. tokens, logprobs: of the first; () where none are served.

    error: why there is no answer.
    """

    prompt: str
    texts: tuple[str, ...]
    tokens: tuple[tuple[str, ...], ...] = ()
    logprobs: tuple[tuple[float, ...], ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """kind: probes, instructions, same, soak. verdict: of `same`: as before, within noise of itself, worse.

    events, seconds, floor: of a soak, what happened, how long it has been under load, bytes at which it stops.
    """

    kind: str
    outcomes: tuple[ProbeOutcome, ...] = ()
    answers: tuple[Greedy, ...] = ()
    verdict: str = ""
    events: tuple[Event, ...] = ()
    seconds: float = 0.0
    floor: int = 0

    @property
    def counts(self) -> dict[ProbeState, int]:
        return {state: sum(one.state is state for one in self.outcomes) for state in ProbeState}

    @property
    def passed(self) -> bool:
        """Nothing failed, nothing stayed without an answer, and something was judged."""
        counts = self.counts
        return (
            not counts[ProbeState.FAILED]
            and not counts[ProbeState.BROKEN]
            and bool(counts[ProbeState.PASSED] or counts[ProbeState.SCORED])
        )
