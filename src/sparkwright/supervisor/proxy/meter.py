"""The usage of each key, counted while answers pass, and its limits."""

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

from sparkwright.adapters.sqlite.usage import Row, UsageStore
from sparkwright.domain.history import RequestRecord
from sparkwright.gateway.decide import GatewayAnswer
from sparkwright.gateway.guard import CHAT, UNGUARDED, AnswerGuard, GuardSetting
from sparkwright.gateway.keys import Key
from sparkwright.gateway.usage import ASK, MINUTE, STREAMS, Body, Counting, KeyLoad, answer_limit, asks_nothing, enough
from sparkwright.ports import Clock
from sparkwright.supervisor.proxy.engine_answer import EngineAnswer
from sparkwright.supervisor.proxy.usage_writer import UsageWriter

ENGINES_OWN, OTHER = "(the engine's own key)", "(other)"


class Meter:
    """All requests of one gateway. Minutes go by the monotonic clock; a day is UTC's when a request begins."""

    def __init__(self, clock: Clock, store: UsageStore | UsageWriter) -> None:
        self._clock, self._store = clock, store
        self._minutes: dict[str, deque[float]] = defaultdict(deque)
        self._at_once: dict[str, int] = defaultdict(int)
        now = clock.monotonic()
        for name, at in store.minutes(now - MINUTE, now):
            self._minutes[name].append(at)

    def enter(self, key: Key, model: str) -> "Counted | GatewayAnswer":
        """Count a request for its key, before a byte of its body is read. model: for one that a limit refuses."""
        now, name = self._clock.now(), key.name or ENGINES_OWN
        if answer := enough(key, self._load(key, name, now), now):
            self._store.refuse(self._row(name, model, now))
            self._store.record(RequestRecord(now, name, model, "", answer.status, "refused", 0.0))
            return answer
        at = self._clock.monotonic()
        if key.per_minute:
            self._minutes[name].append(at)
        self._at_once[name] += 1
        return Counted(self, key, name, at)

    def begin(self, entry: "Counted", model: str, path: str, guard: GuardSetting = UNGUARDED) -> "Metered":
        """A request that goes to an engine. guard: of its deployment."""
        entry.passed_on = True
        row = self._row(entry.name, model, self._clock.now())
        began = self._clock.now() - (self._clock.monotonic() - entry.at)
        wanted = guard.with_limits(entry.key.end_loops, entry.key.reasoning_tokens)
        answer_guard = AnswerGuard(wanted, path) if wanted.on else None
        limit = partial(answer_limit, most=wanted.answer_tokens, context=wanted.context) if path == CHAT else None
        return Metered(self, entry, row, path, entry.at, began, answer_guard, limit=limit)

    def sent(self, metered: "Metered") -> None:
        """Write down that a request has begun, once its engine has it."""
        if metered.entry.key.per_minute:
            self._store.minute(metered.entry.name, metered.at, metered.at - MINUTE)
        self._store.begin(metered.row)

    def refuse(self, entry: "Counted", model: str, path: str, status: int) -> None:
        """Record a request that the gateway answers itself: nothing serves it now."""
        seconds = self._clock.monotonic() - entry.at
        at = self._clock.now() - seconds
        self._store.record(RequestRecord(at, entry.name, model, path, status, "refused", seconds))

    @property
    def monotonic(self) -> float:
        return self._clock.monotonic()

    def leave(self, entry: "Counted") -> None:
        """A request is over. One that no engine was given does not count for its minute any more."""
        self._at_once[entry.name] -= 1
        if entry.key.per_minute and not entry.passed_on and entry.at in (minute := self._minutes[entry.name]):
            minute.remove(entry.at)

    def end(self, metered: "Metered", seen: Counting, whole: bool) -> None:
        tokens = seen.tokens if seen.status == 200 else None
        least = 0
        if seen.status >= 400:
            outcome = "failed"
        elif metered.guard and metered.guard.ended:
            outcome, least = metered.guard.ended, 0 if tokens else seen.at_least
        elif not whole:
            outcome, least = "cut", max(0, seen.at_least - (tokens.completion if tokens else 0))
        else:
            outcome = "finished" if tokens else "uncounted"
        self._store.end(metered.row, outcome, tokens, least)
        _, name, model = metered.row
        counts = (tokens.prompt, tokens.cached, tokens.completion) if tokens else (None, None, None)
        seconds = self._clock.monotonic() - metered.at
        path = metered.path
        self._store.record(
            RequestRecord(metered.began, name, model, path, seen.status, outcome, seconds, metered.first, *counts)
        )

    @staticmethod
    def _row(name: str, model: str, now: float) -> Row:
        return datetime.fromtimestamp(now, UTC).date().isoformat(), name, model

    def _load(self, key: Key, name: str, wall: float) -> KeyLoad:
        minute, now = self._minutes[name], self._clock.monotonic()
        while minute and now - minute[0] >= MINUTE:
            minute.popleft()
        today = self._store.today(self._row(name, "", wall)[0], name) if key.tokens_a_day else 0
        free_in = MINUTE - (now - minute[-key.per_minute]) if 0 < key.per_minute <= len(minute) else 0.0
        return KeyLoad(free_in, self._at_once[name], today)


