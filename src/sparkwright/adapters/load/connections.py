"""The worker's event loop and its connections: opened before the clock starts, kept, replaced where the server closed
them.

The loop is uvloop: what came is read before anything else is done, and the rest waits.
"""

import asyncio
import errno
import os
import select
import socket
import ssl
from array import array
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Any, cast

import uvloop

from sparkwright.adapters.load.exchange import END, Exchange

BEAT = 0.01
_BURST = 8  # requests sent between two polls
_FEW = 4  # pieces of put-off work at a beat, however much there is to read
_COARSE = 0.002
_MUCH = 2048  # pieces of put-off work that may wait before reading has to
_AT_ONCE = 64  # connections being opened: a server's backlog may be 128
_YOUNG = 1.0  # a connection that was closed sooner than this after it was opened is not replaced beforehand

Address = tuple[socket.AddressFamily, Any]  # what socket takes for the family


class WorkerLoop:
    """`starts` are done a few between two polls, `work` when there is nothing to read. delays: of each beat, seconds.

    reads: counted by the connections. A beat that comes late counts for the beats that it delayed, too, as a waiting
    stream would have seen them.
    """

    def __init__(self) -> None:
        self.aio = uvloop.new_event_loop()
        self.aio.set_exception_handler(self._failed)
        self._poll: int = cast(Any, self.aio)._get_backend_id()
        self.starts: deque[Callable[[], None]] = deque()
        self._work: deque[Callable[[], None]] = deque()
        self._armed, self._seen, self.reads = False, 0, 0
        self._error: BaseException | None = None
        self.delays = array("d")

    def start(self, call: Callable[[], None]) -> None:
        self.starts.append(call)
        self._arm()

    def later(self, call: Callable[[], None]) -> None:
        self._work.append(call)
        self._arm()

    def at(self, when: float, call: Callable[[], None]) -> None:
        """Calls at a time of perf_counter. libuv's timers count whole milliseconds: the rest is waited for in
        select."""
        if (left := when - perf_counter()) > _COARSE:
            self.aio.call_later(left - _COARSE / 2, self.at, when, call)
            return
        if left > 0 and not self._armed:
            select.select((self._poll,), (), (), left)
        if perf_counter() < when:
            self.aio.call_soon(self.at, when, call)
        else:
            call()

    def beat(self) -> None:
        """Begins to measure the loop's delay."""
        self._next_beat = perf_counter() + BEAT
        self.at(self._next_beat, self._beaten)

    def stop(self) -> None:
        self.aio.stop()

    def run(self) -> None:
        self.aio.run_forever()
        if self._error:
            raise self._error

    def _arm(self) -> None:
        if not self._armed:
            self._armed = True
            self.aio.call_soon(self._tick)

    def _tick(self) -> None:
        """Works between two polls."""
        for _ in range(min(_BURST, len(self.starts))):
            self.starts.popleft()()
        if self._work and (self.reads == self._seen or len(self._work) > _MUCH):
            self._work.popleft()()
        self._seen, self._armed = self.reads, False
        if self.starts or self._work:
            self._arm()

    def _beaten(self) -> None:
        late = perf_counter() - self._next_beat
        self._next_beat += BEAT * (1 + late // BEAT)
        while late >= 0:
            self.delays.append(late)
            late -= BEAT
        for _ in range(min(_FEW, len(self._work))):
            self._work.popleft()()
        self.at(self._next_beat, self._beaten)

    def _failed(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self._error = context.get("exception") or RuntimeError(context["message"])
        self.stop()


class Connection(asyncio.Protocol):
    """exchange: in flight on it. uses: answers that came over it. since: when it last changed its state.

    tls: the context and the host's name; the handshake is done when it counts as open.
    """

    def __init__(
        self, loop: WorkerLoop, pool: "SocketPool", address: Address, tls: tuple[ssl.SSLContext, str] | None
    ) -> None:
        self._loop, self._pool = loop, pool
        self.exchange: Exchange | None = None
        self.uses, self.since = 0, perf_counter()
        self._writing, self._closed = False, False
        self._transport: asyncio.Transport | None = None
        family, target = address
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._opening = loop.aio.create_task(self._open(sock, target, tls))

    async def _open(self, sock: socket.socket, target: Any, tls: tuple[ssl.SSLContext, str] | None) -> None:
        secure, host = tls or (None, None)
        connected = False
        try:
            await self._loop.aio.sock_connect(sock, target)
            connected = True
            await self._loop.aio.create_connection(lambda: self, sock=sock, ssl=secure, server_hostname=host)
        except OSError as error:
            if connected and tls:
                self.close("tls", str(error))
            else:
                self.close("refused" if error.errno == errno.ECONNREFUSED else "unreachable", _text(error))
        finally:
            if not self._transport:
                sock.close()

    def send(self, exchange: Exchange) -> None:
        """`sent` is when the last byte was given to the kernel, the first time."""
        assert self._transport
        self.exchange = exchange
        self._transport.write(exchange.request)
        self.since = perf_counter()
        if not (exchange.sent or self._writing):
            exchange.sent = self.since

    def close(self, kind: str = "", error: str = "") -> None:
        if not self._closed:
            self._end()
            self._pool.lost(self, kind, error)

    def look(self) -> None:
        """Is the answer whole? What is in it can wait, the next request cannot."""
        exchange = self.exchange
        if exchange is None:
            return
        exchange.frame()
        if exchange.complete:
            self._done(exchange)

    # What the event loop calls.
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport, self.since = cast(asyncio.Transport, transport), perf_counter()
        self._transport.set_write_buffer_limits(0)
        self._pool.opened(self)

    def data_received(self, part: bytes) -> None:
        """One read: time and bytes are kept, nothing is parsed."""
        now, exchange = perf_counter(), self.exchange
        self._loop.reads += 1
        if exchange is None:
            self.close("idle")  # nothing was asked: the server talks out of turn
            return
        times = exchange.times
        times.append(now)
        exchange.parts.append(part)
        if part.endswith(END) or len(part) < len(END):
            self.look()
        elif len(times) == exchange.mark:
            self._loop.later(self._look_deeper)

    def pause_writing(self) -> None:
        self._writing = True

    def resume_writing(self) -> None:
        self._writing, self.since = False, perf_counter()
        if self.exchange and not self.exchange.sent:
            self.exchange.sent = self.since

    def connection_lost(self, error: Exception | None) -> None:
        if isinstance(error, OSError):
            self.close("reset", _text(error))
        else:
            self.close("cut", "the server closed the connection")

    def _look_deeper(self) -> None:
        self.look()
        if self.exchange:
            self.exchange.digest()

    def _done(self, exchange: Exchange) -> None:
        self.exchange, self.since = None, perf_counter()
        self.uses += 1
        if exchange.keeps_alive() and not self._writing:
            self._pool.free(self)
        else:
            self._end()
        exchange.owner(exchange)

    def _end(self) -> None:
        self._closed = True
        if self._transport:
            self._transport.abort()
        else:
            self._opening.cancel()


class SocketPool:
    """make: builds a connection. unknown: why the host has no address."""

    def __init__(
        self, make: Callable[["SocketPool", Address], Connection], addresses: list[Address], unknown: str
    ) -> None:
        self._make, self._addresses, self._unknown = make, addresses, unknown
        self._idle: list[Connection] = []
        self._opening: dict[Connection, Exchange | None] = {}
        self.busy: set[Connection] = set()
        self._wanted = 0
        self._ready: Callable[[], None] | None = None
        self.closing = False

    def prepare(self, number: int, ready: Callable[[], None]) -> None:
        """Opens so many; calls `ready` when each of them is open, or cannot be."""
        self._wanted, self._ready = number if self._addresses else 0, ready
        self._open_more()

    def send(self, exchange: Exchange) -> None:
        if self._idle:
            self._send(self._idle.pop(), exchange)
        else:
            self._open(exchange)

    def sweep(self, now: float, limits: tuple[float, float, float]) -> None:
        """Ends what takes longer than it may: to connect, until the first byte, between two reads."""
        connect, first, silence = limits
        for connection in [one for one in self._opening if now - one.since > connect]:
            connection.close("connect-timeout", f"no connection within {connect:g} s")
        for connection in list(self.busy):
            if exchange := connection.exchange:
                self._sweep_one(connection, exchange, now, (first, silence))

    def _sweep_one(self, connection: Connection, exchange: Exchange, now: float, limits: tuple[float, float]) -> None:
        limit = limits[exchange.started]
        quiet = now - max(exchange.heard, connection.since)
        if exchange.times and quiet > 0.02:
            connection.look()
        elif quiet > limit:
            kind = "silence" if exchange.started else "no-answer"
            connection.close(kind, f"nothing came for {limit:g} s")

    def abort(self, kind: str, error: str) -> None:
        """Ends everything in flight."""
        self.closing = True
        for connection in [*self.busy, *self._opening]:
            connection.close(kind, error)

    # What connections report.
    def opened(self, connection: Connection) -> None:
        exchange = self._opening.pop(connection, None)
        if exchange:
            self._send(connection, exchange)
        else:
            self._idle.append(connection)
        self._open_more()

    def free(self, connection: Connection) -> None:
        self.busy.discard(connection)
        self._idle.append(connection)

    def lost(self, connection: Connection, kind: str, error: str) -> None:
        self.busy.discard(connection)
        exchange, connection.exchange = connection.exchange, None
        if connection in self._opening:
            self._not_opened(self._opening.pop(connection), kind, error)
        elif connection in self._idle:
            self._idle.remove(connection)
            if perf_counter() - connection.since > _YOUNG and not self.closing:
                self._open(None)
        elif exchange:
            self._broken(connection, exchange, kind, error)

    def _broken(self, connection: Connection, exchange: Exchange, kind: str, error: str) -> None:
        """A server may close an idle connection while a request is on its way to it: sent again, once."""
        raced = kind in ("cut", "reset") and connection.uses > 0 and not exchange.started and not exchange.again
        if raced and not self.closing:
            exchange.again = True
            self._open(exchange)
            return
        exchange.frame()
        if not (kind == "cut" and exchange.until_closed) and not exchange.complete:
            exchange.fail(kind, error)
        exchange.owner(exchange)

    def _not_opened(self, exchange: Exchange | None, kind: str, error: str) -> None:
        if exchange and not self.closing and len(self._addresses) > 1:
            # localhost is ::1 and 127.0.0.1, and a server may listen on one of them.
            self._addresses.pop(0)
            self._open(exchange)
            return
        if exchange:
            exchange.fail(kind, error)
            exchange.owner(exchange)
        elif len(self._addresses) > 1:
            self._addresses.pop(0)
            self._wanted += 1
        self._open_more()

    def _open_more(self) -> None:
        while self._wanted and len(self._opening) < _AT_ONCE:
            self._wanted -= 1
            self._open(None)
        if not self._wanted and not self._opening:
            ready, self._ready = self._ready, None
            if ready:
                ready()

    def _open(self, exchange: Exchange | None) -> None:
        try:
            if self._addresses:
                self._opening[self._make(self, self._addresses[0])] = exchange
                return
            kind, why = "unknown-host", self._unknown
        except OSError as error:
            kind, why = "not-sent", f"no socket: {error.strerror}"
        if exchange:
            exchange.fail(kind, why)
            exchange.owner(exchange)

    def _send(self, connection: Connection, exchange: Exchange) -> None:
        self.busy.add(connection)
        connection.send(exchange)


def _text(error: OSError) -> str:
    name = errno.errorcode.get(error.errno or 0, type(error).__name__)
    return f"{name}: {os.strerror(error.errno) if error.errno else error}"


def resolve(host: str, port: int) -> list[Address]:
    """Every address of the host, as the system orders them. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys((family, target) for family, _, _, _, target in found))
