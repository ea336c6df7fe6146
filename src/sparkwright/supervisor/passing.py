"""Requests carried from Caddy to the engine that their model names, and answers back: bytes, unread.

One connection is one request on both sides. A body is read only until its model is known; what came before that waits
in memory, and beyond a mebibyte in a file without a name. The answer is the engine's own bytes until it closes.
"""

import asyncio
import mmap
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Protocol, TypeAlias

import h11

from sparkwright.domain.units import MIB
from sparkwright.gateway.decide import Answer, invalid, too_large
from sparkwright.gateway.model_scan import scan_for
from sparkwright.gateway.usage import Body, streams
from sparkwright.supervisor.connection import END, HEAD_LIMIT, PIECE, Client, Gone, Head, Page, TooLarge

_IN_MEMORY = MIB
_CONNECT = 3.0
_KEEP_ALIVE = 10.0
# Seconds between a body's last byte and the first of its answer. Caddy sends that byte before it looks for the end of
# the body; an answer meanwhile closes the body, and that its connection to us: one answer of a thousand was cut.
_SETTLES = 0.005
_LONGEST_ERROR, _SHOWN = 64 * 1024, 1000
Kept: TypeAlias = "tempfile.SpooledTemporaryFile[bytes]"
_BAD = invalid(400, "bad_request", "The request could not be read.")


class Tap(Protocol):
    """Sees an answer as it flows by and returns what of it goes on; once how it ended. whole: the engine closed it, and

    nobody else. reads: it wants all of the body first, and may insert something behind its first byte.
    """

    @property
    def reads(self) -> bool: ...
    def insertion(self, body: Body) -> bytes: ...
    def saw(self, chunk: bytes) -> bytes: ...
    def ended(self, whole: bool) -> None: ...


class Target(Protocol):
    """Where a request goes. key: of the engine, '' for none. limit: bytes of the body. websocket: it may become one.

    begin: a Tap, or why it may not be passed on now.
    """

    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def key(self) -> str: ...
    @property
    def limit(self) -> int: ...
    @property
    def websocket(self) -> bool: ...
    def begin(self) -> Tap | Answer: ...
    def broken(self) -> Answer: ...


class Gate(Protocol):
    """Who decides. `first`: before a byte of the body is read; `choose`: with its model, '' where none is named; a Page
    is what this process knows itself.

    limit: bytes of any body.
    """

    @property
    def limit(self) -> int: ...
    def first(self, head: Head) -> Answer | None: ...
    async def choose(self, head: Head, model: str) -> Target | Page | Answer: ...


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
        except TooLarge as error:
            with suppress(OSError):
                await client.answer(too_large(error.limit))
                await client.close()
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
        client.limit = self._gate.limit
        with tempfile.SpooledTemporaryFile(_IN_MEMORY, dir=".") as kept:
            answer = self._gate.first(head) or await _asked(self._gate, client, head, kept)
        if answer:
            await client.answer(answer)


async def _asked(gate: Gate, client: Client, head: Head, kept: Kept) -> Answer | None:
    """What the client is to get in place of an engine's answer; None where it got one. Raises Gone, OSError."""
    target = await _chosen(gate, client, head, kept)
    if isinstance(target, Answer):
        return target
    if isinstance(target, Page):
        await client.show(target)
        return None
    client.limit, head.upgrade = target.limit, target.websocket and "upgrade" in head.headers
    tap = target.begin()
    return tap if isinstance(tap, Answer) else await _passed(client, head, kept, target, tap)


async def _chosen(gate: Gate, client: Client, head: Head, kept: Kept) -> Target | Page | Answer:
    scan = scan_for(head.headers.get("content-type", ""))
    while not scan.done and (piece := await client.body()):
        kept.write(piece)
        scan.feed(piece)
    choosing = asyncio.ensure_future(gate.choose(head, scan.name))
    await asyncio.sleep(0)
    if not choosing.done():
        await _while_waiting(choosing, client, kept)
    return choosing.result()


async def _while_waiting(choosing: "asyncio.Future[Target | Page | Answer]", client: Client, kept: Kept) -> None:
    """The rest of the body is taken in meanwhile: only then is it seen that a client leaves. Raises Gone."""

    async def absorbing() -> None:
        while piece := await client.body():
            kept.write(piece)
        await client.later()

    async def keeping() -> None:
        while True:
            await asyncio.sleep(_KEEP_ALIVE)
            if client.opened or (client.read_all and _asks_for_stream(kept)):
                await client.keep_alive()

    absorb, keep = asyncio.ensure_future(absorbing()), asyncio.ensure_future(keeping())
    either: list[asyncio.Future[Any]] = [choosing, absorb]
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not choosing.done():
            absorb.result()
            raise Gone
    finally:
        for task in (absorb, choosing, keep):
            task.cancel()
        for task in (absorb, keep):
            with suppress(asyncio.CancelledError, Gone, TooLarge, OSError, h11.ProtocolError):
                await task