@dataclass(slots=True)
class Counted:
    """One request that counts for its key. at: monotonic seconds. passed_on: an engine was given it."""

    meter: Meter
    key: Key
    name: str
    at: float
    passed_on: bool = False

    def leave(self) -> None:
        self.meter.leave(self)


@dataclass(slots=True)
class Metered:
    """One request at an engine. at, began: when it came, by the monotonic clock and by the calendar.

    guard: ends it if it loops or reasons too long, None
    where nobody wants that. first: seconds until the first byte of a stream, None until it came and of other answers.
    limit: gives the member that limits its answer, None for an API without it.
    """

    meter: Meter
    entry: Counted
    row: Row
    path: str
    at: float
    began: float
    guard: AnswerGuard | None = None
    first: float | None = None
    limit: Callable[[Body], bytes] | None = None
    _stream: bool = False
    _sent: bool = False
    _seen: Counting = field(default_factory=Counting)

    @property
    def streams(self) -> bool:
        """True for an API whose streams count their tokens only on request."""
        return self.path in STREAMS

    @property
    def prompt_tokens(self) -> int | None:
        """Tokens of the prompt as the engine counted, 0 if it did not; None if it has not answered."""
        if self._seen.status != 200:
            return None
        return self._seen.tokens.prompt if self._seen.tokens else 0

    def insertion(self, body: Body) -> bytes:
        """The bytes to insert behind the body's first brace, so that the engine counts and ends: b'' for none."""
        if not self.streams:
            return b""
        limit = self.limit(body) if self.limit else b""
        if not asks_nothing(body):
            return limit
        self._seen = Counting(asked=True)
        return ASK + limit

    def sent(self) -> None:
        """An engine has it; a second one of which it is asked does not count again."""
        if not self._sent:
            self._sent = True
            self.meter.sent(self)

    def begins(self, answer: EngineAnswer) -> None:
        stream = answer.header(b"content-type").lower().startswith(b"text/event-stream")
        self._stream = stream
        sized = answer.header(b"content-length") != b""
        self._seen.begins(answer.status, stream, sized)
        if self.guard and answer.status == 200:
            self.guard.begins(stream, sized)

    def saw(self, piece: bytes) -> bytes:
        if self._stream and self.first is None:
            self.first = self.meter.monotonic - self.at
        passed = self._seen.saw(piece)
        return self.guard.saw(passed) if self.guard and self._seen.status == 200 else passed

    @property
    def over(self) -> bool:
        """True if nothing more is to be sent: it was ended here."""
        return self.guard is not None and self.guard.over

    def rest(self) -> bytes:
        return self._seen.rest()

    def ended(self, whole: bool) -> None:
        self.sent()
        self.meter.end(self, self._seen, whole)
