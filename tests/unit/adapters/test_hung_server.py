"""A server of this machine that hangs is told from one that answers or is away."""

import asyncio

import pytest

from local_server import local_server
from sparkwright.adapters.hung_server import is_answering


@pytest.mark.parametrize(("says", "alive"), [(b"HTTP/1.1 404 Not Found\r\n\r\n", True), (b"", True), (None, False)])
async def test_silence_is_told_from_any_answer(says: bytes | None, alive: bool) -> None:
    """Guards a Caddy that lives: it is killed for silence only, not for what it says or for closing."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if says is not None:
            writer.write(says)
        else:
            await reader.read()

    async with local_server(serve) as server:
        port = server.sockets[0].getsockname()[1]
        assert await is_answering(f"http://127.0.0.1:{port}/", 0.05 if says is None else 30.0) is alive
    assert await is_answering(f"http://127.0.0.1:{port}/", 30.0), "nobody listens"
