"""A server that does exactly what a script states and keeps its own log of when it did."""

import asyncio
import json
import re
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
LAST = b"0\r\n\r\n"
CLOSE = b""  # as a step's bytes: close the connection


@dataclass(frozen=True)
class ScriptStep:
    """A step of a script. after: seconds since the request was read whole. token: True if the first token is in these
    bytes."""

    after: float
    sent: bytes


@dataclass
class SeenRequest:
    """One request, by the server's clock. sends: when each step's bytes were given to the kernel."""

    number: int
    connection: int
    head: str
    body: bytes
    received: float
    sends: list[float] = field(default_factory=list)

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Script = Callable[[SeenRequest], Sequence[ScriptStep]]


@dataclass
class Truth:
    """The server: its URL, what it saw, and how late its own loop was at most, seconds."""

    late: float = 0.0
    url: str = ""
    port: int = 0
    connections: int = 0
    seen: list[SeenRequest] = field(default_factory=list)


@asynccontextmanager
async def truth_server(
    script: Script, secure: ssl.SSLContext | None = None, host: str = "127.0.0.1", gone_after: float = 1e9
) -> AsyncIterator[Truth]:
    """gone_after: seconds of idling after which it closes a connection."""
    told = Truth()
    tasks: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())  # type: ignore[arg-type]
        told.connections += 1
        connection = told.connections
        try:
            while seen := await asyncio.wait_for(_request(reader, told, connection), gone_after):
                if not await _play(script(seen), seen, writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError, TimeoutError):
            pass
        finally:
            writer.transport.abort() if writer.transport.is_closing() else writer.close()

    async def beat() -> None:
        while True:
            before = perf_counter()
            await asyncio.sleep(0.01)
            told.late = max(told.late, perf_counter() - before - 0.01)

    tasks.add(asyncio.ensure_future(beat()))
    server = await asyncio.start_server(serve, host, 0, ssl=secure, limit=1 << 26)
    told.port = server.sockets[0].getsockname()[1]
    name = f"[{host}]" if ":" in host else host
    told.url = f"{'https' if secure else 'http'}://{name}:{told.port}/v1/chat/completions"
    try:
        yield told
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _request(reader: asyncio.StreamReader, told: Truth, connection: int) -> SeenRequest | None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    length = re.search(r"content-length: (\d+)", head, re.IGNORECASE)
    body = await reader.readexactly(int(length[1]) if length else 0)
    seen = SeenRequest(len(told.seen), connection, head, body, perf_counter())
    told.seen.append(seen)
    return seen


async def _play(steps: Sequence[ScriptStep], seen: SeenRequest, writer: asyncio.StreamWriter) -> bool:
    for step in steps:
        await asyncio.sleep(max(0.0, seen.received + step.after - perf_counter()))
        if step.sent == CLOSE:
            return False
        seen.sends.append(perf_counter())
        writer.write(step.sent)
        await writer.drain()
    return True


def sse_event(body: dict[str, Any] | str) -> bytes:
    return b"data: " + (body if isinstance(body, str) else json.dumps(body)).encode() + b"\n\n"


def chunked(*events: bytes) -> bytes:
    """Each event in an HTTP chunk of its own, all in one write."""
    return b"".join(b"%x\r\n%s\r\n" % (len(one), one) for one in events)


def delta_event(finish: str | None = None, usage: int | None = None, **content: Any) -> bytes:
    more = {} if usage is None else {"usage": {"prompt_tokens": 5, "completion_tokens": usage}}
    return sse_event({"choices": [{"index": 0, "delta": content, "finish_reason": finish}], **more})


ROLE = delta_event(role="assistant", content="")


def ending(tokens: int | None, **more: Any) -> bytes:
    """The usage chunk, [DONE] and the end of the body, in one write."""
    usage = {"prompt_tokens": 5, "completion_tokens": tokens, **more}
    told = [] if tokens is None else [sse_event({"choices": [], "usage": usage})]
    return chunked(*told, sse_event("[DONE]")) + LAST


def steady(tokens: int = 4, first: float = 0.05, gap: float = 0.05) -> Script:
    """The head at once, the role and the first token together, one token a chunk."""

    def script(_seen: SeenRequest) -> list[ScriptStep]:
        at = [first + number * gap for number in range(tokens)]
        begin = ScriptStep(at[0], chunked(ROLE, delta_event(content="a")))
        middle = [ScriptStep(when, chunked(delta_event(content="b"))) for when in at[1:-1]]
        last = [ScriptStep(at[-1], chunked(delta_event("length", content="c")) + ending(tokens))] if tokens > 1 else []
        return [ScriptStep(0.0, HEAD), begin, *middle, *last]

    return script


def plain_answer(status: str, body: Any, *headers: str) -> list[ScriptStep]:
    """An answer that is no stream."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status}", "content-type: application/json", f"content-length: {len(content)}", *headers]
    return [ScriptStep(0.0, "\r\n".join(lines).encode() + b"\r\n\r\n" + content)]
