"""Requests carried from Caddy to the engine that their model names, and answers back.

One connection is one request on both sides. A body is read only until its model is known; what came before that waits
in a spool. h11 reads and writes both sides.
"""

import asyncio
import socket
import sys
import traceback
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from ipaddress import ip_address
from typing import Any, Protocol

import h11

from sparkwright.gateway.decide import GATEWAY_FAULT, GatewayAnswer, invalid, too_large
from sparkwright.gateway.model_scan import scan_for
from sparkwright.gateway.replicas import MOST_BODY, PromptBlocks, prompt_of
from sparkwright.gateway.usage import Body, streams
from sparkwright.supervisor.proxy.connection import (
    PIECE,
    Gone,
    OwnPage,
    ProxyConnection,
    RequestHead,
    TooLarge,
    TooSlow,
)
from sparkwright.supervisor.proxy.engine_answer import EngineAnswer, MalformedAnswer
from sparkwright.supervisor.proxy.spool import IN_MEMORY, HeldBody, Spool, SpoolFull

_CONNECT, _CONNECT_REPLICA = 3.0, 0.8
_LOOK = 0.2
# Seconds after which a replica's node that answers no packet is lost, while its answer has not begun
_ALIVE = ((socket.TCP_KEEPIDLE, 1), (socket.TCP_KEEPINTVL, 1), (socket.TCP_KEEPCNT, 3))
_KEEP_ALIVE = 10.0
# Seconds between a body's last byte and the first of its answer. Caddy sends that byte before it looks for the end of
# the body; an answer meanwhile closes the body, and that its connection to us: one answer of a thousand was cut.
_SETTLES = 0.005
_TURN = 4
_LONGEST_ERROR, _SHOWN = 64 * 1024, 1000
_BAD = invalid(400, "bad_request", "The request could not be read.")
_TOO_SLOW = invalid(408, "request_timeout", "The request's body did not come within its time.")
_LEFT = (Gone, TooLarge, TooSlow, SpoolFull)


class Tap(Protocol):
    """Sees an answer as it flows by and returns what of it goes on: its head, then pieces of the body, then how it

    ended. over: it has made the end itself, and the engine is left.

    whole: its end has come. reads: it wants all of the request's body first, and may insert something behind
    its first byte.
    """

    @property
    def reads(self) -> bool: ...
    def insertion(self, body: Body) -> bytes: ...
    def answers(self, answer: EngineAnswer) -> None: ...
    def saw(self, piece: bytes) -> bytes: ...
    @property
    def over(self) -> bool: ...
    def rest(self) -> bytes: ...
    def ended(self, whole: bool) -> None: ...


