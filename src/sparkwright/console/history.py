"""Rates and shares of one engine over the last minutes, from counters that its supervisor writes down."""

from collections import deque
from dataclasses import dataclass, field

from sparkwright.adapters.exporter import Share
from sparkwright.domain.live import LiveEngine

SPAN = 600.0
_WINDOW = 5.0
_LEAST = 0.5


@dataclass
class Rate:
    """Of a counter, per second. A counter that fell is another start's."""

    seen: deque[tuple[float, float]] = field(default_factory=deque)
    points: deque[tuple[float, float]] = field(default_factory=deque)

    def add(self, at: float, total: float | None) -> None:
        if total is None or (self.seen and at <= self.seen[-1][0]):
            return
        if self.seen and total < self.seen[-1][1]:
            self.seen.clear()
        self.seen.append((at, total))
        while len(self.seen) > 2 and self.seen[1][0] <= at - _WINDOW:
            self.seen.popleft()
        first, before = self.seen[0]
        if at - first >= _LEAST:
            self.points.append((at, (total - before) / (at - first)))
        while self.points and self.points[0][0] < at - SPAN:
            self.points.popleft()

    @property
    def value(self) -> float | None:
        return self.points[-1][1] if self.points else None


@dataclass
class History:
    """What one page shows of an engine over time."""

    decode: Rate = field(default_factory=Rate)
    prefill: Rate = field(default_factory=Rate)
    hits: Share = field(default_factory=Share)
    accepted: Share = field(default_factory=Share)

    def add(self, engine: LiveEngine | None) -> None:
        if engine is None:
            return
        self.decode.add(engine.at, engine.generation_tokens)
        self.prefill.add(engine.at, engine.prompt_tokens)
        # SGLang counts no look-ups: there every prompt token is one
        asked = engine.prompt_tokens if engine.prefix_queries is None else engine.prefix_queries
        self.hits.add(engine.at, asked, engine.prefix_hits)
        self.accepted.add(engine.at, engine.draft_tokens, engine.accepted_tokens)
