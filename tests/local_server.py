"""Servers of tests on the loopback whose connections end with them."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from sparkwright.supervisor.proxy.links import Listening, ServesLink

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def local_server(serve: Serve, port: int = 0, path: str = "") -> AsyncIterator[asyncio.Server]:
    """Serves on 127.0.0.1, or on the Unix socket `path`. A connection that ends early, or is still open at the end, is
    closed: asyncio leaves that to whoever serves it, up to Python 3.12 also at the end of the server.
    """
    tasks: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}

    async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        tasks[writer] = task
        try:
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # a probe that only connects
        finally:
            writer.close()
            if not writer.transport.get_write_buffer_size():
                del tasks[writer]

    made = asyncio.start_unix_server(serve_one, path) if path else asyncio.start_server(serve_one, "127.0.0.1", port)
    async with await made as server:
        yield server
        server.close()
        for task in (left := tuple(tasks.values())):
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        for writer in tasks:
            writer.transport.abort()  # what nobody has read does not hold it open
        await asyncio.sleep(0)


@asynccontextmanager
async def local_links(serve: ServesLink, port: int = 0, path: str = "") -> AsyncIterator[None]:
    """The same for the gateway's own links."""
    listener = socket.socket(socket.AF_UNIX if path else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if path:
        Path(path).unlink(missing_ok=True)
    listener.bind(path or ("127.0.0.1", port))
    listener.listen(1024)
    async with Listening(listener, serve) as made:
        yield
    for task in (left := tuple(made.served)):
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    await asyncio.sleep(0)
