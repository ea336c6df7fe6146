"""Endpoint over HTTP: asks an OpenAI-compatible server for a real answer, and whatever else it serves.

On httpcore, the transport under httpx: importing httpx takes 0.15 s more, which every `status` would pay.
"""

import asyncio
import json
import os
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpcore

from sparkwright.adapters.completion import Broken, Completion, SseReader
from sparkwright.adapters.other_kinds import probe_of, read_proof
from sparkwright.adapters.tls import tls_context
from sparkwright.domain.codec import from_tree
from sparkwright.domain.command import Secret
from sparkwright.domain.deployment import Answer
from sparkwright.domain.errors import NotReady
from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.live import GatewayUse
from sparkwright.domain.probed import Reply
from sparkwright.domain.recipe import ModelKind
from sparkwright.domain.values import dataclass
from sparkwright.gateway.caddy import FLIGHTS
from sparkwright.ports import UNTRUSTED, Clock

_SHOWN = 300  # characters of an answer in a message
_MOST_BYTES = 16 << 20  # of an answer
_HINT_REACH = "is it started, and is the address right? `curl {url}` shows what answers there"
_HINT_TRUST = (
    "name its CA: SSL_CERT_FILE=FILE. Of a gateway of ours: `sparkwright up RECIPE` of what serves writes ca.crt on "
    "this machine and leaves the engine alone; or copy it from the machine where `up` was called"
)
_HINT_LOG = "read the engine's log (`sparkwright logs`); /health alone proves nothing"
_QUICK = {"timeout": {"connect": 2.0, "read": 2.0}}  # seconds, for what answers at once or not at all
_SIMULATED = "x-sparkwright-simulated"
# What is wrong with the address, the way there, or the protocol; ValueError: a URL that is none.
ERRORS = (
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
    """Implements ports.Endpoint. Never goes through a proxy of the environment; a connection for each request.

    authority: a file with one more certificate to trust.
    """

    def __init__(self, clock: Clock, timeouts: HttpTimeouts | None = None, authority: str = "") -> None:
        self._clock, self._authority = clock, authority
        self._timeouts = timeouts or HttpTimeouts()

    async def get(self, url: str, key: Secret | None, seconds: float) -> Reply:
        return await self._reply("GET", url, "", key, seconds)

    async def post(self, url: str, body: str, key: Secret | None, seconds: float) -> Reply:
        return await self._reply("POST", url, body, key, seconds)

    async def _reply(self, method: str, url: str, body: str, key: Secret | None, seconds: float) -> Reply:
        try:
            async with asyncio.timeout(seconds):
                return await self._read(_HttpRequest(method, url, key, body.encode() or None), seconds + 1.0)
        except TimeoutError:
            what = f"no whole answer within {seconds:.0f} s"
        except httpcore.ConnectTimeout:
            what = f"no connection within {self._timeouts.connect:.0f} s"
        except ERRORS as error:
            if isinstance(cause := _innermost(error), ssl.SSLCertVerificationError):
                raise NotReady(
                    f"{url}: its certificate is not trusted here ({cause.verify_message})", _HINT_TRUST
                ) from None
            what = reason_of(error)
        raise NotReady(f"{url}: {what}", _HINT_REACH.format(url=url))

    async def _read(self, request: "_HttpRequest", silence: float) -> Reply:
        """The answer, up to _MOST_BYTES of its body."""
        began = self._clock.monotonic()
        first, body = 0.0, bytearray()
        async with self._request(request, silence) as response:
            async for part in response.aiter_stream():
                first = first or self._clock.monotonic() - began
                body += part
                if len(body) > _MOST_BYTES:
                    break
        text = body.decode("utf-8", "replace")
        return Reply(response.status, plain_headers(response), text, self._clock.monotonic() - began, first)

    async def ask(self, base_url: str, model: str, prompt: str, max_tokens: int, key: Secret | None) -> Answer:
        return await self._answer(base_url, _chat_body(model, prompt, max_tokens), key)

    async def greedy(self, base_url: str, model: str, prompt: str, max_tokens: int, key: Secret | None) -> Answer:
        return await self._answer(base_url, {**_chat_body(model, prompt, max_tokens), "temperature": 0}, key)

    async def prove(self, base_url: str, model: str, kind: ModelKind, key: Secret | None) -> Answer:
        probe, began = probe_of(kind, model), self._clock.monotonic()
        url = f"{_root(base_url)}{probe.path}"
        try:
            reply = await self._read(_HttpRequest("POST", url, key, probe.body, probe.kind), self._timeouts.silence)
            if reply.status != 200:
                raise ValueError(f"HTTP {reply.status}: {reply.body.strip()[:_SHOWN]}")
            text, tokens = read_proof(kind, reply.body)
        except ERRORS as error:
            what = str(error) if isinstance(error, ValueError) else reason_of(error)
            raise NotReady(f"{url}: no {kind} in the answer, but {what}", _HINT_LOG) from None
        took = self._clock.monotonic() - began
        return Answer(text, tokens, 0, took, took, _is_simulated(reply.headers))

    async def _answer(self, base_url: str, body: dict[str, Any], key: Secret | None) -> Answer:
        url, heard = f"{_root(base_url)}/v1/chat/completions", Completion()
        try:
            return await self._converse(url, body, key, heard)
        except Broken as broken:
            what = str(broken)
        except ERRORS as error:
            what = reason_of(error)
        so_far = f" (after {heard.events} events: {heard.text[:_SHOWN]!r})" if heard.events else ""
        raise NotReady(f"{url}: no answer with tokens, but {what}{so_far}", _HINT_LOG)

    async def models(self, base_url: str, key: Secret | None) -> tuple[str, ...]:
        """() also when the answer is not a list of models (a proxy, a wrong key): `ask` raises with what came."""
        url = f"{_root(base_url)}/v1/models"
        try:
            reply = await self._read(_HttpRequest("GET", url, key), self._timeouts.models)
            listed = read_json(reply.body).get("data") if reply.status == 200 else None
            return tuple(str(entry["id"]) for entry in listed or ())
        except (*ERRORS, AttributeError, KeyError, TypeError):
            return ()

    async def page(self, base_url: str, path: str, key: Secret | None) -> str | None:
        url = f"{_root(base_url)}/{path.lstrip('/')}"
        try:
            reply = await self._read(_HttpRequest("GET", url, key), self._timeouts.models)
        except ERRORS:
            return None
        return reply.body if reply.status == 200 else None

    async def gateway_use(self, socket: str, deployment: str) -> GatewayUse | None:
        try:
            with _short_path(Path(socket)) as path:
                async with httpcore.AsyncConnectionPool(uds=path) as pool:
                    told = await pool.request("GET", f"http://gateway{FLIGHTS}", extensions=_QUICK)
            return from_tree(GatewayUse, read_json(told.content)[deployment])  # fields may be those of another version
        except (*ERRORS, KeyError, TypeError, AttributeError):
            return None

    async def probe(self, url: str, root: str = "") -> int:
        context = _context_of_root(root)
        try:
            async with self._request(
                _HttpRequest("GET", url, None, context=context), self._timeouts.models
            ) as response:
                return response.status
        except ERRORS as error:
            return UNTRUSTED if isinstance(_innermost(error), ssl.SSLCertVerificationError) else 0

    async def _converse(self, url: str, body: dict[str, Any], key: Secret | None, heard: Completion) -> Answer:
        """Fills `heard` as the stream comes. Raises Broken for an answer without tokens."""
        began = self._clock.monotonic()
        request = _HttpRequest("POST", url, key, json.dumps(body).encode())
        async with self._request(request, self._timeouts.silence) as response:
            await self._listen(response, heard, began)
            total, tokens = self._clock.monotonic() - began, heard.completion_tokens
            if not tokens:
                raise Broken("0 tokens by its `usage`" if tokens == 0 else "no `usage` in the stream")
            simulated = _is_simulated(plain_headers(response))
            first = heard.first if heard.first is not None else total
            return Answer(heard.text, heard.prompt_tokens, tokens, first, total, simulated)

    async def _listen(self, response: httpcore.Response, heard: Completion, began: float) -> None:
        """Reads until [DONE]. Raises Broken when something else came."""
        kind = plain_headers(response).get("content-type", "")
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
    async def _request(self, request: "_HttpRequest", silence: float) -> AsyncIterator[httpcore.Response]:
        timeout = {"connect": self._timeouts.connect, "read": silence, "write": silence, "pool": silence}
        context = request.context or tls_context(request.url, self._authority)
        kind: list[tuple[str | bytes, str | bytes]] = [("Content-Type", request.kind)] if request.body else []
        headers = [*kind, ("Authorization", f"Bearer {request.key.reveal()}")] if request.key else kind
        asked: dict[str, Any] = {"headers": headers, "content": request.body, "extensions": {"timeout": timeout}}
        async with (
            httpcore.AsyncConnectionPool(ssl_context=context) as pool,
            pool.stream(request.method, request.url, **asked) as response,
        ):
            yield response


@dataclass(frozen=True, slots=True)
class _HttpRequest:
    """kind: of the body. context: the certificates to trust, None for the usual ones."""

    method: str
    url: str
    key: Secret | None
    body: bytes | None = None
    kind: str = "application/json"
    context: ssl.SSLContext | None = None


def _context_of_root(root: str) -> ssl.SSLContext:
    """Context that trusts one root alone, whatever host it speaks for; any certificate where that cannot be read."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    try:
        made.load_verify_locations(cadata=root)
    except (ssl.SSLError, ValueError):
        made.verify_mode = ssl.CERT_NONE
    return made


@contextmanager
def _short_path(socket: Path) -> Iterator[str]:
    """Yields a path to the socket that fits into the 107 bytes which the kernel takes."""
    folder = os.open(socket.expanduser().parent, os.O_PATH)
    try:
        yield f"/proc/self/fd/{folder}/{socket.name}"
    finally:
        os.close(folder)


def _chat_body(model: str, prompt: str, max_tokens: int) -> dict[str, Any]:
    """The body of a streamed chat completion with its usage at the end."""
    messages = [{"role": "user", "content": prompt}]
    wanted = {"stream": True, "stream_options": {"include_usage": True}}
    return {"model": model, "messages": messages, "max_tokens": max_tokens, **wanted}


def _is_simulated(headers: Mapping[str, str]) -> bool:
    """True if the server says that no model runs behind it."""
    return headers.get(_SIMULATED, "").lower() not in ("", "0", "false", "no")


def _root(base_url: str) -> str:
    """The server's root, whether or not the user wrote the `/v1` that OpenAI clients want."""
    return base_url.rstrip("/").removesuffix("/v1")


def plain_headers(response: httpcore.Response) -> dict[str, str]:
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


def reason_of(error: Exception) -> str:
    """The innermost cause: httpcore's own text for a refused connection is `All connection attempts failed`."""
    if isinstance(error, httpcore.TimeoutException):
        return f"silence until the time was up ({type(error).__name__})"
    cause = _innermost(error)
    if isinstance(cause, ConnectionError) and not isinstance(cause, ConnectionRefusedError):
        return "the connection was cut"  # by a server, or a tunnel to one, that is not there (yet)
    if isinstance(cause, OSError):
        return (os.strerror(cause.errno) if cause.errno and cause.errno > 0 else cause.strerror or str(cause)).lower()
    return f"{type(error).__name__}: {error}"


def _innermost(error: Exception) -> BaseException:
    """The exception that was raised first."""
    cause: BaseException = error
    while inner := cause.__cause__ or cause.__context__:
        cause = inner
    return cause


_LISTED_WITHIN = 5.0  # seconds for a whole list
_LISTED_FOR = 1.0  # seconds for which a list is remembered
_MOST_LISTED = 4 << 20  # bytes
Rows = tuple[dict[str, Any], ...]


class ModelLists:
    """The models that engines list at /v1/models, remembered for a second: many clients may ask at once. clock:
    monotonic."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._known: dict[tuple[str, str], tuple[float, asyncio.Future[Rows]]] = {}

    async def listed(self, engine: str, key: str) -> Rows:
        """The rows of `host:port`, as of `listed_by`."""
        now = self._clock()
        for one in [one for one, (at, asked) in self._known.items() if asked.done() and now - at >= _LISTED_FOR]:
            del self._known[one]
        if (engine, key) not in self._known:
            self._known[engine, key] = (now, asyncio.ensure_future(listed_by(engine, key)))
        return await asyncio.shield(self._known[engine, key][1])  # who leaves does not end it for others


async def listed_by(engine: str, key: str) -> Rows:
    """The rows of /v1/models of `host:port`; () for no whole answer within 5 s and 4 MiB. key: '' for none."""
    headers = [("Authorization", f"Bearer {key}")] if key else []
    body = bytearray()
    try:
        async with (
            asyncio.timeout(_LISTED_WITHIN),
            httpcore.AsyncConnectionPool() as pool,
            pool.stream("GET", f"http://{engine}/v1/models", headers=headers, extensions=_QUICK) as answer,
        ):
            async for part in answer.aiter_stream():
                body += part
                if len(body) > _MOST_LISTED:
                    return ()
        rows = read_json(bytes(body))["data"]
        return tuple(row for row in rows if isinstance(row, dict))
    except (*ERRORS, TimeoutError, KeyError, TypeError):
        return ()
