"""Connections as Caddy opens them, to the process that carries requests on."""

import asyncio
import json
from pathlib import Path

import pytest

from local_server import local_links
from sparkwright.supervisor.proxy import connection
from sparkwright.supervisor.proxy.passing import Passing
from unit.supervisor.proxy.test_doorman import KEY, doorman

HEAD = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Length: 5000\r\n\r\n"


async def answer(socket: Path, *pieces: bytes) -> tuple[int, dict[str, object]]:
    """Status and JSON of the answer to a request of which no more comes than these pieces."""
    reader, writer = await asyncio.open_unix_connection(str(socket))
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
    async with asyncio.timeout(60):
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return int(head.split()[1]), json.loads(body)


async def test_a_body_that_is_too_slow_gets_408_and_counts_no_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards uploads that trickle for ever: they end with a reason, and the key has its place back."""
    monkeypatch.setattr(connection, "BODY_WITHIN", 0.02)
    door = doorman(tmp_path, "tiny", at_once=1)
    async with local_links(Passing({}, door), path=str(tmp_path / "s")):
        for _ in range(3):
            status, said = await answer(tmp_path / "s", HEAD.format(key=KEY).encode(), b'{"mod')
            error = said["error"]
            assert isinstance(error, dict) and (status, error["code"]) == (408, "request_timeout"), said
            assert "did not come within its time" in error["message"]
