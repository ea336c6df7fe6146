"""Requests carried from Caddy to the engine that their model names, and answers back.

One connection is one request on both sides. A body is read only until its model is known; what came before that waits
in a spool. h11 reads both sides.
"""

import asyncio
import errno
import socket
import sys
import traceback
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from functools import lru_cache
from inspect import isawaitable
from ipaddress import ip_address
from typing import Any, Protocol

import h11

from sparkwright.gateway.decide import GATEWAY_FAULT, GatewayAnswer, invalid, too_large
from sparkwright.gateway.model_scan import scan_for
from sparkwright.gateway.replicas import MOST_BODY, PromptBlocks, prompt_of
from sparkwright.gateway.usage import Body, streams
from sparkwright.supervisor.proxy.connection import (
    Gone,
    OwnPage,
    ProxyConnection,
    RequestHead,
    TooLarge,
    TooSlow,
)
from sparkwright.supervisor.proxy.engine_answer import EngineAnswer, MalformedAnswer
from sparkwright.supervisor.proxy.framing import BodyFraming
from sparkwright.supervisor.proxy.links import PIECE, SocketLink
from sparkwright.supervisor.proxy.spool import IN_MEMORY, HeldBody, Spool, SpoolFull

_CONNECT, _CONNECT_REPLICA = 3.0, 0.8
_LOOK = 0.2
_KEEP_ALIVE = 10.0
# Seconds between a body's last byte and the first of its answer. Caddy sends that byte before it looks for the end of
# the body; an answer meanwhile closes the body, and that its connection to us: one answer of a thousand was cut.
_SETTLES = 0.005
_LONGEST_ERROR, _SHOWN = 64 * 1024, 1000
_BAD = invalid(400, "bad_request", "The request could not be read.")
_TOO_SLOW = invalid(408, "request_timeout", "The request's body did not come within its time.")
_LEFT = (Gone, TooLarge, TooSlow, SpoolFull)


class Tap(Protocol):
    """Sees an answer as it flows by and returns what of it goes on: its head, then pieces of the body, then how it

    ended. over: it has made the end itself, and the engine is left.

    whole: its end has come. reads: it wants all of the request's body first, and may insert something behind
    its first byte. sent: an engine has the request, or as much of it as it took at once.
    """

    @property
    def reads(self) -> bool: ...
    def insertion(self, body: Body) -> bytes: ...
    def sent(self) -> None: ...
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

    replicated: other engines stand in for this one. again: it goes to one of those, since this one gave nothing, or was
    not reached (why); False if none is left. declines: another one is asked in place of this status. lost: no answer
    will come any more.
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
    def again(self, reached: bool, why: str) -> bool: ...
    def broken(self) -> GatewayAnswer: ...


class AdmittedRequest(Protocol):
    """One request that was let in; it counts for its key until it leaves."""

    def leave(self) -> None: ...


class RequestGate(Protocol):
    """The decisions on a request. `first`: before a byte of the body is read; `choice`: with its model, '' if none is
    named, awaited where it cannot be made at once; an OwnPage is this process's own.

    limit: bytes of any body. wants: how many of them `choice` needs to see, for the beginning of its prompt.
    """

    @property
    def limit(self) -> int: ...
    def first(self, head: RequestHead) -> AdmittedRequest | GatewayAnswer: ...
    def wants(self, head: RequestHead, model: str) -> int: ...
    def choice(
        self, head: RequestHead, model: str, entry: Any, prompt: PromptBlocks
    ) -> EngineTarget | OwnPage | GatewayAnswer | Awaitable[EngineTarget | OwnPage | GatewayAnswer]: ...


