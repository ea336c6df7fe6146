"""Caddy's side of a connection: one request is read, its body in pieces, and what we answer ourselves is written."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from urllib.parse import parse_qs

import h11

from sparkwright.domain.values import dataclass
from sparkwright.gateway.decide import NO_SUCH_PATH, Answer

PIECE = 64 * 1024
HEAD_LIMIT = 128 * 1024
_LINGER, _FIELDS = 5.0, 100
_STREAM = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
    b"Access-Control-Allow-Origin: *\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
)
END = b"\r\n\r\n"
# Between two neighbours only, or of no meaning for an engine that is asked over a connection of its own
_NOT_PASSED = frozenset({b"connection", b"expect", b"keep-alive", b"authorization", b"x-api-key", b"api-key"})


class Gone(Exception):
    """The client has left."""


class TooLarge(Exception):
    """limit: bytes of the body that were exceeded."""

    def __init__(self, limit: int) -> None:
        self.limit = limit


@dataclass(frozen=True, slots=True)
class Page:
    """What this process shows of itself."""

    kind: str
    content: Callable[[], bytes]


class Head:
    """method, target (path and query) as the client wrote them; headers by their names in small letters."""

    def __init__(self, request: h11.Request) -> None:
        self.method, self.target = request.method.decode("ascii"), request.target.decode("latin-1")
        self.raw = [(name, value) for name, value in request.headers if name not in _NOT_PASSED]
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in request.headers}
        self.upgrade = False

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def model(self) -> str:
        """By `?model=`, for requests without a body; '' where it names none."""
        with suppress(ValueError):
            return parse_qs(self.target.partition("?")[2], max_num_fields=_FIELDS).get("model", [""])[0]
        return ""

    def written(self, key: str, longer: int = 0) -> bytes:
        """For the engine. longer: bytes that its body has more than the client's."""
        more = [(b"authorization", f"Bearer {key}".encode("latin-1", "replace"))] if key else []
        more.append((b"connection", b"upgrade" if self.upgrade else b"close"))
        lines = [f"{self.method} {self.target} HTTP/1.1".encode("latin-1")]
        kept = [one for one in self.raw if self.upgrade or not _is_upgrade(one[0])]
        lines += [name + b": " + _longer(name, value, longer) for name, value in (*kept, *more)]
        return b"\r\n".join(lines) + END


def _longer(name: bytes, value: bytes, by: int) -> bytes:
    return b"%d" % (int(value) + by) if by and name == b"content-length" else value


def _is_upgrade(name: bytes) -> bool:
    return name == b"upgrade" or name.startswith(b"sec-websocket-")


class Client:
    """Caddy's side of one connection. read_at: when all of the body was here, by the loop's clock."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_LIMIT)
        self.read_all, self.read_at = False, 0.0
        self.limit, self._taken = 0, 0
        self.opened = False

    async def head(self) -> Head | None:
        """None where nobody asks anything."""
        event = await self._event()
        return Head(event) if isinstance(event, h11.Request) else None

    async def body(self) -> bytes:
        """The next piece of the body, b'' at its end. Raises Gone, TooLarge."""
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

    async def keep_alive(self) -> None:
        """Of a client that asked for a stream and waits: its answer begins with comments, in a stream of our own."""
        if not self.opened:
            self.opened = True
            self.writer.write(_STREAM)
        await self.send(b": waiting for the model to start\n\n")

    async def send(self, data: bytes) -> None:
        """More of the stream that is open; b'' ends it."""
        self.writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        await self.writer.drain()

    async def answer(self, answer: Answer) -> None:
        if self.opened:
            await self.send(b"event: error\ndata: " + answer.event.encode() + b"\n\n")
            await self.send(b"")
            return
        await self._write(f"{answer.status} {answer.kind}", answer.headers, answer.body.encode())

    async def show(self, page: Page | None) -> None:
        if page is None:
            await self.answer(NO_SUCH_PATH)
        else:
            await self._write("200 OK", {"Content-Type": page.kind}, page.content())

    async def _write(self, status: str, headers: Mapping[str, str], body: bytes) -> None:
        shown = {**headers, "Content-Length": str(len(body)), "Connection": "close"}
        lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in shown.items())]
        self.writer.write("\r\n".join(lines).encode("latin-1", "replace") + END + body)
        await self.writer.drain()

    async def close(self) -> None:
        """A body that is still on its way is read and dropped for a while: else the answer before it could be lost."""
        with suppress(Gone, TooLarge, OSError, TimeoutError, h11.ProtocolError):
            async with asyncio.timeout(_LINGER):
                if self.writer.can_write_eof():
                    self.writer.write_eof()
                while not self.read_all:
                    await self.body()
        self.writer.close()
