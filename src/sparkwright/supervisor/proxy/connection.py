"""Caddy's side of a connection: h11 reads one request, its body in pieces, and answers are written."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from urllib.parse import parse_qs

import h11

from sparkwright.domain.values import dataclass
from sparkwright.gateway.decide import NO_SUCH_PATH, GatewayAnswer
from sparkwright.supervisor.proxy.framing import BodyFraming, write_head
from sparkwright.supervisor.proxy.links import SocketLink

HEAD_LIMIT = 128 * 1024
_LINGER, _FIELDS = 5.0, 100
_HEAD_WITHIN = 30.0
# A body may keep us waiting for so many seconds, and one more for each of so many bytes
BODY_WITHIN, _SLOWEST = 60.0, 16 * 1024
_STREAM = (
    (b"Content-Type", b"text/event-stream"),
    (b"Cache-Control", b"no-store"),
    (b"Access-Control-Allow-Origin", b"*"),
)
_CLOSE, _CHUNKED = (b"Connection", b"close"), (b"Transfer-Encoding", b"chunked")
_BODILESS = frozenset({204, 304})
Headers = Sequence[tuple[bytes, bytes]]
# Between two neighbours only, or of no meaning for an engine that is asked over a connection of its own
_NOT_PASSED = frozenset({b"connection", b"expect", b"keep-alive", b"authorization", b"x-api-key", b"api-key"})


class Gone(Exception):
    """The client has left."""


class TooSlow(Exception):
    """The request's head or body has not come within its time."""


class TooLarge(Exception):
    """limit: bytes of the body that were exceeded."""

    def __init__(self, limit: int) -> None:
        self.limit = limit


@dataclass(frozen=True, slots=True)
class OwnPage:
    """A page of this process about itself."""

    kind: str
    content: Callable[[], bytes]


class RequestHead:
    """method, target (path and query) as the client wrote them; headers by their names in small letters."""

    def __init__(self, request: h11.Request) -> None:
        self.method, self.target = request.method.decode("ascii"), request.target.decode("latin-1")
        found = [(name.lower(), value) for name, value in request.headers.raw_items()]
        self.raw = [one for one in found if one[0] not in _NOT_PASSED]
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in found}
        self.upgrade = False

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def model(self) -> str:
        """The model named by `?model=`, for requests without a body; '' if it names none."""
        with suppress(ValueError):
            return parse_qs(self.target.partition("?")[2], max_num_fields=_FIELDS).get("model", [""])[0]
        return ""

    @property
    def chunked(self) -> bool:
        return "transfer-encoding" in self.headers

    def for_engine(self, key: str, longer: int = 0) -> bytes:
        """Write the engine's request without its body. longer: bytes that its body has more than the client's.

        Raises h11.LocalProtocolError for a key with a line break.
        """
        kept = [
            (name, _longer(name, value, longer))
            for name, value in self.raw
            if (self.upgrade or not _is_upgrade(name)) and not (self.chunked and name == b"content-length")
        ]
        more = [(b"authorization", f"Bearer {key}".encode("latin-1", "replace"))] if key else []
        more.append((b"connection", b"upgrade" if self.upgrade else b"close"))
        return write_head(f"{self.method} {self.target} HTTP/1.1".encode("latin-1"), [*kept, *more])


def _longer(name: bytes, value: bytes, by: int) -> bytes:
    return b"%d" % (int(value) + by) if by and name == b"content-length" else value


def _is_upgrade(name: bytes) -> bool:
    return name == b"upgrade" or name.startswith(b"sec-websocket-")


