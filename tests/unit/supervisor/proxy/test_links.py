"""Connections of the gateway's process: nothing that arrived or was given to them is lost."""

import asyncio
import errno
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest

from fakes.ports import free_port
from sparkwright.supervisor.proxy.links import Listening, SocketLink


@pytest.fixture
def socket_pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    theirs.settimeout(10.0)
    with ours, theirs:
        yield ours, theirs


async def test_what_arrives_for_a_read_that_is_given_up_is_read_next(
    socket_pair: tuple[socket.socket, socket.socket],
) -> None:
    """Guards a body that is read while its model starts: the task that read it ends, and the next one goes on."""
    link = SocketLink(socket_pair[0])
    reading = asyncio.create_task(link.read())
    await asyncio.sleep(0)
    socket_pair[1].send(b"first")
    while link._came is None:
        await asyncio.sleep(0)
    reading.cancel()
    with suppress(asyncio.CancelledError):
        await reading
    socket_pair[1].send(b"second")
    assert (link.ready(), await link.read()) == (b"first", b"second")
    link.close()


async def test_all_of_a_long_piece_goes_out_in_order(socket_pair: tuple[socket.socket, socket.socket]) -> None:
    """Guards requests that a kernel does not take at once: `put` keeps the rest, and `write` waits for it."""
    link, data = SocketLink(socket_pair[0]), bytes(range(256)) * 8192
    link.put(data)
    writing = asyncio.create_task(link.write(b"end"))
    got = bytearray()
    while len(got) < len(data) + 3:
        await asyncio.sleep(0)
        got += await asyncio.to_thread(socket_pair[1].recv, 1 << 20)
    await writing
    assert bytes(got) == data + b"end"
    link.close()


async def test_an_answer_before_a_break_is_read_though_a_write_failed(
    socket_pair: tuple[socket.socket, socket.socket],
) -> None:
    """Guards the engine's own reason: it answers before it has all of a body, and closes."""
    link = SocketLink(socket_pair[0])
    socket_pair[1].send(b"413")
    socket_pair[1].shutdown(socket.SHUT_RD)
    link.put(b"more of the body")
    with pytest.raises(BrokenPipeError):
        await link.write()
    assert await link.read() == b"413"
    link.close()


async def test_a_port_without_a_server_refuses_at_once() -> None:
    """Guards the choice of another replica: an engine that is away is no engine that is slow."""
    link = SocketLink(socket.socket())
    with pytest.raises(OSError) as caught:
        await link.connect(("127.0.0.1", free_port()), 60.0)
    assert caught.value.errno == errno.ECONNREFUSED
    link.close()


async def test_the_link_of_a_cancelled_request_is_closed(socket_pair: tuple[socket.socket, socket.socket]) -> None:
    """Guards the end of the process: no client is left with a connection that nobody reads."""
    served = asyncio.Event()

    async def serve(link: SocketLink) -> None:
        served.set()
        await link.read()

    with socket.create_server(("127.0.0.1", 0)) as server:
        async with Listening(server, serve) as listening:
            with socket.create_connection(server.getsockname(), 10.0) as client:
                await served.wait()
                for task in listening.served:
                    task.cancel()
                while listening.served:
                    await asyncio.sleep(0)
                assert client.recv(1) == b""


@pytest.mark.parametrize(
    ("pieces", "taken"), [((b"a", b"b", b"stop", b"left"), b"abstop"), ((b"a", b""), b"a"), ((b"bad",), b"")]
)
async def test_pieces_are_given_on_as_they_come_until_the_taker_has_enough(
    socket_pair: tuple[socket.socket, socket.socket], pieces: tuple[bytes, ...], taken: bytes
) -> None:
    """Guards answers that are passed on in the turn of their arrival: none after their end, and an error is the
    reader's."""
    link, got = SocketLink(socket_pair[0]), bytearray()

    def take(data: bytes) -> bool:
        if data == b"bad":
            raise ValueError
        got.extend(data)
        return data != b"stop"

    reading = asyncio.create_task(link.read_each(take))
    for piece in pieces:
        await asyncio.sleep(0.001)
        socket_pair[1].send(piece) if piece else socket_pair[1].shutdown(socket.SHUT_WR)
    found = (await asyncio.gather(reading, return_exceptions=True))[0]
    assert isinstance(found, ValueError) == (b"bad" in pieces)
    assert (bytes(got), link.ready()) == (taken, b"left" if b"left" in pieces else b"" if b"" in pieces else None)
    link.close()
