"""Clients at the gateway: streaming requests of mixed lengths at a steady rate, and a probe next to them."""

import asyncio
import json
import random
import ssl
import time
from dataclasses import dataclass, field
from typing import Any

import httpcore

from drills.fate import Fate, RequestEnd, SentRequest, error_of, judged
from sparkwright.adapters.completion import SseReader

ERRORS = (httpcore.NetworkError, httpcore.ProtocolError, httpcore.ConnectTimeout, OSError)
WORDS = ("plan", "link", "node", "rank", "block", "cache", "token", "memory", "weight", "engine", "answer", "prompt")


@dataclass(frozen=True, slots=True)
class GatewayTarget:
    """The clients' endpoint. url: with /v1; name: what the certificate states; patience: seconds until a client gives
    up."""

    url: str
    key: str
    model: str
    context: ssl.SSLContext | None = None
    name: str = ""
    patience: float = 60.0


@dataclass(frozen=True, slots=True)
class TrafficLoad:
    """Requests a second, and their sizes: words of the prompt and tokens of the answer, evenly between the two.

    shared: words that all prompts begin with.
    """

    rate: float = 2.0
    prompt: tuple[int, int] = (20, 400)
    tokens: tuple[int, int] = (8, 96)
    shared: int = 0


@dataclass
class TrafficClient:
    """One pool of connections; what it sent and what became of it."""

    gateway: GatewayTarget
    seed: int = 1
    reuse: bool = True
    """Connections are used again; else each request makes its own, and meets the process that listens now."""
    waiting: set[float] = field(default_factory=set)
    """When each that is under way was sent."""
    requests: list[SentRequest] = field(default_factory=list)
    probes: list[SentRequest] = field(default_factory=list)
    _pool: httpcore.AsyncConnectionPool = field(init=False)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        idle = None if self.reuse else 0
        self._pool = httpcore.AsyncConnectionPool(
            self.gateway.context, max_connections=400, max_keepalive_connections=idle
        )
        self._dice = random.Random(self.seed)

    async def traffic(self, load: TrafficLoad) -> None:
        """Sends requests for ever; arrivals at random around the rate, whatever becomes of the earlier ones."""
        while True:
            self.launch(self.ask(self.body(load)), self.requests)
            await asyncio.sleep(self._dice.expovariate(load.rate))

    async def probing(self, every: float = 0.2) -> None:
        """Probes for ever with a cheap request, which meets the gateway's decision and otherwise just the engine's web
        server."""
        while True:
            self.launch(self.fetch("GET", "/models", None), self.probes)
            await asyncio.sleep(every)

    def launch(self, work: Any, into: list[SentRequest]) -> None:
        async def run() -> None:
            into.append(await work)

        task = asyncio.create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def body(self, load: TrafficLoad) -> dict[str, Any]:
        words = " ".join(self._dice.choices(WORDS, k=self._dice.randint(*load.prompt)))
        shared = " ".join(WORDS[n % len(WORDS)] for n in range(load.shared))
        messages = [{"role": "user", "content": f"{shared} {self._dice.random()} {words}"}]
        limit = {"max_tokens": self._dice.randint(*load.tokens), "stream": True, "ignore_eos": True}
        return {"model": self.gateway.model, "messages": messages, **limit}

    async def ask(self, body: dict[str, Any]) -> SentRequest:
        return await self.fetch("POST", "/chat/completions", body)

    async def fetch(self, method: str, path: str, body: dict[str, Any] | None) -> SentRequest:
        """Never raises: what went wrong is part of the fate."""
        seen = _Seen(time.time())
        self.waiting.add(seen.sent)
        try:
            async with asyncio.timeout(self.gateway.patience):
                await self._hear(method, path, body, seen)
            seen.end = RequestEnd.CLOSED
        except TimeoutError:
            seen.end = RequestEnd.SILENT
        except ERRORS as error:
            seen.end, seen.said = RequestEnd.CUT, f"{type(error).__name__}: {error}"
        finally:
            self.waiting.discard(seen.sent)
        return seen.request(stream=body is not None)

    async def _hear(self, method: str, path: str, body: dict[str, Any] | None, seen: "_Seen") -> None:
        headers = [("Authorization", f"Bearer {self.gateway.key}"), ("Content-Type", "application/json")]
        extensions: dict[str, Any] = {"sni_hostname": self.gateway.name} if self.gateway.name else {}
        extensions["timeout"] = {"connect": 5.0, "read": None, "write": None, "pool": None}
        content = json.dumps(body).encode() if body is not None else None
        request = self._pool.stream(
            method, self.gateway.url + path, headers=headers, content=content, extensions=extensions
        )
        async with request as response:
            seen.status = response.status
            seen.retry = next((v.decode() for k, v in response.headers if k.lower() == b"retry-after"), "")
            async for chunk in response.aiter_stream():
                seen.take(chunk)

    async def settle(self) -> None:
        """Waits for all that is under way: each ends in a fate."""
        while self._tasks:
            await asyncio.gather(*self._tasks)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._pool.aclose()


@dataclass
class _Seen:
    sent: float
    status: int = 0
    first: float = 0.0
    end: RequestEnd = RequestEnd.CUT
    said: str = ""
    retry: str = ""
    raw: bytes = b""
    events: list[str] = field(default_factory=list)
    reader: SseReader = field(default_factory=SseReader)

    def take(self, chunk: bytes) -> None:
        self.first = self.first or time.time()
        if self.status == 200:
            self.events += self.reader.feed(chunk)
        else:
            self.raw += chunk[:4000]

    def request(self, stream: bool) -> SentRequest:
        text = self.raw.decode("utf-8", "replace")
        fate = judged(self.status, self.events, self.end)
        if not stream and self.status == 200 and self.end is RequestEnd.CLOSED:
            fate = Fate.ANSWERED
        error = error_of(text) or next((e for e in map(error_of, self.events) if e), {})
        said = self.said or str(error.get("message", "")) or text[:200]
        return SentRequest(self.sent, time.time(), fate, self.status, self.first, bool(error), self.retry, said)
