"""The connections of one process: opened before the clock starts, kept, replaced where the server closed them."""

import socket
from collections.abc import Callable
from time import perf_counter

from sparkwright.adapters.load.connection import Address, Connection
from sparkwright.adapters.load.exchange import Exchange
from sparkwright.adapters.load.loop import Loop

_AT_ONCE = 64  # connections being opened: a server's backlog may be 128
_YOUNG = 1.0  # a connection that was closed sooner than this after it was opened is not replaced beforehand


class Pool:
    """make: builds a connection (plain or TLS). unknown: why the host has no address."""

    def __init__(self, loop: Loop, make: Callable[["Pool", Address], Connection], addresses: list[Address]) -> None:
        self._loop, self._make, self._addresses = loop, make, addresses
        self._idle: list[Connection] = []
        self._opening: dict[Connection, Exchange | None] = {}
        self.busy: set[Connection] = set()
        self._wanted = 0
        self._ready: Callable[[], None] = _nothing
        self.closing, self.unknown = False, ""

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

    # What connections tell.
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
            ready, self._ready = self._ready, _nothing
            ready()

    def _open(self, exchange: Exchange | None) -> None:
        try:
            if self._addresses:
                self._opening[self._make(self, self._addresses[0])] = exchange
                return
            kind, why = "unknown-host", self.unknown
        except OSError as error:
            kind, why = "not-sent", f"no socket: {error.strerror}"
        if exchange:
            exchange.fail(kind, why)
            exchange.owner(exchange)

    def _send(self, connection: Connection, exchange: Exchange) -> None:
        self.busy.add(connection)
        connection.send(exchange)


def _nothing() -> None:
    pass


def resolve(host: str, port: int) -> list[Address]:
    """Every address of the host, as the system orders them. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys((family, target) for family, _, _, _, target in found))
