"""Servers of tests on the loopback whose connections end with them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

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
