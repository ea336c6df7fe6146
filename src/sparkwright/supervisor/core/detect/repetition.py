"""Answers that the engine ended because they repeated themselves: a free sign of garbage.

vLLM counts them (since 0.21.0) where a request has `repetition_detection`. A model may loop now and then on an odd
prompt; a share of all answers is what an output that turns to garbage looks like.
"""

from collections import deque
from dataclasses import dataclass, field

from sparkwright.domain.live import LiveEngine
from sparkwright.domain.units import duration

SPAN = 600.0
LEAST, SHARE = 3, 0.1


@dataclass
class Repetition:
    """The counters of the last ten minutes. A counter that fell belongs to another start."""

    _seen: deque[tuple[float, float, float]] = field(default_factory=deque)

    def add(self, engine: LiveEngine | None) -> str:
        """A sentence once at least three answers, and a tenth of all, ended that way; '' otherwise."""
        if engine is None or engine.repeating is None or engine.finished is None:
            return ""
        if self._seen and (engine.repeating < self._seen[-1][1] or engine.finished < self._seen[-1][2]):
            self._seen.clear()
        self._seen.append((engine.at, engine.repeating, engine.finished))
        while self._seen[0][0] < engine.at - SPAN:
            self._seen.popleft()
        since, repeated, finished = self._seen[0]
        gained, of = engine.repeating - repeated, engine.finished - finished
        if gained < LEAST or gained < SHARE * of:
            return ""
        within = duration(engine.at - since)
        return (
            f"{gained:.0f} of {of:.0f} answers of the last {within} were ended by the engine: they repeated themselves"
        )
