"""Endpoint over HTTP: asks an OpenAI-compatible server for a real answer.

On httpcore, the transport under httpx: importing httpx takes 0.15 s more, which every `status` would pay.
"""

import json
import os
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpcore

from sparkwright.adapters.completion import Broken, Completion
from sparkwright.adapters.sse import SseReader
from sparkwright.domain.command import Secret
from sparkwright.domain.deployment import Answer
from sparkwright.domain.errors import NotReady
from sparkwright.ports import Clock

_SHOWN = 300
_HINT = "read the engine's log (`sparkwright logs`); /health alone proves nothing"
_UPSTREAMS, _SOON = "http://gateway/reverse_proxy/upstreams", {"timeout": {"connect": 2.0, "read": 2.0}}
_NO_HOST = [("Host", "")]  # what Caddy's admin API wants on a socket
_SIMULATED = "x-sparkwright-simulated"
# ValueError: a URL that is none.
_ERRORS = (
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.TimeoutException,
    httpcore.UnsupportedProtocol,
    OSError,
    ValueError,
)


@dataclass(frozen=True, slots=True)
class HttpTimeouts:
    """Seconds. silence: between two reads, so also until the first token (a first request may still compile)."""

    connect: float = 5.0
    silence: float = 120.0
    models: float = 5.0


class OpenAiEndpoint:
    """Implements ports.Endpoint. Never goes through a proxy of the environment: nodes are near."""

    def __init__(self, clock: Clock, timeouts: HttpTimeouts | None = None) -> None:
        self._clock = clock
        self._timeouts = timeouts or HttpTimeouts()

    async def ask(self, base_url: str, model: str, prompt: str, max_tokens: int, key: Secret | None) -> Answer:
        return await self._asked(base_url, _question(model, prompt, max_tokens), key)

    async def greedy(self, base_url: str, model: str, prompt: str, max_tokens: int, key: Secret | None) -> Answer:
        return await self._asked(base_url, {**_question(model, prompt, max_tokens), "temperature": 0}, key)

    async def _asked(self, base_url: str, body: dict[str, Any], key: Secret | None) -> Answer:
        url, heard = f"{_root(base_url)}/v1/chat/completions", Completion()
        try:
            return await self._converse(url, body, key, heard)
        except Broken as broken:
            what = str(broken)
        except _ERRORS as error:
            what = _said(error)
        raise NotReady(f"{url}: no answer with tokens, but {what}{_so_far(heard)}", _HINT)

    async def models(self, base_url: str, key: Secret | None) -> tuple[str, ...]:
        """() also when the answer is not a list of models (a proxy, a wrong key): `ask` says what came."""
        url = f"{_root(base_url)}/v1/models"
        try:
            async with self._request("GET", url, key) as response:
                body = await response.aread()
            listed = json.loads(body).get("data") if response.status == 200 else None
            return tuple(str(entry["id"]) for entry in listed or ())
        except (*_ERRORS, AttributeError, KeyError, TypeError, RecursionError):
            return ()

    async def page(self, base_url: str, path: str, key: Secret | None) -> str | None:
        url = f"{_root(base_url)}/{path.lstrip('/')}"
        try:
            async with self._request("GET", url, key) as response:
                body = await response.aread()
        except _ERRORS:
            return None
        return body.decode("utf-8", "replace") if response.status == 200 else None

    async def in_flight(self, socket: str) -> int:
        """By https://caddyserver.com/docs/api#get-reverse-proxyupstreams."""
        try:
            with _short(Path(socket)) as path:
                async with httpcore.AsyncConnectionPool(uds=path) as pool:
                    told = await pool.request("GET", _UPSTREAMS, headers=_NO_HOST, extensions=_SOON)
            counted = [one["num_requests"] for one in json.loads(told.content) if ".sock" not in one["address"]]
            return sum(map(int, counted))
        except (*_ERRORS, KeyError, TypeError, AttributeError, RecursionError):
            return 0

    async def probe(self, url: str) -> int:
        whoever = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        whoever.check_hostname, whoever.verify_mode = False, ssl.CERT_NONE
        try:
            async with self._request("GET", url, None, context=whoever) as response:
                return response.status
        except _ERRORS:
            return 0

    async def _converse(self, url: str, body: dict[str, Any], key: Secret | None, heard: Completion) -> Answer:
        began = self._clock.monotonic()
        async with self._request("POST", url, key, body) as response:
            await self._listen(response, heard, began)
            return _answer(heard, self._clock.monotonic() - began, _plain(response))

    async def _listen(self, response: httpcore.Response, heard: Completion, began: float) -> None:
        """Reads until [DONE]. Raises Broken when something else came."""
        kind = _plain(response).get("content-type", "")
        if response.status != 200 or not kind.startswith("text/event-stream"):
            raise Broken(f"HTTP {response.status}: {await _opening(response)}")
        reader = SseReader()
        async for chunk in response.aiter_stream():
            at = self._clock.monotonic() - began
            for data in reader.feed(chunk):
                heard.take(data, at)
            if heard.done:
                return
        raise Broken("the stream was cut before [DONE]")

    @asynccontextmanager
    async def _request(
        self,
        method: str,
        url: str,
        key: Secret | None,
        body: Any = None,
        context: ssl.SSLContext | None = None,
    ) -> AsyncIterator[httpcore.Response]:
        silence = self._timeouts.models if body is None else self._timeouts.silence
        timeout = {"connect": self._timeouts.connect, "read": silence, "write": silence, "pool": silence}
        content = json.dumps(body).encode() if body is not None else None
        async with (
            httpcore.AsyncConnectionPool(ssl_context=context or _context(url)) as pool,
            pool.stream(
                method, url, headers=_headers(key, body), content=content, extensions={"timeout": timeout}
            ) as response,
        ):
            yield response


