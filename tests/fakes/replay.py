"""A small HTTP server that sends what a test, or a recording of the real engine, holds."""

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path

from local_server import local_server

CAPTURES = Path(__file__).resolve().parents[1] / "data" / "captures_sse"
SSE = "text/event-stream; charset=utf-8"


@dataclass
class PiecewiseReply:
    """pieces: written one by one. cut: the connection is broken after them. hang: nothing more comes, and no end."""

    pieces: list[bytes]
    status: int = 200
    content_type: str = SSE
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    hang: bool = False


def recorded(label: str, size: int = 0) -> PiecewiseReply:
    """A recording; size: bytes per piece, 0: as the network delivered them."""
    data = json.loads((CAPTURES / f"{label}.json").read_text())
    pieces = [chunk.encode() for chunk in data["chunks"]]
    if size:
        whole = b"".join(pieces)
        pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    return PiecewiseReply(pieces, data["status"], data["content_type"])


class ReplayServer:
    """`async with Replay(reply) as url`. requests: (method and path, headers, body) as they came."""

    def __init__(self, reply: PiecewiseReply) -> None:
        self.reply = reply
        self.requests: list[tuple[str, dict[str, str], bytes]] = []

    async def __aenter__(self) -> str:
        self._over = asyncio.Event()
        self._made = local_server(self._serve)
        server = await self._made.__aenter__()
        return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def __aexit__(self, *_: object) -> None:
        self._over.set()
        await self._made.__aexit__(None, None, None)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._read(reader)
        await self._write(writer)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        values = dict(line.split(": ", 1) for line in head[1:] if line)
        self.requests.append((head[0].rpartition(" ")[0], {k.lower(): v for k, v in values.items()}, body))

    async def _write(self, writer: asyncio.StreamWriter) -> None:
        extra = "".join(f"{name}: {value}\r\n" for name, value in self.reply.headers.items())
        head = f"HTTP/1.1 {self.reply.status} X\r\nContent-Type: {self.reply.content_type}\r\n{extra}"
        writer.write(f"{head}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n".encode())
        for piece in self.reply.pieces:
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
        if self.reply.hang:
            await self._over.wait()
        if not self.reply.cut:
            writer.write(b"0\r\n\r\n")
            await writer.drain()
