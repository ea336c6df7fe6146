"""The gateway's process among hostile engines and clients: it goes on answering whoever behaves."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import struct
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from functional.gateway.gateways import KEY, LocalGateway
from functional.gateway.hostile import (
    CHUNKED,
    EVENT,
    Hostile,
    chat_body,
    http_chunk,
    request,
    run_hostile_client,
    send_and_read,
)
from functional.gateway.test_streams import engine_that
from local_server import local_server
from patience import PATIENCE, wait_until

WHOLE = CHUNKED + http_chunk(EVENT) * 5 + b"0\r\n\r\n"
_CASES, _AT_ONCE, _PATIENCE = 32, 8, 600.0


@pytest.fixture
def service(tmp_path: Path) -> Iterator[LocalGateway]:
    """The gateway's process alone, without Caddy; no engine is behind it yet."""
    gateway = LocalGateway(tmp_path / "good", "127.0.0.1:1")
    gateway.home.mkdir(parents=True)
    gateway.keys(KEY)
    gateway.write()
    gateway.start_service()
    yield gateway
    gateway.end()


@asynccontextmanager
async def engines(service: LocalGateway, size: int) -> AsyncIterator[Hostile]:
    """`good` answers as it should, `bad` as it likes."""

    async def well(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"[]}")
        writer.write(WHOLE)
        await writer.drain()
        writer.close()

    hostile = Hostile(size)
    async with (
        local_server(well) as good,
        local_server(hostile) as bad,
    ):
        service.engine = f"127.0.0.1:{good.sockets[0].getsockname()[1]}"
        service.write()
        service.add("bad", f"127.0.0.1:{bad.sockets[0].getsockname()[1]}")
        yield hostile


async def behaves(service: LocalGateway) -> None:
    """One request as clients send it: whole, from whatever is going on around it."""
    async with asyncio.timeout(_PATIENCE):
        got = await send_and_read(service.folder, iter([request(chat_body("good"))]))
    assert got.startswith(b"HTTP/1.1 200") and got.endswith(b"\r\n0\r\n\r\n"), got[:300]
    assert got.count(EVENT) == 5


def memory(service: LocalGateway) -> int:
    """The most that the process had, in MB."""
    status = Path(f"/proc/{service.processes['service'].pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) // 1024


@pytest.mark.parametrize("size, seconds", [(2 << 20, 0.0), pytest.param(48 << 20, 60.0, marks=pytest.mark.full)])
async def test_whoever_behaves_is_answered(service: LocalGateway, size: int, seconds: float) -> None:
    """Odd chunk sizes, endless heads, long events, resets: others get whole answers, memory is bounded."""
    async with engines(service, size) as hostile:
        await behaves(service)
        before, until, seed, answered = memory(service), time.monotonic() + seconds, 0, 0
        while seed < _CASES or time.monotonic() < until:
            hostile.dice.seed(seed)
            playing = [asyncio.create_task(run_hostile_client(service.folder, seed + n, size)) for n in range(_AT_ONCE)]
            seed += _AT_ONCE
            while not all(one.done() for one in playing):
                await behaves(service)
                answered += 1
            await asyncio.gather(*playing)
        await behaves(service)
    assert answered > 0
    assert service.processes["service"].poll() is None
    assert memory(service) - before < 120, (before, memory(service))
    assert "Traceback" not in service.log("service"), service.log("service")[:3000]


async def test_bytes_after_a_request_do_not_hang_the_process(service: LocalGateway) -> None:
    """A client that sends more than its request: the same bytes were read again for ever."""
    async with engines(service, 1 << 16):
        async with asyncio.timeout(_PATIENCE):
            got = await send_and_read(service.folder, iter([request(chat_body("good")) + b"GET / HTTP/1.1\r\n\r\n"]))
        assert got.count(EVENT) == 5
        await behaves(service)


async def test_an_answer_that_came_is_passed_on_though_the_engine_reset_its_connection(service: LocalGateway) -> None:
    """An engine that answers before it has read all closes with a reset: the client's answer got lost by that."""
    text = b"HTTP/1.1 404 Not Found\r\nContent-Length: 22\r\nConnection: close\r\n\r\n"

    def plays(link: socket.socket) -> None:
        link.sendall(text)
        link.sendall(b'{"detail":"Not Found"}')
        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with engine_that(plays, pause=0) as address:
        service.engine = address
        service.write()
        for _ in range(20):
            async with asyncio.timeout(_PATIENCE):
                got = await send_and_read(service.folder, iter([request(chat_body("good"))]))
            assert got.startswith((b"HTTP/1.1 404", b"HTTP/1.1 503")), got
            assert got.endswith((b'{"detail":"Not Found"}', b"}")), got


async def test_a_socket_that_a_cleaner_removed_is_made_again(service: LocalGateway) -> None:
    """The process lived on behind a socket without a name, and each client got 503 until somebody restarted it."""
    async with engines(service, 0):
        await behaves(service)
        (service.folder / "service.sock").unlink()
        await asyncio.to_thread(wait_until, (service.folder / "service.sock").exists, "no new socket")
        await behaves(service)
    assert service.processes["service"].poll() is None


async def test_a_process_whose_place_is_taken_ends(service: LocalGateway) -> None:
    """Two of them would take the socket from each other for good."""
    first = service.processes["service"]
    service.start_service()
    assert await asyncio.to_thread(first.wait, PATIENCE) == 0
    async with engines(service, 0):
        await behaves(service)


async def test_a_burst_of_clients_finds_the_socket_open(service: LocalGateway) -> None:
    """Guards a thousand at once against `connection refused`, which Caddy answers with 503."""
    links: list[socket.socket] = []
    stopped = service.processes["service"].pid
    os.kill(stopped, signal.SIGSTOP)  # as a process that has no turn for a moment
    try:
        place = os.open(service.folder, os.O_PATH)
        for _ in range(600):
            link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
            links.append(link)
            assert link.connect_ex(f"/proc/self/fd/{place}/service.sock") == 0, len(links)
    finally:
        os.kill(stopped, signal.SIGCONT)
        for link in links:
            link.close()
    os.close(place)


@pytest.mark.full
async def test_files_that_are_written_meanwhile_cost_no_request(service: LocalGateway) -> None:
    """Other deployments come and go, and all reports are written again, while requests for one that stays pour in."""
    over = threading.Event()

    def rewrites() -> None:
        other = service.home.parent / "other" / "door" / "door.json"
        other.parent.mkdir(parents=True, exist_ok=True)
        text = (service.home / "door" / "door.json").read_text().replace('"good"', '"other"')
        while not over.is_set():
            other.write_text(text)
            service.live()
            other.unlink()

    async with engines(service, 1 << 16):
        writing = threading.Thread(target=rewrites)
        writing.start()
        try:
            for _ in range(40):
                await asyncio.gather(*(behaves(service) for _ in range(10)))
        finally:
            over.set()
            writing.join()
    assert "Traceback" not in service.log("service"), service.log("service")[:3000]
