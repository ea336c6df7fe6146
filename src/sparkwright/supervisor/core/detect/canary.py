"""The engine asked for tokens of our own: whether an answer comes, and whether it is text of the kind it was."""

import re
from dataclasses import dataclass, field

from sparkwright.domain.live import LiveCanary
from sparkwright.domain.units import duration
from sparkwright.evals.coherence import babble
from sparkwright.supervisor.core.detect.stuck import Life
from sparkwright.supervisor.core.events import Fault
from sparkwright.supervisor.core.state import Recovery

# One late answer is a hiccup; no operator on record restarts after a single one.
MISSES = 2
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

    def looked_away(self, at: float) -> None:
        """Restarts the waits after the clock was set: earlier times are void."""
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
        """True if traffic has just ended: its clients have left, or nothing comes any more."""
        return at - self.traffic < _LATELY and at - life.proved >= _ENDED and at - self.asked >= _OWN

    def unanswered(self, still: float, allowed: float, at: float) -> Fault | None:
        """RELAUNCH as `frozen`, when nothing else that it knows of can be in its way. still: seconds of stillness."""
        if self.failures < MISSES or min(still, at - self.failed_since) <= allowed:
            return None
        unanswered = f"{self.failures} probe requests got no answer in {duration(at - self.failed_since)}"
        what = f"{unanswered}, and nothing has moved for {duration(still)}"
        return Fault(at, "frozen", what, Recovery.RELAUNCH, tuple(self.why))

    def deaf(self, silent: float, allowed: float, at: float) -> Fault | None:
        """The same for an API that does not even show its metrics. silent: seconds since it showed them last."""
        if self.failures < MISSES or min(silent, at - self.failed_since) <= allowed:
            return None
        unanswered = f"{self.failures} probe requests got no answer"
        what = f"the API answers nothing: no metrics for {duration(silent)}, and {unanswered}"
        return Fault(at, "frozen", what, Recovery.RELAUNCH, tuple(self.why))


STRIKES = 2
_RECORDED = 5
_WORD = re.compile(r"\w+")
_AGREE = 0.3


@dataclass
class Garbage:
    """Compares the canary's answers with those recorded when the engine had just become ready.

    Greedy answers differ between boots and with what else is in the batch, so an answer need not be the recorded one:
    it must look like text of the same kind. It cannot be one character or word over and over (`!!!!`: broken FP4
    kernels, stale caches), undecodable bytes, nothing where there was something, or words of which none was ever in a
    recorded answer. The last is asked only where the recorded ones agree by a third. recorded: answers of this start,
    taken when it had become ready. born: why one of those was garbage already.
    """

    recorded: list[str] = field(default_factory=list)
    born: str = ""
    strikes: int = 0
    said: list[str] = field(default_factory=list)

    def record(self, said: str) -> None:
        """Records an answer as the measure; a text that is garbage already is marked instead."""
        if why := babble(said):
            self.born = why
        else:
            self.recorded = [*self.recorded, said][-_RECORDED:]

    def answer(self, said: str, at: float) -> Fault | None:
        """Judges an answer. A model that answers garbage from the start gets a trouble only: a relaunch changes
        nothing."""
        if self.born:
            if not (why := babble(said)):
                return None
            what = f"the model answers garbage since its start: {why}; a restart does not change that"
            return Fault(at, "garbage", what, Recovery.NONE, (f"answers {said[:80]!r}",))
        why = babble(said) or foreign(said, self.recorded)
        if not why:
            self.strikes = 0
            return None
        self.strikes += 1
        self.said = [*self.said[-1:], said]
        if self.strikes < STRIKES:
            return None
        what = f"the engine answers garbage: {why}, {self.strikes} answers in a row"
        shown = [f"now {one[:80]!r}" for one in self.said] + [f"recorded {one[:80]!r}" for one in self.recorded[:1]]
        return Fault(at, "garbage", what, Recovery.RELAUNCH, tuple(shown))


def foreign(said: str, recorded: list[str]) -> str:
    """The reason why a text is of another kind than the recorded ones; '' if it is not, or if they prove nothing."""
    told = [one for one in recorded if one.strip()]
    if not told or len(told) < len(recorded):
        return ""
    if not said.strip():
        return "nothing, where it answered something before"
    if len(told) < 2 or any(_alike(told[0], one) < _AGREE for one in told[1:]):
        return ""
    return "" if any(_alike(said, one) > 0 for one in told) else "nothing like its recorded answers"


def _alike(one: str, other: str) -> float:
    """The part of all their words that both have; for scripts without spaces of all pairs of signs."""
    mine, others = _pieces(one), _pieces(other)
    return len(mine & others) / len(mine | others) if mine | others else 1.0


def _pieces(text: str) -> set[str]:
    pieces = set[str]()
    for word in map(str.lower, _WORD.findall(text)):
        pairs = (word[i : i + 2] for i in range(max(len(word) - 1, 1)))
        pieces.update(pairs if ord(word[0]) > 0x2E7F else (word,))
    return pieces
