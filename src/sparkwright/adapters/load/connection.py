"""One keep-alive connection: non-blocking, read as soon as it is ready, with the time of each read."""

import errno
import os
import select
import socket
from collections.abc import Callable
from time import perf_counter
from typing import Any, Protocol

from sparkwright.adapters.load.exchange import END, Exchange
from sparkwright.adapters.load.loop import Loop

Address = tuple[socket.AddressFamily, Any]  # what socket takes for the family
_SIZE = 1 << 14
_IN, _OUT = select.POLLIN, select.POLLOUT  # epoll's have the same values, and other systems know these


class Owner(Protocol):
    """Who is notified of what becomes of a connection."""

    def opened(self, connection: "Connection") -> None: ...

    def free(self, connection: "Connection") -> None:
        """The answer to its request is whole and the server keeps it open."""
        ...

    def lost(self, connection: "Connection", kind: str, error: str) -> None:
        """It is closed. Its exchange, if any, is the owner's now."""
        ...


class Connection:
    """exchange: in flight on it. uses: answers that came over it. since: when it last changed its state."""

    def __init__(self, loop: Loop, owner: Owner, address: Address) -> None:
        self._loop, self._owner = loop, owner
        self.exchange: Exchange | None = None
        self.uses, self.since, self.open = 0, perf_counter(), False
        self._left, self._writing = memoryview(b""), False
        family, target = address
        self.sock = socket.socket(family, socket.SOCK_STREAM)
        self.sock.setblocking(False)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.fd = self.sock.fileno()
        self._recv: Callable[[int], bytes] = self.sock.recv
        loop.watch(self.fd, _OUT, self._connecting)
        code = self.sock.connect_ex(target)
        if code not in (0, errno.EINPROGRESS):
            self._loop.starts.append(lambda: self._refused(code))

    def send(self, exchange: Exchange) -> None:
        """`sent` is when the last byte was given to the kernel, the first time."""
        self.exchange, self._left = exchange, memoryview(exchange.request)
        self._write()

    def ready(self, mask: int) -> None:
        """One read: time and bytes are kept, nothing is parsed."""
        exchange = self.exchange
        if mask & _OUT or exchange is None:
            self._rare(mask)
            return
        try:
            part = self._recv(_SIZE)
            now = perf_counter()
        except BlockingIOError:
            return
        except OSError as error:
            self.close("reset", _words(error))
            return
        if not part:
            self.close("cut", "the server closed the connection")
            return
        times = exchange.times
        times.append(now)
        exchange.parts.append(part)
        if part.endswith(END) or len(part) < len(END):
            self.look()
        elif len(times) == exchange.mark:
            self._loop.work.append(self.look_deeper)

    def look(self) -> None:
        """Is the answer whole? What is in it can wait, the next request cannot."""
        exchange = self.exchange
        if exchange is None:
            return
        exchange.frame()
        if exchange.complete:
            self._done(exchange)

    def look_deeper(self) -> None:
        self.look()
        if self.exchange:
            self.exchange.digest()

    def close(self, kind: str = "", error: str = "") -> None:
        self._loop.forget(self.fd)
        self.sock.close()
        self.open = False
        self._owner.lost(self, kind, error)

    def _done(self, exchange: Exchange) -> None:
        self.exchange, self.since = None, perf_counter()
        self.uses += 1
        stays = exchange.keeps_alive() and not self._left
        if stays:
            self._owner.free(self)
        else:
            self._loop.forget(self.fd)
            self.sock.close()
            self.open = False
        exchange.owner(exchange)

    def _rare(self, mask: int) -> None:
        if mask & _OUT and self._left:
            self._write()
        elif self.exchange is None:
            # Nothing was asked: the server has closed it, or talks out of turn.
            self.close("idle")
        if self.exchange and mask & ~_OUT:
            self.ready(mask & ~_OUT)

    def _write(self) -> None:
        exchange = self.exchange
        assert exchange
        try:
            self._left = self._left[self._send(self._left) :]
        except BlockingIOError:
            pass
        except OSError as error:
            # An answer may have come before all was sent: too large, no such key.
            self._left, said = memoryview(b""), _words(error)
            self._loop.change(self.fd, _IN)
            self._loop.starts.append(lambda: self._broken(exchange, said))
            return
        self.since = perf_counter()
        if self._left:
            if not self._writing:
                self._writing = True
                self._loop.change(self.fd, _IN | _OUT)
            return
        if not exchange.sent:
            exchange.sent = self.since
        if self._writing:
            self._writing = False
            self._loop.change(self.fd, _IN)

    def _broken(self, exchange: Exchange, error: str) -> None:
        """The request did not go out whole: reads what was answered, else it is lost."""
        if self.exchange is exchange:
            self.ready(_IN)
        if self.exchange is exchange and not exchange.started:
            self.close("reset", error)

    def _send(self, data: memoryview) -> int:
        return self.sock.send(data)

    def _connecting(self, _mask: int) -> None:
        if code := self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self._refused(code)
        else:
            self._is_open()

    def _is_open(self) -> None:
        self._loop.forget(self.fd)
        self._loop.watch(self.fd, _IN, self.ready)
        self.open, self.since = True, perf_counter()
        self._owner.opened(self)

    def _refused(self, code: int) -> None:
        kind = "refused" if code == errno.ECONNREFUSED else "unreachable"
        self.close(kind, _words(OSError(code, os.strerror(code))))


def _words(error: OSError) -> str:
    name = errno.errorcode.get(error.errno or 0, type(error).__name__)
    return f"{name}: {error.strerror or error}" if error.strerror else name
