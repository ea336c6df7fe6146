"""Rates and shares of one engine over the last minutes, from counters that its supervisor writes down."""

from collections import deque
from dataclasses import dataclass, field

from sparkwright.domain.live import LiveEngine

SPAN = 600.0
_WINDOW, _SHARES = 5.0, 300.0
_LEAST = 0.5


@dataclass
class Rate:
    """The rate of a counter per second. A counter that fell belongs to another start."""

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


class Share:
    """part/whole of what two counters gained within the window. A counter that fell is another start's."""

    def __init__(self, window: float = _SHARES) -> None:
        self._window = window
        self._seen: deque[tuple[float, float, float]] = deque()

    def add(self, at: float, whole: float | None, part: float | None) -> None:
        if whole is None or part is None:
            return
        if self._seen and (whole < self._seen[-1][1] or part < self._seen[-1][2]):
            self._seen.clear()
        if not self._seen or at > self._seen[-1][0]:
            self._seen.append((at, whole, part))
        while len(self._seen) > 2 and self._seen[1][0] <= at - self._window:
            self._seen.popleft()

    @property
    def value(self) -> float | None:
        """None while nothing was gained: 0 would mean that all of it missed."""
        if not self._seen:
            return None
        (_, whole, part), (_, now_whole, now_part) = self._seen[0], self._seen[-1]
        return (now_part - part) / (now_whole - whole) if now_whole > whole else None


@dataclass
class EngineHistory:
    """The figures of an engine over time, for a page or a screen."""

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
