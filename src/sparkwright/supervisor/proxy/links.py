"""Connections without a transport of asyncio, and the sockets that accept them.

Fewer turns of the event loop lie between a byte's arrival and the next one's departure, and what the other side sent
before it broke off can still be read.
"""

import asyncio
import errno
import os
import socket
import sys
from collections.abc import Callable, Coroutine
from typing import Any

PIECE = 64 * 1024
_TURN = 4
_ACCEPT_AGAIN = 1.0
_NOT_NOW = (BlockingIOError, InterruptedError)
_UNDER_WAY = frozenset({errno.EINPROGRESS, errno.EALREADY})
# Seconds after which a machine that answers no packet is lost
_ALIVE = ((socket.TCP_KEEPIDLE, 1), (socket.TCP_KEEPINTVL, 1), (socket.TCP_KEEPCNT, 3))


class SocketLink:
    """One end of a connection, of which one task reads and one writes at a time.

    A task that is cancelled loses nothing: what has arrived waits for the next read, and what was given to `put` goes
    out while the link is open.
    """

    def __init__(self, link: socket.socket) -> None:
        link.setblocking(False)
        if link.family != socket.AF_UNIX:
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._link, self._loop = link, asyncio.get_running_loop()
        self._came: bytes | OSError | None = None
        self._reader: asyncio.Future[None] | None = None
        self._take: Callable[[bytes], bool] | None = None
        self._watched, self._reads = False, 0
        self._unsent = bytearray()
        self._writers: list[asyncio.Future[None]] = []
        self._broken: OSError | None = None

    async def connect(self, address: tuple[Any, ...], within: float) -> None:
        """Connect to an address of numbers. Raises OSError, TimeoutError after so many seconds."""
        found = self._link.connect_ex(address)
        if found in _UNDER_WAY:  # on the same machine the answer is there by now: no turn of the loop is needed
            found = self._link.connect_ex(address)
        if found in _UNDER_WAY:
            async with asyncio.timeout(within):
                await self._loop.sock_connect(self._link, address)
        elif found:
            raise OSError(found, os.strerror(found))

    def keep_alive(self, on: bool) -> None:
        """The link breaks within four seconds when the other machine answers no packet."""
        for option, value in _ALIVE:
            self._link.setsockopt(socket.IPPROTO_TCP, option, value)
        self._link.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, on)

    def ready(self) -> bytes | None:
        """The bytes that have come already, b'' at the end, None for nothing, and every few times, so that others get a
        turn. Raises OSError."""
        came, self._came = self._came, None
        if isinstance(came, OSError):
            raise came
        self._reads += 1
        if came is not None or self._reads % _TURN == 0:
            return came
        try:
            return self._link.recv(PIECE)
        except _NOT_NOW:
            return None

    async def read(self) -> bytes:
        """The next bytes, b'' at the end; others get a turn first. Raises OSError."""
        while self._came is None:
            await self._arrival()
        came, self._came = self._came, None
        if isinstance(came, OSError):
            raise came
        return came

    async def read_each(self, take: Callable[[bytes], bool]) -> None:
        """Give `take` what comes, b'' at the end, in the turn in which it comes, until it returns False. Raises OSError
        and what `take` raises."""
        if self._came is not None and not take(await self.read()):
            return
        self._take = take
        try:
            await self._arrival()
        finally:
            self._take = None
        came, self._came = self._came, None
        if isinstance(came, OSError):
            raise came

    def _arrival(self) -> asyncio.Future[None]:
        self._reader = self._loop.create_future()
        if not self._watched:
            self._loop.add_reader(self._link.fileno(), self._arrived)
            self._watched = True
        return self._reader

    def _arrived(self) -> None:
        if self._reader is None or self._reader.done():  # nobody reads now: the other side has to wait
            self._loop.remove_reader(self._link.fileno())
            self._watched = False
            return
        try:
            came: bytes | OSError = self._link.recv(PIECE)
        except _NOT_NOW:
            return
        except OSError as error:
            came = error
        try:
            if self._take is None or isinstance(came, OSError):
                self._came = came
            elif self._take(came) and came:
                return
        except Exception as error:  # it is the reader's
            self._reader.set_exception(error)
        else:
            self._reader.set_result(None)

    def put(self, data: bytes) -> None:
        """Send what the kernel takes now, and the rest as it takes more. The next `write` raises what went wrong."""
        if self._broken:
            return
        sent = 0
        if not self._unsent:
            try:
                sent = self._link.send(data)
            except _NOT_NOW:
                pass
            except OSError as error:
                self._broken = error
                return
            if sent == len(data):
                return
            self._loop.add_writer(self._link.fileno(), self._flush)
        self._unsent += memoryview(data)[sent:]

    @property
    def blocked(self) -> bool:
        """True while the kernel takes no more, or for good."""
        return bool(self._unsent) or self._broken is not None

    async def write(self, data: bytes = b"") -> None:
        """Send it after what was put before, and return once the kernel has all. Raises OSError."""
        if data:
            self.put(data)
        if self._unsent:
            sent = self._loop.create_future()
            self._writers.append(sent)
            await sent
        if self._broken:
            raise self._broken

    def _flush(self) -> None:
        try:
            del self._unsent[: self._link.send(self._unsent)]
        except _NOT_NOW:
            return
        except OSError as error:
            self._broken = error
            self._unsent.clear()
        if not self._unsent:
            self._loop.remove_writer(self._link.fileno())
            for one in self._writers:
                _resolve(one)
            self._writers.clear()

    def end(self) -> None:
        """Tell the other side that nothing more comes. Raises OSError."""
        self._link.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Nothing is read or sent any more; a second time it does nothing."""
        if (number := self._link.fileno()) < 0:
            return
        self._loop.remove_reader(number)
        self._loop.remove_writer(number)
        self._link.close()
        self._broken = self._broken or BrokenPipeError(errno.EPIPE, "closed")
        self._unsent.clear()
        for one in self._writers:
            _resolve(one)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


ServesLink = Callable[[SocketLink], Coroutine[Any, Any, None]]


class Listening:
    """Accepts connections of a socket that listens, and serves each in a task of its own, until it is closed; those
    under way go on. served: their tasks, each with its link."""

    def __init__(self, listener: socket.socket, serve: ServesLink) -> None:
        listener.setblocking(False)
        self._listener, self._serve, self._loop = listener, serve, asyncio.get_running_loop()
        self.served: dict[asyncio.Task[None], SocketLink] = {}
        self._watch()

    async def __aenter__(self) -> "Listening":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def _watch(self) -> None:
        if self._listener.fileno() >= 0:
            self._loop.add_reader(self._listener.fileno(), self._accept)

    def _accept(self) -> None:
        """Accept one: the next one has its turn after what is under way."""
        try:
            link, _ = self._listener.accept()
        except (*_NOT_NOW, ConnectionAbortedError):
            return
        except OSError as error:  # no descriptor or memory is free: those who come wait in the kernel
            sys.stderr.write(f"no connection can be accepted, which is tried again: {error}\n")
            self._loop.remove_reader(self._listener.fileno())
            self._loop.call_later(_ACCEPT_AGAIN, self._watch)
            return
        made = SocketLink(link)
        task = self._loop.create_task(self._serve(made))
        self.served[task] = made
        task.add_done_callback(self._over)

    def _over(self, task: asyncio.Task[None]) -> None:
        """Close the link also of a task that was cancelled before it began."""
        self.served.pop(task).close()

    def close(self) -> None:
        if self._listener.fileno() >= 0:
            self._loop.remove_reader(self._listener.fileno())
            self._listener.close()
