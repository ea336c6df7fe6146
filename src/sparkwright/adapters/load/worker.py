"""The program that sends the requests of one job: a process of its own, so that nothing else runs in its loop.

It reads the job and then the word to begin from stdin, and writes `ready`, rows and its own lag to stdout. It ends
when its stdin does. Few imports: it has to be there at once.

`LoadWorker` is the job from the wire to its lag; `Player` decides when the next session begins; `Playing` takes one
session turn after turn, and knows what a turn adds to the history.
"""

import contextlib
import fcntl
import gc
import os
import resource
import ssl
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter, process_time
from typing import Any

import orjson

from sparkwright.adapters.load.connections import Connection, SocketPool, WorkerLoop, resolve
from sparkwright.adapters.load.exchange import Exchange, outcome
from sparkwright.adapters.load.wire import LAG, READY, ROW, FrameReader, pack_frame, read_frame

_SWEEP = 0.2
_FULL = 1 << 16
_PIPE = 1 << 20
_SPARE = 64  # connections opened beforehand for requests that have a time, without a limit

# A turn, as it comes over the wire: head, new, tail, answer, think. A session: its place in the job, at, turns.
WireTurn = tuple[bytes, bytes, bytes, bool, float]
WireSession = tuple[int, float | None, Sequence[WireTurn]]


class Out:
    """Rows on their way to the client. Never waits for it while the job runs."""

    def __init__(self, fd: int) -> None:
        self._fd, self._held = fd, bytearray()
        os.set_blocking(fd, False)

    def put(self, value: Any) -> None:
        self._held += pack_frame(value)

    def flush(self) -> None:
        try:
            while self._held:
                del self._held[: os.write(self._fd, self._held)]
        except BlockingIOError:
            pass

    def close(self) -> None:
        os.set_blocking(self._fd, True)
        self.flush()


class LoadWorker:
    """One job, from the wire to its lag."""

    def __init__(self, job: dict[str, Any], out: Out) -> None:
        self._job, self._out, self._loop = job, out, WorkerLoop()
        host, unknown, addresses = self._job["host"], "", []
        tls = (_context(self._job["authority"]), host) if self._job["tls"] else None
        try:
            addresses = resolve(host, self._job["port"])
        except OSError as error:
            unknown = f"{host}: {error.strerror}"
        self._pool = SocketPool(lambda pool, address: Connection(self._loop, pool, address, tls), addresses, unknown)
        self._player = Player(self._loop, self._pool, self._request)
        self._player.keep_text, self._player.limit = job["keep_text"], job["concurrency"]
        self._player.emit = lambda row: out.put((ROW, *row))
        self._player.done = self._loop.stop
        self._began = self._cpu = 0.0
        self._heard = FrameReader()

    def run(self) -> None:
        sessions = self._job.pop("sessions")
        wanted = min(len(sessions), self._job["concurrency"] or (len(sessions) if sessions[0][1] is None else _SPARE))
        self._player.load(sessions)
        gc.freeze()
        self._loop.aio.add_reader(0, self._told)
        self._pool.prepare(wanted, self._ready)
        self._loop.at(perf_counter() + _SWEEP, self._sweep)
        self._loop.run()
        self._out.put((LAG, *self._lag()))
        self._out.close()

    def _request(self, length: int, parts: tuple[bytes, ...]) -> bytes:
        return b"".join((self._job["head"], b"%d\r\n\r\n" % length, *parts))

    def _ready(self) -> None:
        self._out.put((READY,))
        self._out.flush()

    def _told(self) -> None:
        """Reads the time to begin, or the end of stdin: the reader of the rows is gone."""
        data = os.read(0, _FULL)
        if not data:
            os._exit(1)
        for zero in self._heard.feed(data):
            self._loop.at(zero, partial(self._begin, zero))

    def _begin(self, zero: float) -> None:
        self._began, self._cpu = perf_counter(), process_time()
        self._loop.beat()
        self._loop.at(zero + self._job["whole"], self._time_up)
        self._player.begin(zero)

    def _time_up(self) -> None:
        self._player.finish("time-up", f"still in flight after {self._job['whole']:g} s, when the level had to end")

    def _sweep(self) -> None:
        now = perf_counter()
        self._pool.sweep(now, self._job["limits"])
        self._out.flush()
        self._loop.at(now + _SWEEP, self._sweep)

    def _lag(self) -> tuple[float, ...]:
        cpu, took = process_time() - self._cpu, max(perf_counter() - self._began, 1e-9)
        delays = sorted(self._loop.delays) or [0.0]
        middle, high = (delays[min(len(delays) - 1, int(share * len(delays)))] for share in (0.5, 0.99))
        return middle, high, delays[-1], cpu, cpu / took


class Playing:
    """One session. begin, then `over` is called when its last turn has ended, or one failed."""

    __slots__ = ("_head", "_history", "_next", "_number", "_place", "_player", "_turns")

    def __init__(self, player: "Player", session: WireSession) -> None:
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

    def load(self, sessions: list[WireSession]) -> None:
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


def main() -> None:
    gc.disable()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with contextlib.suppress(OSError):
        fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, _PIPE)
    job = read_frame(_read_whole)
    if job is not None:
        LoadWorker(job, Out(1)).run()


def _context(authority: str) -> ssl.SSLContext:
    """The system's authorities (SSL_CERT_FILE counts), and that of a file."""
    made = ssl.create_default_context()
    if authority:
        made.load_verify_locations(authority)
    made.set_alpn_protocols(["http/1.1"])
    return made


def _read_whole(size: int) -> bytes:
    """Reads exactly `size` bytes of stdin: the rest is for the loop."""
    parts = []
    while size and (part := os.read(0, size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
