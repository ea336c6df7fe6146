"""Garbage output: what the canary says, checked against what it said when the engine had just become ready.

Greedy answers differ between boots and with what else is in the batch, so an answer need not be the recorded one: it
must look like text of the same kind. What it cannot be: one character or word over and over (`!!!!`, the known sign of
broken FP4 kernels and stale caches, field guide E55, E62, E99), undecodable bytes, nothing where there was something,
or words of which none was ever in a recorded answer. The last is asked only where the recorded ones agree by a third.
"""

import re
from collections import Counter
from dataclasses import dataclass, field

from sparkwright.supervision.events import Fault
from sparkwright.supervision.state import Recovery

STRIKES = 2
_RECORDED = 5
_WORD = re.compile(r"\w+")
_ONE_CHARACTER, _FEWEST = 0.8, 6
_BROKEN = 0.2
_AGREE = 0.3


@dataclass
class Garbage:
    """recorded: answers of this start, taken when it had become ready. born: why one of those was garbage already."""

    recorded: list[str] = field(default_factory=list)
    born: str = ""
    strikes: int = 0
    said: list[str] = field(default_factory=list)

    def begin(self) -> None:
        self.recorded.clear()
        self.strikes, self.born = 0, ""

    def record(self, said: str) -> None:
        """What is garbage already is no measure."""
        if why := babble(said):
            self.born = why
        else:
            self.recorded = [*self.recorded, said][-_RECORDED:]

    def answer(self, said: str, at: float) -> Fault | None:
        """Of a model that answers so from the start a trouble: launching it again changes nothing."""
        if self.born:
            return _from_the_start(why, said, at) if (why := babble(said)) else None
        why = babble(said) or foreign(said, self.recorded)
        if not why:
            self.strikes = 0
            return None
        self.strikes += 1
        self.said = [*self.said[-1:], said]
        if self.strikes < STRIKES:
            return None
        what = f"the engine answers garbage: {why}, {self.strikes} answers in a row"
        shown = [f"says {one[:80]!r}" for one in self.said] + [f"said {one[:80]!r}" for one in self.recorded[:1]]
        return Fault(at, "garbage", what, Recovery.RELAUNCH, tuple(shown))


def _from_the_start(why: str, said: str, at: float) -> Fault:
    what = f"the model answers garbage since its start: {why}; a restart does not change that"
    return Fault(at, "garbage", what, Recovery.NONE, (f"answers {said[:80]!r}",))


def babble(said: str) -> str:
    """Why a text is no language whatever was asked; '' when it may be one. Empty text may be hidden reasoning."""
    text = "".join(said.split())
    if text and sum(c == "\ufffd" or not c.isprintable() for c in text) / len(text) >= _BROKEN:
        return "bytes that are no text"
    if len(text) >= _FEWEST and (most := Counter(text).most_common(1)[0])[1] / len(text) >= _ONE_CHARACTER:
        return f"{most[0]!r} over and over"
    words = [word.lower() for word in _WORD.findall(said)]
    if len(words) >= 4 and len(set(words)) == 1:
        return f"{words[0][:20]!r} over and over"
    return ""


def foreign(said: str, recorded: list[str]) -> str:
    """Why a text is of another kind than the recorded ones; '' when it is not, or when they tell nothing."""
    told = [one for one in recorded if one.strip()]
    if not told or len(told) < len(recorded):
        return ""
    if not said.strip():
        return "nothing, where it said something before"
    if len(told) < 2 or any(_alike(told[0], one) < _AGREE for one in told[1:]):
        return ""
    return "" if any(_alike(said, one) > 0 for one in told) else "nothing like what it said when it was new"


def _alike(one: str, other: str) -> float:
    """The part of all their words that both have; for scripts without spaces of all pairs of signs."""
    mine, others = _pieces(one), _pieces(other)
    return len(mine & others) / len(mine | others) if mine | others else 1.0


def _pieces(text: str) -> set[str]:
    words = [word.lower() for word in _WORD.findall(text)]
    return {piece for word in words for piece in (_pairs(word) if ord(word[0]) > 0x2E7F else (word,))}


def _pairs(word: str) -> tuple[str, ...]:
    return tuple(word[i : i + 2] for i in range(max(len(word) - 1, 1)))
