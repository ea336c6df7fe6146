"""Requests carried from Caddy to the engine that their model names, and answers back: bytes, unread.

One connection is one request on both sides. A body is read only until its model is known; what came before that waits
in memory, and beyond a mebibyte in a file without a name. The answer is the engine's own bytes until it closes.
"""

import asyncio
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import h11

from sparkwright.domain.units import MIB
from sparkwright.gateway.decide import NO_SUCH_PATH, Answer, invalid
from sparkwright.gateway.model_scan import scan_for

PIECE = 64 * 1024
HEAD_LIMIT = 128 * 1024
_IN_MEMORY = MIB
_CONNECT, _LINGER = 3.0, 5.0
_END = b"\r\n\r\n"
Kept: TypeAlias = "tempfile.SpooledTemporaryFile[bytes]"
_BAD = invalid(400, "bad_request", "The request could not be read.")
# Between two neighbours only, or of no meaning for an engine that is asked over a connection of its own
_NOT_PASSED = frozenset({b"connection", b"expect", b"keep-alive", b"authorization", b"x-api-key", b"api-key"})


class Gone(Exception):
    """The client has left."""


class Tap(Protocol):
    """Sees an answer as it flows by, and once how it ended. whole: the engine closed it, and nobody else."""

    def saw(self, chunk: bytes) -> None: ...
    def ended(self, whole: bool) -> None: ...


class Target(Protocol):
    """Where a request goes. key: of the engine, '' for none. begin: a Tap, or why it may not be passed on now."""

    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def key(self) -> str: ...
    def begin(self) -> Tap | Answer: ...
    def broken(self) -> Answer: ...


class Gate(Protocol):
    """Who decides. `first`: before a byte of the body is read; `choose`: with its model, '' where none is named."""

    def first(self, head: "Head") -> Answer | None: ...
    async def choose(self, head: "Head", model: str) -> "Target | Answer": ...


class Head:
    """method, target (path and query) as the client wrote them; headers by their names in small letters."""

    def __init__(self, request: h11.Request) -> None:
        self.method, self.target = request.method.decode("ascii"), request.target.decode("latin-1")
        self.raw = [(name, value) for name, value in request.headers if name not in _NOT_PASSED]
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in request.headers}
        self.upgrade = "upgrade" in self.headers

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    def written(self, key: str) -> bytes:
        """For the engine."""
        more = [(b"authorization", f"Bearer {key}".encode("latin-1", "replace"))] if key else []
        more.append((b"connection", b"upgrade" if self.upgrade else b"close"))
        lines = [f"{self.method} {self.target} HTTP/1.1".encode("latin-1")]
        lines += [name + b": " + value for name, value in (*self.raw, *more)]
        return b"\r\n".join(lines) + _END


class Client:
    """Caddy's side of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_LIMIT)
        self.read_all = False

    async def head(self) -> Head | None:
        """None where nobody asks anything."""
        event = await self._event()
        return Head(event) if isinstance(event, h11.Request) else None

    async def body(self) -> bytes:
        """The next piece of the body, b'' at its end. Raises Gone."""
        while not self.read_all:
            event = await self._event()
            if isinstance(event, h11.Data):
                return bytes(event.data)
            self.read_all = isinstance(event, h11.EndOfMessage)
            if event is None or isinstance(event, h11.ConnectionClosed):
                raise Gone
        return b""

    async def _event(self) -> h11.Event | None:
        while True:
            event = self._http.next_event()
            if event is h11.PAUSED:
                return None
            if event is not h11.NEED_DATA:
                return event  # type: ignore[return-value]
            data = await self._reader.read(PIECE)
            if not data and self._http.their_state is h11.IDLE:
                return None
            self._http.receive_data(data)

    async def later(self) -> bytes:
        """What comes after the request: of a websocket. Raises Gone."""
        rest, _ = self._http.trailing_data
        data = rest or await self._reader.read(PIECE)
        if not data:
            raise Gone
        return data

    async def answer(self, answer: Answer) -> None:
        await self._write(f"{answer.status} {answer.kind}", answer.headers, answer.body.encode())

    async def show(self, page: "Page | None") -> None:
        if page is None:
            await self.answer(NO_SUCH_PATH)
        else:
            await self._write("200 OK", {"Content-Type": page.kind}, page.content())

    async def _write(self, status: str, headers: Mapping[str, str], body: bytes) -> None:
        shown = {**headers, "Content-Length": str(len(body)), "Connection": "close"}
        lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in shown.items())]
        self.writer.write("\r\n".join(lines).encode("latin-1", "replace") + _END + body)
        await self.writer.drain()

    async def close(self) -> None:
        """A body that is still on its way is read and dropped for a while: else the answer before it could be lost."""
        with suppress(Gone, OSError, TimeoutError, h11.ProtocolError):
            async with asyncio.timeout(_LINGER):
                if self.writer.can_write_eof():
                    self.writer.write_eof()
                while not self.read_all:
                    await self.body()
        self.writer.close()


@dataclass(frozen=True, slots=True)
class Page:
    """What this process shows of itself."""

    kind: str
    content: Callable[[], bytes]


class Passing:
    """Serves one connection after the other. pages: by path. gate: None where there are only those."""

    def __init__(self, pages: Mapping[str, Page], gate: Gate | None = None) -> None:
        self._pages, self._gate = pages, gate

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = Client(reader, writer)
        try:
            await self._serve(client)
            await client.close()
        except (Gone, OSError):
            pass
        except h11.ProtocolError:
            with suppress(OSError):
                await client.answer(_BAD)
        finally:
            writer.close()

    async def _serve(self, client: Client) -> None:
        head = await client.head()
        if head is None:
            return
        if self._gate is None or head.path in self._pages:
            await client.show(self._pages.get(head.path))
            return
        with tempfile.SpooledTemporaryFile(_IN_MEMORY, dir=".") as kept:
            answer = self._gate.first(head) or await _asked(self._gate, client, head, kept)
        if answer:
            await client.answer(answer)


async def _asked(gate: Gate, client: Client, head: Head, kept: Kept) -> Answer | None:
    """What the client is to get in place of an engine's answer; None where it got one. Raises Gone, OSError."""
    target = await _chosen(gate, client, head, kept)
    if isinstance(target, Answer):
        return target
    tap = target.begin()
    return tap if isinstance(tap, Answer) else await _passed(client, head, kept, target, tap)


