"""A stream whose client waits for a model to start: comments, then the engine's events or the reason, in one answer."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from local_server import local_links, local_server
from sparkwright.gateway.decide import GatewayAnswer, retry_later
from sparkwright.supervisor.proxy import passing
from sparkwright.supervisor.proxy.connection import RequestHead
from sparkwright.supervisor.proxy.passing import Passing

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENTS = b'data: {"n": 1}\n\n', b'data: {"n": 2}\n\n', b"data: [DONE]\n\n"
REFUSED = retry_later("deployment_on_demand", "MEM001 a: no room", 20)


class TappedTarget:
    """The engine, and what a tap sees of it."""

    host, key, limit, websocket, reads = "127.0.0.1", "", 10_000, False, False
    replicated = lost = False

    def __init__(self, port: int) -> None:
        self.port, self.seen = port, b""
        self.whole: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def begin(self) -> Any:
        return self

    def declines(self, status: int) -> bool:
        return False

    def again(self, reached: bool, why: str) -> bool:
        return False

    def broken(self) -> GatewayAnswer:
        return REFUSED

    def insertion(self, body: Any) -> bytes:
        return b""

    def sent(self) -> None:
        pass

    def answers(self, answer: Any) -> None:
        pass

    def saw(self, piece: bytes) -> bytes:
        self.seen += piece
        return piece

    @property
    def over(self) -> bool:
        return False

    def rest(self) -> bytes:
        return b""

    def ended(self, whole: bool) -> None:
        self.whole.set_result(whole)


class WaitingGate:
    limit = 10_000

    def __init__(self, answer: Any) -> None:
        self.answer, self.come, self.left, self.asked = answer, asyncio.Event(), asyncio.Event(), asyncio.Event()

    def first(self, head: RequestHead) -> Any:
        return self

    def leave(self) -> None:
        pass

    def wants(self, head: RequestHead, model: str) -> int:
        return 0

    async def choice(self, head: RequestHead, model: str, entry: Any, prompt: Any) -> Any:
        self.asked.set()
        try:
            await self.come.wait()
        except asyncio.CancelledError:
            self.left.set()
            raise
        return self.answer


@asynccontextmanager
async def engine(answer: bytes) -> AsyncIterator[TappedTarget]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    async with local_server(serve) as server:
        yield TappedTarget(server.sockets[0].getsockname()[1])


@asynccontextmanager
async def waiting(tmp_path: Path, gate: WaitingGate, stream: bool) -> AsyncIterator[httpx.Response]:
    """A client whose answer has begun."""
    transport = httpx.AsyncHTTPTransport(uds=str(tmp_path / "s"))
    body = {"stream": stream, "model": "m"}
    async with (
        local_links(Passing({}, gate), path=str(tmp_path / "s")),
        httpx.AsyncClient(transport=transport, base_url="http://g", timeout=20) as client,
        client.stream("POST", "/v1/chat/completions", json=body) as answer,
    ):
        yield answer


def chunked(*parts: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + end


@pytest.fixture(autouse=True)
def frequent_comments(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(passing, "_KEEP_ALIVE", 0.02)


async def read(tmp_path: Path, gate: WaitingGate) -> tuple[int, str]:
    """All of it; the model comes once a comment is there."""
    async with waiting(tmp_path, gate, stream=True) as answer:
        text = ""
        async for part in answer.aiter_text():
            text += part
            gate.come.set()
        return answer.status_code, text


async def test_the_engine_s_events_follow_the_comments(tmp_path: Path) -> None:
    """Guards a client that waited: it reads one stream, and the usage is counted from the engine's own bytes."""
    async with engine(HEAD + chunked(*EVENTS)) as target:
        status, text = await read(tmp_path, WaitingGate(target))
        assert await target.whole is True and target.seen == b"".join(EVENTS)
    comments, _, events = text.partition("data: ")
    assert status == 200 and comments.startswith(": waiting") and f"data: {events}".encode() == b"".join(EVENTS)


async def refusal(tmp_path: Path, target: Any) -> dict[str, Any]:
    _, text = await read(tmp_path, WaitingGate(target))
    event, data = text.strip().split("\n\n")[-1].split("\n")
    found: dict[str, Any] = json.loads(data.removeprefix("data: "))
    assert (event, found["type"]) == ("event: error", "error")
    error: dict[str, Any] = found["error"]
    return error


async def test_a_reason_that_comes_late_is_the_last_event(tmp_path: Path) -> None:
    """Guards the truth of a stream that has begun: a start that is refused, and an engine that answers 400."""
    assert (await refusal(tmp_path, REFUSED))["message"] == "MEM001 a: no room"
    async with engine(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 3\r\n\r\nbad") as target:
        error = await refusal(tmp_path, target)
    assert error["code"] == "engine_error" and error["message"] == "The engine answered 400: bad"


async def test_an_engine_that_breaks_off_cuts_the_stream(tmp_path: Path) -> None:
    """Guards half an answer: it never looks like a whole one."""
    async with engine(HEAD + chunked(EVENTS[0], end=b"")) as target:
        with pytest.raises(httpx.RemoteProtocolError):
            await read(tmp_path, WaitingGate(target))
        assert await target.whole is False


async def test_who_asked_for_no_stream_gets_nothing_before_its_answer(tmp_path: Path) -> None:
    """Guards 503 with its status; a client that leaves meanwhile is waited for no more."""
    gate = WaitingGate(REFUSED)

    async def ask() -> None:
        async with waiting(tmp_path, gate, stream=False):
            pytest.fail("an answer began")

    asking = asyncio.create_task(ask())
    await asyncio.wait_for(gate.asked.wait(), 60)
    await asyncio.sleep(0.1)  # several keep-alives, if there were any
    assert not asking.done()
    asking.cancel()
    await asyncio.wait_for(gate.left.wait(), 60)
    assert gate.left.is_set()