class EngineTarget(Protocol):
    """The destination of a request. key: of the engine, '' for none. limit: bytes of the body. websocket: it may become
    one.

    begin: a Tap, or why it may not be passed on now.

    replicated: other engines stand in for this one. again: it goes to one of those, since this one gave nothing;
    False if none is left. declines: another one is asked in place of this status. lost: no answer will come any more.
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
    @property
    def replicated(self) -> bool: ...
    @property
    def lost(self) -> bool: ...
    def begin(self) -> Tap | GatewayAnswer: ...
    def declines(self, status: int) -> bool: ...
    def again(self, reached: bool) -> bool: ...
    def broken(self) -> GatewayAnswer: ...


class AdmittedRequest(Protocol):
    """One request that was let in; it counts for its key until it leaves."""

    def leave(self) -> None: ...


class RequestGate(Protocol):
    """The decisions on a request. `first`: before a byte of the body is read; `choose`: with its model, '' if none is
    named; an OwnPage is this process's own.

    limit: bytes of any body. wants: how many of them `choose` needs to see, for the beginning of its prompt.
    """

    @property
    def limit(self) -> int: ...
    def first(self, head: RequestHead) -> AdmittedRequest | GatewayAnswer: ...
    def wants(self, head: RequestHead, model: str) -> int: ...
    async def choose(
        self, head: RequestHead, model: str, entry: Any, prompt: PromptBlocks
    ) -> EngineTarget | OwnPage | GatewayAnswer: ...


class Passing:
    """Serves one connection after the other. pages: by path. gate: None where there are only those."""

    def __init__(
        self, pages: Mapping[str, OwnPage], gate: RequestGate | None = None, spool: Spool | None = None
    ) -> None:
        self._pages, self._gate, self._spool = pages, gate, spool or Spool()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = ProxyConnection(reader, writer)
        try:
            if answer := await self._answered(client):
                await client.answer(answer)
            await client.close()
        except (Gone, TooSlow, OSError, h11.ProtocolError):  # it is cut, so that it does not look whole
            pass
        finally:
            writer.close()

    async def _answered(self, client: ProxyConnection) -> GatewayAnswer | None:
        """The error answer for the client; None if it got its answer. An error of ours never ends without one."""
        try:
            return await self._serve(client)
        except TooLarge as error:
            return too_large(error.limit)
        except SpoolFull as error:
            return error.answer
        except TooSlow:
            return _TOO_SLOW
        except (Gone, OSError):
            raise
        except h11.RemoteProtocolError:
            return _BAD
        except Exception:
            sys.stderr.write(f"a request failed in the gateway itself:\n{traceback.format_exc()}")
            return GATEWAY_FAULT

    async def _serve(self, client: ProxyConnection) -> GatewayAnswer | None:
        head = await client.head()
        if head is None:
            return None
        if self._gate is None or head.path in self._pages:
            await client.show(self._pages.get(head.path))
            return None
        client.limit = self._gate.limit
        entry = self._gate.first(head)
        if isinstance(entry, GatewayAnswer):
            return entry
        try:
            with self._spool.body() as kept:
                return await _asked(self._gate, client, head, kept, entry)
        finally:
            entry.leave()


async def _asked(
    gate: RequestGate, client: ProxyConnection, head: RequestHead, kept: HeldBody, entry: AdmittedRequest
) -> GatewayAnswer | None:
    """The answer for the client in place of an engine's; None if it got one. Raises Gone, OSError."""
    target = await _chosen(gate, client, head, kept, entry)
    if isinstance(target, GatewayAnswer):
        return target
    if isinstance(target, OwnPage):
        await client.show(target)
        return None
    client.limit, head.upgrade = target.limit, target.websocket and "upgrade" in head.headers
    tap = target.begin()
    return tap if isinstance(tap, GatewayAnswer) else await _passed(client, head, kept, target, tap)


async def _chosen(
    gate: RequestGate, client: ProxyConnection, head: RequestHead, kept: HeldBody, entry: AdmittedRequest
) -> EngineTarget | OwnPage | GatewayAnswer:
    scan = scan_for(head.headers.get("content-type", ""))
    while not scan.done and (piece := await client.body()):
        await kept.write(piece)
        scan.feed(piece)
    prompt, wanted = PromptBlocks(), gate.wants(head, scan.name)
    while kept.size < wanted and (piece := await client.body()):
        await kept.write(piece)
    if wanted:
        prompt = kept.examine(lambda body: prompt_of(body[: MOST_BODY + 1]))
    choosing = asyncio.ensure_future(gate.choose(head, scan.name, entry, prompt))
    await asyncio.sleep(0)
    if not choosing.done():
        await _while_waiting(choosing, client, kept)
    return choosing.result()


async def _while_waiting(
    choosing: "asyncio.Future[EngineTarget | OwnPage | GatewayAnswer]", client: ProxyConnection, kept: HeldBody
) -> None:
    """The rest of the body is taken in meanwhile: only then is it seen that a client leaves. Raises Gone."""

    async def absorbing() -> None:
        while piece := await client.body():
            await kept.write(piece)
        await client.later()

    async def keeping() -> None:
        while True:
            await asyncio.sleep(_KEEP_ALIVE)
            if client.opened or (client.read_all and kept.size <= IN_MEMORY and kept.examine(streams)):
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
            with suppress(asyncio.CancelledError, *_LEFT, OSError, h11.ProtocolError):
                await task