class ProxyConnection:
    """Caddy's side of one connection. read_at: when all of the body was here, by the loop's clock.

    begun: whether an answer has begun. opened: whether that is a stream of our own, for a client that waits.
    """

    def __init__(self, link: SocketLink) -> None:
        self.link = link
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_LIMIT)
        self.read_all, self.read_at = False, 0.0
        self.limit, self._taken = 0, 0
        self._waited = 0.0
        self.begun = self.opened = self._bodiless = False
        self._head, self._early = b"", True
        self._framing = BodyFraming(0)

    async def head(self) -> RequestHead | None:
        """None if the connection closes without a request. Raises TooSlow."""
        if not (data := await self._came()):
            return None
        self._http.receive_data(data)
        event = await self._event()
        if not isinstance(event, h11.Request):
            return None
        self._bodiless = event.method == b"HEAD"
        return RequestHead(event)

    async def body(self) -> bytes:
        """The next piece of the body, b'' at its end. Raises Gone, TooLarge, TooSlow."""
        while not self.read_all:
            event = await self._event()
            if isinstance(event, h11.Data):
                self._taken += len(event.data)
                if self._taken > self.limit:
                    raise TooLarge(self.limit)
                return bytes(event.data)
            self.read_all, self.read_at = isinstance(event, h11.EndOfMessage), asyncio.get_running_loop().time()
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
            data = await self._came()
            if not data and self._http.their_state is h11.IDLE:
                return None
            self._http.receive_data(data)

    async def _came(self) -> bytes:
        """More of the request. Only the time that we wait for the client counts, not that of a slow engine."""
        if (ready := self.link.ready()) is not None:
            return ready
        loop = asyncio.get_running_loop()
        began, in_body = loop.time(), self._http.their_state is h11.SEND_BODY
        left = (BODY_WITHIN + self._taken / _SLOWEST - self._waited) if in_body else _HEAD_WITHIN - self._waited
        try:
            async with asyncio.timeout(max(left, 0.0)):
                data = await self.link.read()
        except TimeoutError:
            raise TooSlow from None
        self._waited += loop.time() - began
        return data

    async def later(self) -> bytes:
        """The bytes after the request: of a websocket. Raises Gone."""
        early, self._early = self._early, False
        rest = self._http.trailing_data[0] if early else b""
        data = rest or await self.link.read()
        if not data:
            raise Gone
        return data

    async def keep_alive(self) -> None:
        """Write a comment to a client that waits for a stream; the first one begins its answer."""
        if not self.opened:
            self.opened = True
            self.begin(200, b"OK", _STREAM)
        await self.send(b": waiting for the model to start\n\n")

    def begin(self, status: int, reason: bytes, headers: Headers) -> None:
        """Begin an answer; its head goes out with its first piece. Raises h11.LocalProtocolError for one that is none.

        A small answer in one write is read by Caddy as a whole, whatever happens to the connection then.
        """
        length = next((int(value) for name, value in headers if name.lower() == b"content-length"), None)
        chunked = length is None and status not in _BODILESS and self._http.their_http_version == b"1.1"
        if self._bodiless or status in _BODILESS:
            self._framing = BodyFraming(0)
        else:
            self._framing = BodyFraming(length, chunked)
        framing = (_CHUNKED, _CLOSE) if chunked else (_CLOSE,)
        self._head = write_head(b"HTTP/1.1 %d %b" % (status, reason), [*headers, *framing])
        self.begun = True

    async def switch(self, reason: bytes, headers: Headers) -> None:
        """Write 101: from here on the connection is a websocket's."""
        self.begun = True
        await self.send_raw(write_head(b"HTTP/1.1 101 %b" % reason, headers))

    async def send(self, data: bytes) -> None:
        """More of the answer that has begun. Raises h11.LocalProtocolError beyond its length."""
        self.put(data)
        await self.link.write()

    def put(self, data: bytes) -> None:
        """The same without a wait for the client: b'' lets the head go before its first piece. Raises
        h11.LocalProtocolError; what else went wrong is raised by the next write."""
        self._put(self._framing.piece(data))

    def _put(self, data: bytes) -> None:
        if self._head:
            data, self._head = self._head + data, b""
        if data:
            self.link.put(data)

    async def send_raw(self, data: bytes) -> None:
        """Bytes of a websocket."""
        await self.link.write(data)

    async def finish(self) -> None:
        """End the answer. Raises h11.LocalProtocolError if it is shorter than its length."""
        self._put(self._framing.end())
        await self.link.write()

    async def answer(self, answer: GatewayAnswer) -> None:
        if self.opened:
            await self.send(b"event: error\ndata: " + answer.event.encode() + b"\n\n")
            await self.finish()
        elif not self.begun:
            await self._whole(answer.status, answer.kind, answer.headers, answer.body.encode())

    async def show(self, page: OwnPage | None) -> None:
        if page is None:
            await self.answer(NO_SUCH_PATH)
        else:
            await self._whole(200, "OK", {"Content-Type": page.kind}, page.content())

    async def _whole(self, status: int, reason: str, headers: Mapping[str, str], body: bytes) -> None:
        shown = {**headers, "Content-Length": str(len(body))}
        pairs = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in shown.items()]
        self.begin(status, reason.encode("latin-1", "replace"), pairs)
        if body and not self._bodiless:
            await self.send(body)
        await self.finish()

    async def close(self) -> None:
        """Read and drop what is still on its way of the body for a while: else the answer could be lost before it."""
        with suppress(Gone, TooLarge, TooSlow, OSError, TimeoutError, h11.ProtocolError):
            async with asyncio.timeout(_LINGER):
                self.link.end()
                while not self.read_all:
                    await self.body()
        self.link.close()
