"""A request of our own: the truth about an engine, as far as nobody else's work is in its way."""

from dataclasses import dataclass, field

from sparkwright.domain.live import LiveCanary
from sparkwright.domain.units import duration
from sparkwright.supervision.detect.life import Life
from sparkwright.supervision.events import Fault
from sparkwright.supervision.state import Recovery

# One late answer is a hiccup; no operator on record restarts after a single one.
STRIKES = 2
# Garbage cannot be seen from outside, so even under traffic it asks now and then: eight tokens a minute.
_EVEN_SO = 4
# What is seen so long after our own answer is somebody else's work; it has come to its end after a pause of so long,
# and whoever asked lately may ask again and wait, while an engine that hangs says what it said last.
_OWN, _ENDED, _LATELY = 3.0, 2.0, 60.0
# Most of our own question's answer.
_TOKENS = 8


@dataclass
class Canary:
    """failed_since: when the first of the unanswered ones was asked, 0: the last one was answered.

    refused: how many of the last ones came back with an error: those have not waited behind anybody's work. pending:
    when the one that is under way was asked, 0 without one. answered: when an answer came last. traffic: when work of
    others was seen last. own: tokens of our own answers that may not have been counted yet.
    """

    failures: int = 0
    failed_since: float = 0.0
    asked: float = 0.0
    last: LiveCanary | None = None
    refused: int = 0
    pending: float = 0.0
    answered: float = 0.0
    traffic: float = 0.0
    own: int = 0
    why: list[str] = field(default_factory=list)

    def begin(self) -> None:
        self.failures = self.refused = self.own = 0
        self.failed_since, self.last = 0.0, None
        self.pending = self.answered = self.traffic = 0.0
        self.why.clear()

    def looked_away(self, at: float) -> None:
        """What came before the clock was set has no time any more."""
        self.asked, self.failed_since = at, at if self.failed_since else 0.0
        self.pending = at if self.pending else 0.0

    def answer(self, answer: LiveCanary) -> None:
        self.last, self.asked, self.pending = answer, answer.at, 0.0
        self.own += _TOKENS
        self.refused = self.refused + 1 if answer.refused and answer.seconds is None else 0
        if answer.seconds is not None:
            self.failures, self.failed_since, self.answered = 0, 0.0, answer.at + answer.seconds
            self.why.clear()
            return
        self.failures += 1
        self.failed_since = self.failed_since or answer.at
        self.why = [*self.why[-2:], answer.said or "no answer"]

    def wanted(self, life: Life, proof: float, at: float) -> bool:
        """False while traffic proves life, unless the last one failed or was long ago."""
        return bool(self.failures) or at - life.proved > proof or at - self.asked > _EVEN_SO * proof

    def seen(self, at: float, tokens: float = 0.0) -> None:
        """Work has come out: somebody else's, unless it is that of our own last question. tokens: 0 if unknown."""
        others = tokens - self.own - (_TOKENS if self.pending else 0)
        self.own = 0
        if others > 0 or (not self.pending and at - self.answered > _OWN):
            self.traffic = at

    def hurried(self, life: Life, at: float) -> bool:
        """Whether traffic has just come to its end: its clients have left, or nothing comes any more."""
        return at - self.traffic < _LATELY and at - life.proved >= _ENDED and at - self.asked >= _OWN

    def unanswered(self, still: float, allowed: float, at: float) -> Fault | None:
        """RELAUNCH as `frozen`, when nothing else that it knows of can be in its way. still: seconds of stillness."""
        if self.failures < STRIKES or min(still, at - self.failed_since) <= allowed:
            return None
        what = (
            f"{self.failures} probe requests got no answer in {duration(at - self.failed_since)}, "
            f"and nothing has moved for {duration(still)}"
        )
        return Fault(at, "frozen", what, Recovery.RELAUNCH, tuple(self.why))

    def deaf(self, silent: float, allowed: float, at: float) -> Fault | None:
        """The same for an API that does not even tell its metrics. silent: seconds since it told them last."""
        if self.failures < STRIKES or min(silent, at - self.failed_since) <= allowed:
            return None
        what = (
            f"the API answers nothing: no metrics for {duration(silent)}, and {self.failures} probe requests "
            "got no answer"
        )
        return Fault(at, "frozen", what, Recovery.RELAUNCH, tuple(self.why))