async def _passed(
    client: ProxyConnection, head: RequestHead, kept: HeldBody, target: EngineTarget, tap: Tap
) -> GatewayAnswer | None:
    """The answer for the client in place of the engine's; None if it got one. Raises Gone, OSError.

    Another replica is asked as long as no byte of an answer was passed on.
    """
    answer = EngineAnswer(head.method)
    try:
        again = target.replicated and not head.upgrade
        inserted = await _inserted(client, kept, tap) if tap.reads or again else b""
        while True:
            try:
                engine, reached = await _connected(target), True
            except (OSError, TimeoutError):
                reached = False
            else:
                sending = _send(client, head.for_engine(target.key, len(inserted)), kept, engine, inserted)
                if await _exchanged(engine, sending, _answer(engine, client, target, tap, answer)):
                    return None
            if not target.again(reached):
                return target.broken()
            answer = EngineAnswer(head.method)
    finally:
        tap.ended(answer.complete or answer.switched)


async def _exchanged(engine: socket.socket, send: Coroutine[Any, Any, None], answer: Coroutine[Any, Any, bool]) -> bool:
    """Send and receive at once. False if the engine gave nothing. Raises Gone, OSError."""
    sending, answering = asyncio.ensure_future(send), asyncio.ensure_future(answer)
    try:
        await asyncio.wait({sending, answering}, return_when=asyncio.FIRST_COMPLETED)
        if not answering.done() and (error := sending.exception()) and not isinstance(error, OSError):
            raise error
        return await answering
    finally:
        for task in (sending, answering):
            task.cancel()
        try:
            await asyncio.gather(sending, answering, return_exceptions=True)
        finally:  # also where this is cancelled meanwhile
            engine.close()


async def _connected(target: EngineTarget) -> socket.socket:
    """A plain socket: what the engine had sent before it broke off can still be read. Raises OSError, TimeoutError."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(_CONNECT_REPLICA if target.replicated else _CONNECT):
        engine = socket.socket(await _family(target.host), socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            engine.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if target.replicated:
                _keep_alive(engine, True)
            await loop.sock_connect(engine, (target.host, target.port))
        except BaseException:
            engine.close()
            raise
    return engine


def _keep_alive(engine: socket.socket, on: bool) -> None:
    for option, value in _ALIVE:
        engine.setsockopt(socket.IPPROTO_TCP, option, value)
    engine.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, on)


async def _family(host: str) -> int:
    try:
        return socket.AF_INET6 if ip_address(host).version == 6 else socket.AF_INET
    except ValueError:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
        return int(found[0][0])


async def _inserted(client: ProxyConnection, kept: HeldBody, tap: Tap) -> bytes:
    """The tap's addition once the whole body is here: without it no engine begins. Raises Gone, TooLarge."""
    while piece := await client.body():
        await kept.write(piece)
    return kept.examine(tap.insertion) if tap.reads else b""


async def _send(
    client: ProxyConnection, request: h11.Request, kept: HeldBody, engine: socket.socket, inserted: bytes
) -> None:
    """The request, then what a websocket sends. Ends with Gone, TooLarge, or OSError where the engine reads no further.

    inserted: what follows the first byte of the body.
    """
    loop, http = asyncio.get_running_loop(), h11.Connection(h11.CLIENT)
    begin = http.send(request) or b""
    kept.rewind()
    first = await kept.read(1) + inserted if inserted else b""
    while piece := first or await kept.read(PIECE) or await client.body():
        first = b""
        await loop.sock_sendall(engine, begin + (http.send(h11.Data(data=piece)) or b""))
        begin = b""
    if last := begin + (http.send(h11.EndOfMessage()) or b""):
        await loop.sock_sendall(engine, last)
    while True:
        data = await client.later()
        if (b"connection", b"upgrade") in request.headers:
            await loop.sock_sendall(engine, data)


class _Arriving:
    """The bytes from an engine. A read that finds data at once gives nobody else a turn, so every few do."""

    def __init__(self, engine: socket.socket) -> None:
        self._engine, self._reads = engine, 0

    async def read(self) -> bytes:
        """The next bytes, b'' at the end. Raises OSError."""
        self._reads += 1
        if self._reads % _TURN == 0:
            await asyncio.sleep(0)
        return await asyncio.get_running_loop().sock_recv(self._engine, PIECE)