class Passing:
    """Serves one connection after the other. pages: by path. gate: None where there are only those."""

    def __init__(
        self, pages: Mapping[str, OwnPage], gate: RequestGate | None = None, spool: Spool | None = None
    ) -> None:
        self._pages, self._gate, self._spool = pages, gate, spool or Spool()

    async def __call__(self, link: SocketLink) -> None:
        client = ProxyConnection(link)
        try:
            if answer := await self._answered(client):
                await client.answer(answer)
            await client.close()
        except (Gone, TooSlow, OSError, h11.ProtocolError):  # it is cut, so that it does not look whole
            pass
        finally:
            link.close()

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
    choice = gate.choice(head, scan.name, entry, prompt)
    if not isawaitable(choice):
        return choice
    choosing = asyncio.ensure_future(choice)
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
    answer = EngineAnswer(head.method, head.upgrade)
    try:
        again = target.replicated and not head.upgrade
        inserted, why = await _inserted(client, kept, tap) if tap.reads or again else b"", ""
        while True:
            outgoing = _Outgoing(client, head, target.key, kept, inserted)
            try:
                engine, reached = await _connected(target), True
            except OSError as error:
                reached, why = False, _reason(error)
            else:
                if await _exchanged(engine, outgoing, target, tap, answer):
                    return None
            if not target.again(reached, why):
                return target.broken()
            answer = EngineAnswer(head.method, head.upgrade)
    finally:
        tap.ended(answer.complete or answer.switched)


def _reason(error: OSError) -> str:
    """The reason why a connection to the engine could not be made."""
    if error.errno == errno.EADDRNOTAVAIL:
        return "no local port is free on the head, see `ss -s`"
    return error.strerror or type(error).__name__


async def _exchanged(
    engine: SocketLink, outgoing: "_Outgoing", target: EngineTarget, tap: Tap, answer: EngineAnswer
) -> bool:
    """Send and receive at once. False if the engine gave nothing. Raises Gone, OSError.

    What can wait is done once the engine has a request of usual size.
    """
    tasks: list[asyncio.Task[Any]] = []
    try:
        outgoing.begin(engine)
        tap.sent()
        answer.expect()
        sending = asyncio.create_task(outgoing.follow(engine))
        answering = asyncio.create_task(_answer(engine, outgoing.client, target, tap, answer))
        tasks = [sending, answering]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not answering.done() and (error := sending.exception()) and not isinstance(error, OSError):
            raise error
        return await answering
    finally:
        for task in tasks:
            task.cancel()
        engine.close()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _connected(target: EngineTarget) -> SocketLink:
    """A link to the engine. Raises OSError, also after a time."""
    within = _CONNECT_REPLICA if target.replicated else _CONNECT
    family, address = await _address(target.host, target.port, within)
    engine = SocketLink(socket.socket(family, socket.SOCK_STREAM))
    try:
        if target.replicated:
            engine.keep_alive(True)
        await engine.connect(address, within)
    except BaseException:
        engine.close()
        raise
    return engine


async def _address(host: str, port: int, within: float) -> tuple[int, tuple[Any, ...]]:
    if family := _family_of(host):
        return family, (host, port)
    async with asyncio.timeout(within):
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return int(found[0][0]), found[0][4]


@lru_cache(1024)
def _family_of(host: str) -> int:
    """The family of an address of numbers, 0 for a name."""
    try:
        return socket.AF_INET6 if ip_address(host).version == 6 else socket.AF_INET
    except ValueError:
        return 0


async def _inserted(client: ProxyConnection, kept: HeldBody, tap: Tap) -> bytes:
    """The tap's addition once the whole body is here: without it no engine begins. Raises Gone, TooLarge."""
    while piece := await client.body():
        await kept.write(piece)
    return kept.examine(tap.insertion) if tap.reads else b""


class _Outgoing:
    """A request for an engine. inserted: what follows the first byte of the body."""

    def __init__(self, client: ProxyConnection, head: RequestHead, key: str, kept: HeldBody, inserted: bytes) -> None:
        self.client, self._kept, self._inserted = client, kept, inserted
        self._upgrades = head.upgrade
        self._framing = BodyFraming(None, head.chunked)
        self._begin = head.for_engine(key, len(inserted))

    def begin(self, engine: SocketLink) -> None:
        """Send the whole of it at once, if all of its body is here and small."""
        if self.client.read_all and self._kept.size <= PIECE:
            body = self._kept.examine(lambda held: held[: len(held)])
            body = body[:1] + self._inserted + body[1:]
            data = self._begin + self._framing.piece(body) + self._framing.end()
            self._begin, self._inserted = b"", b""
            engine.put(data)

    async def follow(self, engine: SocketLink) -> None:
        """The rest of it, then what a websocket sends. Ends with Gone, TooLarge, or OSError where the engine reads no
        further."""
        if self._begin:
            await self._pieces(engine)
        await engine.write()
        while True:
            data = await self.client.later()
            if self._upgrades:
                await engine.write(data)

    async def _pieces(self, engine: SocketLink) -> None:
        kept, framing, begin = self._kept, self._framing, self._begin
        kept.rewind()
        first = await kept.read(1) + self._inserted if self._inserted else b""
        while piece := first or await kept.read(PIECE) or await self.client.body():
            first = b""
            await engine.write(begin + framing.piece(piece))
            begin = b""
        await engine.write(begin + framing.end())


