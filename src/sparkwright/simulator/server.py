"""The HTTP side: vLLM's routes, its key check, its counters, and the mark that all of it is simulated."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sparkwright.simulator import asked, other_apis, other_kinds
from sparkwright.simulator.answers import CHAT, TEXT, Answers, filled
from sparkwright.simulator.asked import ApiError, json_response
from sparkwright.simulator.log import LogVoice
from sparkwright.simulator.metrics import Metrics

LISTED = [
    ("/openapi.json", "HEAD, GET"),
    ("/docs", "HEAD, GET"),
    ("/docs/oauth2-redirect", "HEAD, GET"),
    ("/redoc", "HEAD, GET"),
    ("/metrics", "GET"),
]
"""What vLLM 0.21.0 lists of its routes at start (captures)."""
HEADER = (b"x-sparkwright-simulated", b"1")
UNCOUNTED = ("/metrics", "/health", "/load", "/ping", "/version", "/server_info")
THAW_S = 0.1
Handler = Callable[[Request], Awaitable[Response]]


@dataclass(slots=True)
class Server:
    """The handlers that need no engine step of their own."""

    answers: Answers
    metrics: Metrics
    root: str
    voice: LogVoice
    frozen: Callable[[], bool] = lambda: False
    active: int = 0

    async def health(self, request: Request) -> Response:
        return Response(status_code=503 if self.answers.engine.dead else 200)

    async def version(self, request: Request) -> Response:
        return json_response({"version": "0.21.0", "simulated": True})

    async def load(self, request: Request) -> Response:
        return json_response({"server_load": self.active})

    async def scrape(self, request: Request) -> Response:
        return Response(self.metrics.render(), media_type="text/plain; version=1.0.0; charset=utf-8")

    async def models(self, request: Request) -> Response:
        return json_response(listed(self.answers.rules, self.root))

    async def tokenize(self, request: Request) -> Response:
        body = asked.parsed(await request.body(), "/tokenize", "tokenize", {})
        rules = self.answers.rules
        if "messages" in body:
            tokens = asked.check_chat({**body, "max_tokens": 1}, rules).prompt
        else:
            tokens = rules.tokenizer.encode(str(body.get("prompt", "")))
        texts = [rules.tokenizer.decode([t]) for t in tokens] if body.get("return_token_strs") else None
        answer = {"count": len(tokens), "max_model_len": rules.context, "tokens": tokens, "token_strs": texts}
        return json_response(answer)

    async def detokenize(self, request: Request) -> Response:
        body = asked.parsed(await request.body(), "/detokenize", "detokenize", {"tokens": list})
        return json_response({"prompt": self.answers.rules.tokenizer.decode(body["tokens"])})

    async def page(self, request: Request) -> Response:
        return HTMLResponse("<p>(simulated) sparkwright's simulator of vLLM 0.21.0</p>")

    async def not_simulated(self, request: Request) -> Response:
        raise ApiError(501, "(simulated) The simulator does not do this.", "NotImplementedError")

    def app(self, keys: tuple[str, ...]) -> ASGIApp:
        gets = [("/health", self.health), ("/version", self.version), ("/load", self.load), ("/metrics", self.scrape)]
        posts: list[tuple[str, Handler]] = [
            *((CHAT, self.answers.chat), (TEXT, self.answers.complete), ("/tokenize", self.tokenize)),
            (other_apis.RESPONSES, partial(other_apis.responses, self.answers)),
            (other_apis.MESSAGES, partial(other_apis.messages, self.answers)),
            (other_apis.COUNT, partial(other_apis.count_tokens, self.answers)),
            (other_kinds.EMBEDDINGS, partial(other_kinds.embeddings, self.answers)),
            (other_kinds.RERANK, partial(other_kinds.rerank, self.answers)),
            (other_kinds.TRANSCRIPTIONS, partial(other_kinds.transcriptions, self.answers)),
        ]
        routes = [
            *(Route(path, handler) for path, handler in [*gets, ("/v1/models", self.models), ("/docs", self.page)]),
            Route("/ping", self.health, methods=["GET", "POST"]),
            *(Route(path, self._checked(handler), methods=["POST"]) for path, handler in posts),
            Route("/detokenize", self._checked(self.detokenize), methods=["POST"]),
            Route("/invocations", self._checked(self.not_simulated), methods=["POST"]),
        ]
        plain = Starlette(routes=routes, exception_handlers={HTTPException: _plain_error})
        return Thawed(Shell(plain, self.metrics, keys), self.frozen)

    def _checked(self, handler: Handler) -> Handler:
        async def run(request: Request) -> Response:
            self.active += 1
            try:
                return await handler(request)
            except ApiError as error:
                if error.kind == "NotFoundError":
                    info = f"message='{error}', type='{error.kind}', param='{error.param}', code={error.status}"
                    self.voice.line("serving.py:214", info=info)
                return error.response()
            finally:
                self.active -= 1

        return run


async def _plain_error(request: Request, error: Exception) -> Response:
    """FastAPI's own bodies for unknown routes and wrong methods."""
    known = error if isinstance(error, HTTPException) else HTTPException(500)
    return json_response({"detail": known.detail}, known.status_code, vary=False)


