"""Heads and bodies as the gateway writes them: whatever came in, the next parser reads the same and nothing more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import h11
import pytest

from local_server import local_links, local_server
from patience import PATIENCE
from sparkwright.domain.codec import to_json
from sparkwright.domain.values import replace
from sparkwright.supervisor.proxy.connection import RequestHead
from sparkwright.supervisor.proxy.framing import BodyFraming, write_head
from sparkwright.supervisor.proxy.passing import Passing
from unit.for_each import for_each
from unit.supervisor.proxy.test_doorman import KEY, doorman, make_route

GET = "/v1/models"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def read_answer(method: str, data: bytes) -> tuple[h11.Response, bytes, bool]:
    """Read an answer as a client does: its head, its body, and whether its end was stated."""
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method=method, target=GET, headers=[("host", "x"), ("connection", "close")]))
    client.send(h11.EndOfMessage())
    client.receive_data(data)
    head, body, event = client.next_event(), b"", client.next_event()
    assert isinstance(head, h11.Response)
    while isinstance(event, h11.Data):
        body, event = body + event.data, client.next_event()
    whole = isinstance(event, h11.EndOfMessage)
    return head, body, whole


Ask = Callable[[bytes, bytes], Awaitable[tuple[bytes, bytes]]]


@asynccontextmanager
async def gateway_with_engine(folder: Path) -> AsyncIterator[Ask]:
    """Yield a function that sends a request through the gateway to an engine with a given answer.

    It returns the request as it reached the engine, and the answer as it reached the client.
    """
    came: list[bytes] = []
    answers: list[bytes] = []

    async def engine(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got = await reader.readuntil(b"\r\n\r\n")
        if b"transfer-encoding: chunked" in got:
            got += await reader.readuntil(b"0\r\n\r\n")
        elif b"content-length: " in got:
            got += await reader.readexactly(int(got.split(b"content-length: ")[1].split(b"\r\n")[0]))
        came.append(got)
        writer.write(answers.pop())
        writer.close()

    async def ask(request: bytes, answer: bytes) -> tuple[bytes, bytes]:
        answers.append(answer)
        async with asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_unix_connection(str(folder / "s"))
            writer.write(request)
            got = await reader.read()
            writer.close()
        return came.pop(), got

    async with local_server(engine) as server:
        door = doorman(folder, "tiny")
        setting = replace(make_route("tiny"), engine=f"127.0.0.1:{server.sockets[0].getsockname()[1]}")
        (folder / "tiny" / "door" / "door.json").write_text(to_json(setting))
        async with local_links(Passing({}, door), path=str(folder / "s")):
            yield ask


def client_request(method: str, version: str = "1.1", more: str = "", body: str = "", path: str = GET) -> bytes:
    head = f"{method} {path} HTTP/{version}\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n{more}\r\n"
    return head.encode() + body.encode()


ANSWERS = [
    ("GET", "1.1", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", 200, b"abc", True),
    ("GET", "1.1", b"HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\n\r\nabc", 200, b"abc", True),
    ("GET", "1.1", b"HTTP/1.0 200 OK\r\n\r\nabc", 200, b"abc", True),
    ("GET", "1.1", CHUNKED + b"3\r\nabc\r\n0\r\n\r\n", 200, b"abc", True),
    ("GET", "1.1", b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", 204, b"", True),
    ("GET", "1.1", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n", 304, b"", True),
    ("HEAD", "1.1", b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", 200, b"", True),
    ("HEAD", "1.1", CHUNKED, 200, b"", True),
    ("GET", "1.0", CHUNKED + b"3\r\nabc\r\n0\r\n\r\n", 200, b"abc", False),
    ("GET", "1.1", b"HTTP/1.1 200 \r\nContent-Length: 0\r\nX-A:  b\t\r\n\r\n", 200, b"", True),
]


async def test_a_client_reads_what_the_engine_said(tmp_path: Path) -> None:
    """Guards every way in which an answer tells its length, towards both versions of HTTP."""
    async with gateway_with_engine(tmp_path) as ask:
        for method, version, answer, status, body, stated in ANSWERS:
            _, got = await ask(client_request(method, version), answer)
            head, read, whole = read_answer(method, got)
            assert (head.status_code, read, whole) == (status, body, stated), (answer, got)
            assert got.count(b"HTTP/1.") == 1 and dict(head.headers)[b"connection"] == b"close", got


IN_CHUNKS = (b"transfer-encoding", b"chunked")
REQUESTS = [
    ("Content-Length: 2\r\n", "{}", [(b"content-length", b"2")], b"{}"),
    ("Transfer-Encoding: chunked\r\n", "1\r\n{\r\n1\r\n}\r\n0\r\n\r\n", [IN_CHUNKS], b"{}"),
    ("Content-Length: 9\r\nTransfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n", [IN_CHUNKS], b"{}"),
    ("", "", [], b""),
]


async def test_an_engine_reads_one_request_with_one_length(tmp_path: Path) -> None:
    """Guards against a second request in the body of the first: an engine sees one length, and the client's body."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    async with gateway_with_engine(tmp_path) as ask:
        for more, body, framed, read in REQUESTS:
            came, _ = await ask(client_request("POST", "1.1", more, body, "/v1/chat/completions"), answer)
            engine = h11.Connection(h11.SERVER)
            engine.receive_data(came)
            head, got, event = engine.next_event(), b"", engine.next_event()
            assert isinstance(head, h11.Request)
            while isinstance(event, h11.Data):
                got, event = got + event.data, engine.next_event()
            lengths = [one for one in head.headers if one[0] in (b"content-length", b"transfer-encoding")]
            assert (lengths, got) == (framed, read), more
            assert isinstance(event, h11.EndOfMessage) and engine.trailing_data[0] == b"", more
            assert KEY.encode() not in came, "the client's key is the gateway's only"


@for_each("value", [b"a\r\nX: b", b"a\nX: b", b"a\rX: b", b"a\0b"])
def test_no_value_becomes_another_header(value: bytes) -> None:
    """Guards heads whatever a file or a parser lets through: an engine's key is a file's."""
    for headers in ([(b"a", value)], [(value, b"a")]):
        with pytest.raises(h11.LocalProtocolError):
            write_head(b"GET / HTTP/1.1", headers)
    head = RequestHead(h11.Request(method="GET", target="/", headers=[("host", "x")]))
    with pytest.raises(h11.LocalProtocolError):
        head.for_engine(value.decode())


def test_a_body_keeps_to_its_announced_length() -> None:
    """Guards the end of an answer: one byte more would be read as the next answer, one less as a cut."""
    framing = BodyFraming(3)
    assert framing.piece(b"ab") + framing.piece(b"c") + framing.end() == b"abc"
    with pytest.raises(h11.LocalProtocolError):
        framing.piece(b"d")
    with pytest.raises(h11.LocalProtocolError):
        BodyFraming(3).end()
    chunked = BodyFraming(None, chunked=True)
    assert chunked.piece(b"abc") + chunked.piece(b"") + chunked.end() == b"3\r\nabc\r\n0\r\n\r\n"
