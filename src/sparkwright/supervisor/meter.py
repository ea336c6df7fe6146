"""What each key uses, counted while answers pass, and its limits."""

from collections import defaultdict, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sparkwright.adapters.sqlite.usage import Row, UsageStore
from sparkwright.gateway.decide import Answer
from sparkwright.gateway.keys import Key
from sparkwright.gateway.usage import ASK, MINUTE, STREAMS, Body, Counting, Load, asks_nothing, enough
from sparkwright.ports import Clock

ENGINES_OWN, OTHER = "(the engine's own key)", "(other)"


class Meter:
    """Of all requests of one gateway. Minutes go by the monotonic clock; a day is UTC's when a request begins."""

    def __init__(self, clock: Clock, store: UsageStore) -> None:
        self._clock, self._store = clock, store
        self._minutes: dict[str, deque[float]] = defaultdict(deque)
        self._at_once: dict[str, int] = defaultdict(int)
        now = clock.monotonic()
        for name, at in store.minutes(now - MINUTE, now):
            self._minutes[name].append(at)

    def begin(self, key: Key, model: str, path: str) -> "Metered | Answer":
        """path: of a POST."""
        now, name = self._clock.now(), key.name or ENGINES_OWN
        row = (datetime.fromtimestamp(now, UTC).date().isoformat(), name, model)
        if answer := enough(key, self._load(key, row), now):
            self._store.refuse(row)
            return answer
        if key.per_minute:
            at = self._clock.monotonic()
            self._minutes[name].append(at)
            self._store.minute(name, at, at - MINUTE)
        self._at_once[name] += 1
        self._store.begin(row)
        return Metered(self, row, path in STREAMS)

    def end(self, row: Row, seen: Counting) -> None:
        name = row[1]
        self._at_once[name] -= 1
        tokens = seen.tokens if seen.status == 200 else None
        least = 0
        if seen.status >= 400:
            outcome = "failed"
        elif not seen.complete:
            outcome, least = "cut", max(0, seen.at_least - (tokens.completion if tokens else 0))
        else:
            outcome = "finished" if tokens else "uncounted"
        self._store.end(row, outcome, tokens, least)

    def _load(self, key: Key, row: Row) -> Load:
        minute, now = self._minutes[row[1]], self._clock.monotonic()
        while minute and now - minute[0] >= MINUTE:
            minute.popleft()
        today = self._store.today(row[0], row[1]) if key.tokens_a_day else 0
        free_in = MINUTE - (now - minute[-key.per_minute]) if 0 < key.per_minute <= len(minute) else 0.0
        return Load(free_in, self._at_once[row[1]], today)


@dataclass(slots=True)
class Metered:
    """One request. streams: of an API whose streams count their tokens only when asked."""

    meter: Meter
    row: Row
    streams: bool
    _seen: Counting = field(default_factory=Counting)

    def insertion(self, body: Body) -> bytes:
        """What is to follow the first brace of the body, so that the engine counts: b'' for nothing."""
        if not (self.streams and asks_nothing(body)):
            return b""
        self._seen = Counting(asked=True)
        return ASK

    def saw(self, chunk: bytes) -> bytes:
        return self._seen.saw(chunk)

    def ended(self) -> None:
        self.meter.end(self.row, self._seen)