async def _answer(
    engine: socket.socket, client: ProxyConnection, target: EngineTarget, tap: Tap, answer: EngineAnswer
) -> bool:
    """False where the engine gives none. Raises OSError where either side breaks off in the middle of it."""
    arriving = _Arriving(engine)
    try:
        body = await _beginning(arriving, target, tap, answer)
        if body is None:
            return False
        if target.replicated:
            _keep_alive(engine, False)
        passing = await _begun(client, answer)
    except OSError:
        if client.begun and not target.replicated:
            raise
        return False
    if passing is None:
        await _switched(arriving, client, answer, body)
        return True
    while True:
        await passing.more(tap.saw(body) if body else b"")
        if tap.over:
            await passing.end()
            return True
        if answer.complete:
            break
        body = answer.feed(await arriving.read())
    await passing.more(tap.rest())
    await passing.end()
    return True


async def _beginning(arriving: _Arriving, target: EngineTarget, tap: Tap, answer: EngineAnswer) -> bytes | None:
    """The first bytes of the answer's body; None for a status in place of which another replica is asked."""
    body = b""
    while not answer.status:
        body = answer.feed(await _first(arriving, target))
    if target.declines(answer.status):
        return None
    tap.answers(answer)
    # A replica's head alone is no answer: another one may give that
    while target.replicated and answer.status != 101 and not body and not answer.complete:
        body = answer.feed(await _first(arriving, target))
    return body


async def _first(arriving: _Arriving, target: EngineTarget) -> bytes:
    """The next bytes before an answer begins. Raises OSError, also once a replica is lost."""
    if not target.replicated:
        return await arriving.read()
    reading = asyncio.ensure_future(arriving.read())
    try:
        while not (await asyncio.wait({reading}, timeout=_LOOK))[0]:
            if target.lost:
                raise ConnectionAbortedError("the replica is lost")
        return reading.result()
    finally:
        reading.cancel()


async def _switched(arriving: _Arriving, client: ProxyConnection, answer: EngineAnswer, data: bytes) -> None:
    """A websocket: what the engine sends, unread, until it closes."""
    await client.switch(answer.reason, answer.passed_headers)
    while data or (data := await arriving.read()):
        await client.send_raw(data)
        data = b""


class _Passed:
    """The engine's answer as the client's own."""

    def __init__(self, client: ProxyConnection) -> None:
        self._client = client

    async def more(self, piece: bytes) -> None:
        if piece:
            await self._client.send(piece)
        else:
            await self._client.flush()

    async def end(self) -> None:
        await self._client.finish()


class _Refusal:
    """The engine's refusal of a stream that has begun: it becomes the stream's last event."""

    def __init__(self, client: ProxyConnection, status: int) -> None:
        self._client, self._status, self._said = client, status, b""

    async def more(self, piece: bytes) -> None:
        self._said = (self._said + piece)[:_LONGEST_ERROR]

    async def end(self) -> None:
        said = self._said.decode("utf-8", "replace")[:_SHOWN]
        text = f"The engine answered {self._status}: {said}"
        await self._client.answer(GatewayAnswer(self._status, "engine_error", "engine_error", text))


async def _begun(client: ProxyConnection, answer: EngineAnswer) -> _Passed | _Refusal | None:
    """Write the head, not before Caddy can have seen the end of the body; None for a change to a websocket. Raises
    MalformedAnswer."""
    if client.opened:
        return _Passed(client) if answer.status == 200 else _Refusal(client, answer.status)
    if answer.switched:
        return None
    if answer.status == 101:
        raise MalformedAnswer("the engine changed to another protocol without naming it")
    await asyncio.sleep(client.read_at + _SETTLES - asyncio.get_running_loop().time())
    try:
        client.begin(answer.status, answer.reason, answer.passed_headers)
    except h11.LocalProtocolError as error:
        raise MalformedAnswer(f"the engine's answer has a head that is none: {error}") from error
    return _Passed(client)