def _asks_for_stream(kept: Kept) -> bool:
    size = kept.tell()
    kept.seek(0)
    try:
        return size <= _IN_MEMORY and streams(kept.read(size))
    finally:
        kept.seek(size)


async def _passed(client: Client, head: Head, kept: Kept, target: Target, tap: Tap) -> Answer | None:
    """What the client is to get in place of an answer; None where it got one. Raises Gone, OSError."""
    whole, writer = False, None
    try:
        inserted = await _inserted(client, kept, tap) if tap.reads else b""
        try:
            async with asyncio.timeout(_CONNECT):
                reader, writer = await asyncio.open_connection(target.host, target.port, limit=HEAD_LIMIT)
        except (OSError, TimeoutError):
            return target.broken()
        writer.write(head.written(target.key, len(inserted)))
        sending = asyncio.ensure_future(_send(client, head, kept, writer, inserted))
        answering = asyncio.ensure_future(_answer(reader, client, tap))
        try:
            await asyncio.wait({sending, answering}, return_when=asyncio.FIRST_COMPLETED)
            if not answering.done() and isinstance(error := sending.exception(), Gone | TooLarge):
                raise error
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


async def _inserted(client: Client, kept: Kept, tap: Tap) -> bytes:
    """Once all of the body is here: without it no engine begins. Raises Gone, TooLarge."""
    while piece := await client.body():
        kept.write(piece)
    size = kept.tell()
    kept.seek(0)
    if size <= _IN_MEMORY:
        return tap.insertion(kept.read(size))
    with mmap.mmap(kept.fileno(), 0, access=mmap.ACCESS_READ) as body:
        return tap.insertion(body)


async def _send(client: Client, head: Head, kept: Kept, writer: asyncio.StreamWriter, inserted: bytes) -> None:
    """The body, then what a websocket sends. Ends with Gone, TooLarge, or OSError where the engine reads no further.

    inserted: what follows the first byte of the body.
    """
    chunked = "transfer-encoding" in head.headers
    kept.seek(0)
    first = kept.read(1) + inserted if inserted else b""
    while piece := first or kept.read(PIECE) or await client.body():
        first = b""
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
        chunk = await reader.readuntil(END)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
        return False
    if client.opened:
        await _continue(reader, client, tap, chunk)
        return True
    await asyncio.sleep(client.read_at + _SETTLES - asyncio.get_running_loop().time())
    while chunk:
        if passed := tap.saw(chunk):
            client.writer.write(passed)
            await client.writer.drain()
        chunk = await reader.read(PIECE)
    return True


async def _continue(reader: asyncio.StreamReader, client: Client, tap: Tap, chunk: bytes) -> None:
    """The engine's answer within the stream that has begun; another one than a stream becomes its last event.

    Raises OSError where the engine breaks off: the client's stream is cut then, too.
    """
    http, error, body = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_LIMIT), 0, b""
    http.send(h11.Request(method="POST", target="/", headers=[("Host", "engine"), ("Connection", "close")]))
    http.send(h11.EndOfMessage())
    http.receive_data(tap.saw(chunk))
    while not isinstance(event := _event(http), h11.EndOfMessage):
        if event is h11.NEED_DATA:
            raw = await reader.read(PIECE)
            # Nothing to pass on is no end
            if (passed := tap.saw(raw) if raw else b"") or not raw:
                http.receive_data(passed)
        elif isinstance(event, h11.Response):
            error = 0 if event.status_code == 200 else event.status_code
        elif isinstance(event, h11.Data) and error:
            body = (body + event.data)[:_LONGEST_ERROR]
        elif isinstance(event, h11.Data) and event.data:
            await client.send(bytes(event.data))
    if error:
        said = body.decode("utf-8", "replace")[:_SHOWN]
        await client.answer(Answer(error, "engine_error", "engine_error", f"The engine answered {error}: {said}"))
    else:
        await client.send(b"")


def _event(http: h11.Connection) -> Any:
    try:
        return http.next_event()
    except h11.RemoteProtocolError as error:
        raise ConnectionError(str(error)) from error
