"""Plays sessions: when the next one begins, turn after turn, and what a turn adds to the history."""

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any

import orjson

from sparkwright.adapters.load.exchange import Exchange, outcome
from sparkwright.adapters.load.loop import WorkerLoop
from sparkwright.adapters.load.pool import SocketPool

# A turn, as it comes over the wire: head, new, tail, answer, think. A session: its place in the job, at, turns.
Turn = tuple[bytes, bytes, bytes, bool, float]
Session = tuple[int, float | None, Sequence[Turn]]


class Playing:
    """One session. begin, then `over` is called when its last turn has ended, or one failed."""

    __slots__ = ("_head", "_history", "_next", "_number", "_place", "_player", "_turns")

    def __init__(self, player: "Player", session: Session) -> None:
        self._player, self._place, self._turns = player, session[0], session[2]
        self._number, self._history, self._next = 0, b"", b""
        self._prepare()

    def begin(self, intended: float) -> None:
        """intended: by the process's clock."""
        if self._player.ended:
            return
        turn = self._turns[self._number]
        keep = self._player.keep_text or turn[3]
        exchange = Exchange(self._ended, self._next, intended, keep)
        self._next = b""
        self._player.pool.send(exchange)

    def _prepare(self) -> None:
        """Builds the next request whole, so that nothing is left to do when its time comes."""
        head, new, tail, _, _ = self._turns[self._number]
        self._history = b",".join(part for part in (self._history, new) if part)
        self._next = self._player.head(len(head) + len(self._history) + len(tail), (head, self._history, tail))

    def _ended(self, exchange: Exchange) -> None:
        place, number, player = self._place, self._number, self._player
        exchange.request = b""
        last = number + 1 == len(self._turns)
        if last or exchange.failed[0] or exchange.status != 200:
            player.row(place, number, exchange)
            player.over()
            return
        ended = exchange.last
        player.row(place, number, exchange, now=True)
        if exchange.stream is None or exchange.stream.error or not exchange.stream.at:
            player.over()
            return
        self._go_on(exchange, ended)

    def _go_on(self, exchange: Exchange, ended: float) -> None:
        if self._turns[self._number][3] and exchange.stream:
            said = b'{"role":"assistant","content":' + orjson.dumps(exchange.stream.answer()) + b"}"
            self._history = b",".join(part for part in (self._history, said) if part)
        self._number += 1
        self._prepare()
        think = self._turns[self._number][4]
        if think > 0:
            self._player.loop.at(ended + think, lambda: self.begin(ended + think))
        else:
            self.begin(perf_counter())


class Player:
    """All sessions of one process. limit: sessions at a time, 0 for no limit. done: called when the last is over.

    A session with a time begins then, or as soon after it as the limit lets it; its intended time stays.
    """

    def __init__(self, loop: WorkerLoop, pool: SocketPool, head: Callable[[int, tuple[bytes, ...]], bytes]) -> None:
        self.loop, self.pool, self.head = loop, pool, head
        self.keep_text, self.limit = False, 0
        self.emit: Callable[[Any], None] = lambda _: None
        self.done: Callable[[], None] = lambda: None
        self._zero, self._active, self._pending = 0.0, 0, 0
        self._timed: deque[tuple[float, Playing]] = deque()
        self._waiting: deque[tuple[float | None, Playing]] = deque()
        self.ended = False

    def load(self, sessions: list[Session]) -> None:
        """Prepares every session's first request. Takes the list empty: prompts may be large."""
        timed = []
        sessions.reverse()
        while sessions:
            session = sessions.pop()
            playing = Playing(self, session)
            if session[1] is None:
                self._waiting.append((None, playing))
            else:
                timed.append((session[1], playing))
        self._timed.extend(sorted(timed, key=lambda one: one[0]))

    def begin(self, zero: float) -> None:
        self._zero = zero
        self._fill()
        self._arm()
        self._rest()

    def finish(self, kind: str, error: str) -> None:
        """The time is up: nothing new begins, what is in flight ends."""
        self.ended = True
        self._timed.clear()
        self._waiting.clear()
        self.loop.starts.clear()
        self.pool.abort(kind, error)
        self._active = 0
        self._rest()

    def row(self, place: int, turn: int, exchange: Exchange, now: bool = False) -> None:
        """Looks into an answer and hands the row on; later, unless the next turn needs its text."""
        if now:
            self._row(place, turn, exchange)
        else:
            self._pending += 1
            self.loop.later(partial(self._row_later, place, turn, exchange))

    def over(self) -> None:
        """A session is over: the next one may begin."""
        self._active -= 1
        self._fill()
        self._rest()

    def _row_later(self, place: int, turn: int, exchange: Exchange) -> None:
        self._row(place, turn, exchange)
        self._pending -= 1
        self._rest()

    def _row(self, place: int, turn: int, exchange: Exchange) -> None:
        exchange.end()
        text = exchange.stream.answer() if self.keep_text and exchange.stream else ""
        self.emit((place, turn, outcome(exchange, self._zero), text))

    def _fill(self) -> None:
        while self._waiting and (not self.limit or self._active < self.limit):
            at, playing = self._waiting.popleft()
            self._active += 1
            self.loop.start(partial(self._start, at, playing))

    def _start(self, at: float | None, playing: Playing) -> None:
        playing.begin(perf_counter() if at is None else self._zero + at)

    def _arm(self) -> None:
        if self._timed:
            self.loop.at(self._zero + self._timed[0][0], self._due)

    def _due(self) -> None:
        now = perf_counter() - self._zero
        while self._timed and self._timed[0][0] <= now:
            self._waiting.append(self._timed.popleft())
        self._fill()
        self._arm()

    def _rest(self) -> None:
        if not (self._active or self._pending or self._timed or self._waiting or self.loop.starts):
            self.done()