def listed(rules: asked.Rules, root: str) -> dict[str, object]:
    """The body of /v1/models."""
    return {"object": "list", "data": [_model(name, root, rules.context) for name in rules.names]}


def _model(name: str, root: str, context: int) -> dict[str, object]:
    now = int(time.time())
    permission = filled("permission", id=f"modelperm-{uuid.uuid4().hex[:16]}", created=now)
    return filled("model", id=name, created=now, root=root, max_model_len=context, permission=[permission])


def below_v1(path: str) -> bool:
    return path.startswith("/v1")


class Thawed:
    """A process that, while `frozen` is true, takes connections and neither reads nor answers: streams stop too."""

    def __init__(self, app: ASGIApp, frozen: Callable[[], bool]) -> None:
        self.app = app
        self.frozen = frozen

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def late(message: Message) -> None:
            await self._thaw()
            await send(message)

        await self._thaw()
        await self.app(scope, receive, late)

    async def _thaw(self) -> None:
        while self.frozen():  # noqa: ASYNC110 - a fault in a file: there is no event for it
            await asyncio.sleep(THAW_S)


class Shell:
    """The shell around every request: the key (vLLM: only below /v1), the mark, and the http_* counters."""

    def __init__(
        self, app: ASGIApp, metrics: Metrics, keys: tuple[str, ...], guarded: Callable[[str], bool] = below_v1
    ) -> None:
        self.app = app
        self.metrics = metrics
        self.keys = tuple(f"Bearer {k}".encode() for k in keys)
        self.guarded = guarded

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        seen = {"status": 500, "size": 0}

        async def marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], HEADER]}
                seen["status"] = message["status"]
                seen["size"] = int(dict(message["headers"]).get(b"content-length", 0))
            await send(message)

        if self._allowed(scope):
            await self.app(scope, receive, marked)
        else:
            await json_response({"error": "Unauthorized"}, 401, vary=False)(scope, receive, marked)
        self._count(scope, seen, time.perf_counter() - began)

    def _allowed(self, scope: Scope) -> bool:
        if not self.keys or not self.guarded(scope["path"]) or scope["method"] == "OPTIONS":
            return True
        return dict(scope["headers"]).get(b"authorization", b"") in self.keys

    def _count(self, scope: Scope, seen: dict[str, int], seconds: float) -> None:
        if scope["path"] in UNCOUNTED:
            return
        m, path, method = self.metrics, scope["path"], scope["method"]
        size = int(dict(scope["headers"]).get(b"content-length", 0))
        m.add("http_requests_total", handler=path, method=method, status=f"{seen['status'] // 100}xx")
        m.observe("http_request_size_bytes", size, handler=path)
        m.observe("http_response_size_bytes", seen["size"], handler=path)
        m.observe("http_request_duration_highr_seconds", seconds)
        m.observe("http_request_duration_seconds", seconds, handler=path, method=method)