@contextmanager
def _short(socket: Path) -> Iterator[str]:
    """A socket's path may have no more than 107 bytes."""
    folder = os.open(socket.expanduser().parent, os.O_PATH)
    try:
        yield f"/proc/self/fd/{folder}/{socket.name}"
    finally:
        os.close(folder)


def _context(url: str) -> ssl.SSLContext:
    """Reading the system's certificates takes 20 ms, which plain http has no use for."""
    return ssl.create_default_context() if url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _question(model: str, prompt: str, max_tokens: int) -> dict[str, Any]:
    messages = [{"role": "user", "content": prompt}]
    wanted = {"stream": True, "stream_options": {"include_usage": True}}
    return {"model": model, "messages": messages, "max_tokens": max_tokens, **wanted}


def _answer(heard: Completion, total: float, headers: Mapping[str, str]) -> Answer:
    """Raises Broken when the server counted no tokens."""
    tokens = heard.completion_tokens
    if not tokens:
        raise Broken("0 tokens by its `usage`" if tokens == 0 else "no `usage` in the stream")
    simulated = headers.get(_SIMULATED, "").lower() not in ("", "0", "false", "no")
    first = heard.first if heard.first is not None else total
    return Answer(heard.text, heard.prompt_tokens, tokens, first, total, simulated)


def _root(base_url: str) -> str:
    """The server's root, whether or not the user wrote the `/v1` that OpenAI clients want."""
    return base_url.rstrip("/").removesuffix("/v1")


def _headers(key: Secret | None, body: Any) -> list[tuple[str | bytes, str | bytes]]:
    kind: list[tuple[str | bytes, str | bytes]] = [("Content-Type", "application/json")] if body is not None else []
    return [*kind, ("Authorization", f"Bearer {key.reveal()}")] if key else kind


def _plain(response: httpcore.Response) -> dict[str, str]:
    """Headers with lower-case names."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}


async def _opening(response: httpcore.Response) -> str:
    """The first characters of a body that is no stream."""
    text = b""
    async for chunk in response.aiter_stream():
        text += chunk
        if len(text) >= 4 * _SHOWN:
            break
    return text.decode("utf-8", "replace").strip()[:_SHOWN] or "(empty body)"


def _said(error: Exception) -> str:
    """The innermost cause: httpcore's own words for a refused connection are `All connection attempts failed`."""
    if isinstance(error, httpcore.TimeoutException):
        return f"silence until the time was up ({type(error).__name__})"
    cause: BaseException = error
    while inner := cause.__cause__ or cause.__context__:
        cause = inner
    if isinstance(cause, ConnectionError) and not isinstance(cause, ConnectionRefusedError):
        return "the connection was cut"  # by a server, or a tunnel to one, that is not there (yet)
    told = cause if isinstance(cause, OSError) else error
    return f"{type(told).__name__}: {told}"


def _so_far(heard: Completion) -> str:
    return f" (after {heard.events} events: {heard.text[:_SHOWN]!r})" if heard.events else ""
