"""The drills' clients against a server that fails in every way that a gateway can: each fate is reported rightly."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from drills.fate import Fate
from drills.traffic import GatewayTarget, TrafficClient, TrafficLoad

PIECE = b'data: {"choices": [{"delta": {"content": "x"}, "finish_reason": null}]}\n\n'
LAST = b'data: {"choices": [{"delta": {}, "finish_reason": "length"}]}\n\n'
DONE = b"data: [DONE]\n\n"
ERROR = b'{"error": {"message": "comes back in 5 s", "type": "service_unavailable", "code": "relaunching"}}'
STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
AWAY = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\ncontent-length: %d\r\n\r\n"


def http_chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


ANSWERS = {
    "whole": STREAM + http_chunk(PIECE) + http_chunk(LAST) + http_chunk(DONE) + http_chunk(b""),
    "error": STREAM + http_chunk(PIECE) + http_chunk(b"data: " + ERROR + b"\n\n") + http_chunk(DONE) + http_chunk(b""),
    "cut": STREAM + http_chunk(PIECE),
    "short": STREAM + http_chunk(PIECE) + http_chunk(b""),
    "away": AWAY % len(ERROR) + ERROR,
    "nothing": b"",
}


@asynccontextmanager
async def gateway(how: str, patience: float = 60) -> AsyncIterator[GatewayTarget]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(EOFError, OSError):
            await answer(reader, writer)
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        size = next((int(x.split(b":")[1]) for x in head.split(b"\r\n") if x.lower().startswith(b"content-length")), 0)
        await reader.readexactly(size)
        writer.write(ANSWERS.get(how, STREAM + http_chunk(PIECE)))
        await writer.drain()
        if how == "silent":
            await reader.read()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        yield GatewayTarget(f"http://127.0.0.1:{port}/v1", "k", "m", patience=patience)
        await asyncio.sleep(0.05)  # the last connections end in order


@pytest.mark.parametrize(
    ("how", "fate", "status"),
    [
        ("whole", Fate.ANSWERED, 200),
        ("error", Fate.BROKEN, 200),
        ("cut", Fate.BROKEN, 200),
        ("nothing", Fate.BROKEN, 0),
        ("short", Fate.LOST, 200),
        ("silent", Fate.LOST, 200),
        ("away", Fate.REFUSED, 503),
    ],
)
async def test_each_end_is_reported_rightly(how: str, fate: Fate, status: int) -> None:
    """The client's view decides: an error, a cut, silence, an answer that ends too early, or a refusal."""
    async with gateway(how, patience=3 if how == "silent" else 60) as there:
        client = TrafficClient(there)
        seen = await client.ask(client.body(TrafficLoad()))
        await client.close()
    assert (seen.fate, seen.status) == (fate, status), seen
    assert how != "away" or (seen.shaped and seen.retry == "5" and "comes back" in seen.said)


async def test_traffic_goes_on_whatever_becomes_of_it() -> None:
    """A steady rate of requests and probes, all with a fate in the end; what cannot connect is reported, too."""
    async with gateway("whole") as there:
        client = TrafficClient(there)
        tasks = [asyncio.create_task(client.traffic(TrafficLoad(rate=50))), asyncio.create_task(client.probing(0.02))]
        async with asyncio.timeout(60):
            while min(len(client.requests), len(client.probes)) <= 10:
                await asyncio.sleep(0.02)
        for task in tasks:
            task.cancel()
        await client.settle()
        assert {r.fate for r in client.requests} == {Fate.ANSWERED}
    late = await client.ask(client.body(TrafficLoad()))
    await client.close()
    assert late.fate is Fate.BROKEN and late.status == 0 and json.dumps(late.said)