async def _answer(
    engine: SocketLink, client: ProxyConnection, target: EngineTarget, tap: Tap, answer: EngineAnswer
) -> bool:
    """False where the engine gives none. Raises OSError where either side breaks off in the middle of it."""
    try:
        body = await _beginning(engine, target, tap, answer)
        if body is None:
            return False
        if target.replicated:
            engine.keep_alive(False)
        passing = await _begun(client, answer)
    except OSError:
        if client.begun and not target.replicated:
            raise
        return False
    if passing is None:
        await _switched(engine, client, answer, body)
        return True

    def pass_on(data: bytes) -> bool:
        """Pass a piece in the turn in which it comes; False if the task has to wait for the client or end."""
        piece = answer.feed(data)
        passing.put(tap.saw(piece) if piece else b"")
        return not (client.link.blocked or answer.complete or tap.over)

    passing.put(tap.saw(body) if body else b"")
    await client.link.write()
    while not answer.complete and not tap.over:
        await engine.read_each(pass_on)
        await client.link.write()
    if not tap.over:
        passing.put(tap.rest())
    await passing.finish()
    return True


async def _beginning(engine: SocketLink, target: EngineTarget, tap: Tap, answer: EngineAnswer) -> bytes | None:
    """The first bytes of the answer's body; None for a status in place of which another replica is asked."""
    body = b""
    while not answer.status:
        body = answer.feed(await _first(engine, target))
    if target.declines(answer.status):
        return None
    tap.answers(answer)
    # A replica's head alone is no answer: another one may give that
    while target.replicated and answer.status != 101 and not body and not answer.complete:
        body = answer.feed(await _first(engine, target))
    return body


async def _first(engine: SocketLink, target: EngineTarget) -> bytes:
    """The next bytes before an answer begins. Raises OSError, also once a replica is lost."""
    if not target.replicated:
        return await engine.read()
    while True:
        try:
            async with asyncio.timeout(_LOOK) as look:
                return await engine.read()
        except TimeoutError:
            if not look.expired():
                raise
        if target.lost:
            raise ConnectionAbortedError("the replica is lost")


async def _switched(engine: SocketLink, client: ProxyConnection, answer: EngineAnswer, data: bytes) -> None:
    """A websocket: what the engine sends, unread, until it closes."""
    await client.switch(answer.reason, answer.passed_headers)
    while data or (data := await engine.read()):
        await client.send_raw(data)
        data = b""


class _Refusal:
    """The engine's refusal of a stream that has begun: it becomes the stream's last event."""

    def __init__(self, client: ProxyConnection, status: int) -> None:
        self._client, self._status, self._said = client, status, b""

    def put(self, piece: bytes) -> None:
        self._said = (self._said + piece)[:_LONGEST_ERROR]

    async def finish(self) -> None:
        said = self._said.decode("utf-8", "replace")[:_SHOWN]
        text = f"The engine answered {self._status}: {said}"
        await self._client.answer(GatewayAnswer(self._status, "engine_error", "engine_error", text))


async def _begun(client: ProxyConnection, answer: EngineAnswer) -> ProxyConnection | _Refusal | None:
    """Write the head, not before Caddy can have seen the end of the body; None for a change to a websocket. Raises
    MalformedAnswer."""
    if client.opened:
        return client if answer.status == 200 else _Refusal(client, answer.status)
    if answer.switched:
        return None
    if answer.status == 101:
        raise MalformedAnswer("the engine changed to another protocol without naming it")
    if (left := client.read_at + _SETTLES - asyncio.get_running_loop().time()) > 0:
        await asyncio.sleep(left)
    try:
        client.begin(answer.status, answer.reason, answer.passed_headers)
    except h11.LocalProtocolError as error:
        raise MalformedAnswer(f"the engine's answer has a head that is none: {error}") from error
    return client