async def _chosen(gate: Gate, client: Client, head: Head, kept: Kept) -> Target | Answer:
    scan = scan_for(head.headers.get("content-type", ""))
    while not scan.done and (piece := await client.body()):
        kept.write(piece)
        scan.feed(piece)
    choosing = asyncio.ensure_future(gate.choose(head, scan.name))
    await asyncio.sleep(0)
    if not choosing.done():
        await _while_waiting(choosing, client, kept)
    return choosing.result()


async def _while_waiting(choosing: "asyncio.Future[Target | Answer]", client: Client, kept: Kept) -> None:
    """The rest of the body is taken in meanwhile: only then is it seen that a client leaves. Raises Gone."""

    async def absorbing() -> None:
        while piece := await client.body():
            kept.write(piece)
        await client.later()

    absorb = asyncio.ensure_future(absorbing())
    either: list[asyncio.Future[Any]] = [choosing, absorb]
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not choosing.done():
            absorb.result()
            raise Gone
    finally:
        for task in (absorb, choosing):
            task.cancel()
        with suppress(asyncio.CancelledError, Gone, OSError, h11.ProtocolError):
            await absorb


async def _passed(client: Client, head: Head, kept: Kept, target: Target, tap: Tap) -> Answer | None:
    """What the client is to get in place of an answer; None where it got one. Raises Gone, OSError."""
    whole, writer = False, None
    try:
        try:
            async with asyncio.timeout(_CONNECT):
                reader, writer = await asyncio.open_connection(target.host, target.port, limit=HEAD_LIMIT)
        except (OSError, TimeoutError):
            return target.broken()
        writer.write(head.written(target.key))
        sending = asyncio.ensure_future(_send(client, head, kept, writer))
        answering = asyncio.ensure_future(_answer(reader, client, tap))
        try:
            await asyncio.wait({sending, answering}, return_when=asyncio.FIRST_COMPLETED)
            if not answering.done() and isinstance(sending.exception(), Gone):
                raise Gone
            whole = await answering
        finally:
            for task in (sending, answering):
                task.cancel()
            await asyncio.gather(sending, answering, return_exceptions=True)
        return None if whole else target.broken()
    finally:
        tap.ended(whole)
        if writer:
            writer.transport.abort()


async def _send(client: Client, head: Head, kept: Kept, writer: asyncio.StreamWriter) -> None:
    """The body, then what a websocket sends. Ends with Gone only, or OSError of an engine that reads no further."""
    chunked = "transfer-encoding" in head.headers
    kept.seek(0)
    while piece := kept.read(PIECE) or await client.body():
        writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
        await writer.drain()
    if chunked:
        writer.write(b"0\r\n\r\n")
    while True:
        data = await client.later()
        if head.upgrade:
            writer.write(data)
            await writer.drain()


async def _answer(reader: asyncio.StreamReader, client: Client, tap: Tap) -> bool:
    """False where the engine closes before its answer's head is whole. Raises OSError where either side breaks off."""
    try:
        chunk = await reader.readuntil(_END)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
        return False
    while chunk:
        tap.saw(chunk)
        client.writer.write(chunk)
        await client.writer.drain()
        chunk = await reader.read(PIECE)
    return True
