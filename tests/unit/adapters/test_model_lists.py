"""Lists of models as engines give them: bounded, and asked once for many clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from local_server import local_server
from sparkwright.adapters import openai_http
from sparkwright.adapters.openai_http import ModelLists, listed_by

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
ONE = b'{"data": [{"id": "tiny"}, "no row"]}'


@dataclass
class ModelListEngine:
    """Answers each GET with `body`; without an end where it is None. keys: Authorization of each request."""

    body: bytes | None = ONE
    address: str = ""
    sent: int = 0
    keys: list[str] = field(default_factory=list)

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.keys.append(next((line for line in head.splitlines() if line.startswith("Authorization")), ""))
        writer.write(HEAD + (self.body or b""))
        try:
            while self.body is None:
                writer.write(b" " * 4096)
                await writer.drain()
                self.sent += 4096
        except OSError:
            pass
        writer.close()


@asynccontextmanager
async def serving(engine: ModelListEngine) -> AsyncIterator[ModelListEngine]:
    async with local_server(engine) as server:
        engine.address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield engine


async def test_rows_that_are_none_are_left_out() -> None:
    """The engine's list reaches every client of the gateway."""
    async with serving(ModelListEngine()) as engine:
        assert await listed_by(engine.address, "k") == ({"id": "tiny"},)
        assert engine.keys == ["Authorization: Bearer k"]
    assert await listed_by(engine.address, "") == ()


async def test_a_list_without_an_end_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine's list of 400 MB took 893 MB here, and 18 s; one whose end never comes took for ever."""
    monkeypatch.setattr(openai_http, "_MOST_LISTED", 64 * 1024)
    async with serving(ModelListEngine(body=None)) as engine:
        assert await listed_by(engine.address, "") == ()
        assert engine.sent < 32 << 20  # what the sockets' own buffers took
    monkeypatch.setattr(openai_http, "_MOST_LISTED", 1 << 40)
    monkeypatch.setattr(openai_http, "_LISTED_WITHIN", 0.05)
    async with serving(ModelListEngine(body=None)) as engine:
        assert await listed_by(engine.address, "") == ()


async def test_many_clients_are_one_question() -> None:
    """One question serves a second, and each key apart; a client that leaves does not end it for the others."""
    now = [100.0]
    async with serving(ModelListEngine()) as engine:
        lists = ModelLists(lambda: now[0])
        leaves = asyncio.create_task(lists.listed(engine.address, ""))
        stay = [asyncio.create_task(lists.listed(engine.address, "")) for _ in range(20)]
        await asyncio.sleep(0)
        leaves.cancel()
        assert await asyncio.gather(*stay) == [({"id": "tiny"},)] * 20
        assert len(engine.keys) == 1
        await lists.listed(engine.address, "other")
        assert len(engine.keys) == 2
        now[0] += 1.0
        await lists.listed(engine.address, "")
        assert len(engine.keys) == 3 and len(lists._known) == 1
