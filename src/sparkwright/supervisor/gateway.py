"""The key check: Caddy shows it every request before the engine sees it. One small process beside the supervisor.

It lives on when the supervisor ends: what is not known to be away is let through. It listens on a unix socket in a
folder that nobody else can enter, and on loopback for those who gather figures.
"""

import asyncio
import json
import os
import resource
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request as Asked
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from sparkwright.adapters.clock import SystemClock
from sparkwright.adapters.exporter import CONTENT_TYPE, Exporter
from sparkwright.domain.codec import Unreadable, from_json
from sparkwright.domain.live import Live
from sparkwright.gateway import caddy, decide
from sparkwright.gateway.answers import Answer
from sparkwright.gateway.keys import Key as GatewayKey
from sparkwright.gateway.keys import Keys, digest, owner, parse, shown_in
from sparkwright.gateway.setting import FILE, GatewaySetting
from sparkwright.ports import Clock
from sparkwright.supervisor.watched import Watched

_LOOK_AGAIN = 0.1
_HEADERS = 128 * 1024
_KEYS_PATIENCE = 2.0
_FILES = 65536
_REST = 300


class KeyCheck:
    """Decides about one request after the other, from files that the supervisor and `sparkwright keys` write."""

    def __init__(self, home: Path, clock: Clock) -> None:
        self._clock, now = clock, clock.monotonic
        file = home / "door" / FILE
        first = from_json(GatewaySetting, file.read_bytes())
        self._setting = Watched(file, lambda text: from_json(GatewaySetting, text), first, now)
        self._live: Watched[Live | None] = Watched(home / "live.json", lambda text: from_json(Live, text), None, now)
        self._keys = Watched(Path(first.keys), parse, Keys(), now, _KEYS_PATIENCE)
        self._secrets: Watched[dict[str, str]] = Watched(home / "secrets.json", _secrets, {}, now)
        self._waiting = 0

    @property
    def setting(self) -> GatewaySetting:
        return self._setting.value

    async def check(self, asked: Asked) -> Response:
        """200 with the engine's key, 204 where it has none, or the client's answer."""
        request, setting = self._request(asked), self.setting
        answer = decide.refused(request, setting.limit, decide.matcher(setting.routes)) or await self._admitted()
        if answer:
            return _response(answer)
        key = self._engine_key
        return Response(headers={caddy.ENGINE_KEY: f"Bearer {key}"}) if key else Response(status_code=204)

    async def trouble(self, _: Asked) -> Response:
        """The engine gave no answer to what was let through."""
        return _response(decide.broken(self._live.value, self._clock.now()))

    @property
    def _engine_key(self) -> str:
        return self._secrets.value.get(self.setting.key_env, "") if self.setting.key_env else ""

    def _request(self, asked: Asked) -> decide.Request:
        shown = shown_in(asked.headers)
        own, deployment = self._engine_key, self.setting.deployment
        keys = (*self._keys.value.keys, *([GatewayKey("", digest(own))] if own else []))
        length = asked.headers.get(caddy.LENGTH, "")
        return decide.Request(
            method=asked.headers.get(caddy.METHOD, ""),
            path=asked.headers.get(caddy.URI, "").partition("?")[0],
            known=owner(keys, deployment, shown) is not None,
            shown=bool(shown),
            length=int(length) if length.isascii() and length.isdigit() else None,
            readable=not self._keys.given_up,
        )

    async def _admitted(self) -> Answer | None:
        """At once, or after a short wait for what is about to be back."""
        began = self._clock.monotonic()
        while True:
            held = self._clock.monotonic() - began
            verdict = decide.admitted(self._live.value, self._clock.now(), held, self._waiting)
            if not isinstance(verdict, decide.Hold):
                return verdict
            self._waiting += 1
            try:
                await self._clock.sleep(_LOOK_AGAIN)
            finally:
                self._waiting -= 1


def _secrets(text: bytes) -> dict[str, str]:
    tree = json.loads(text)
    if not isinstance(tree, dict):
        raise Unreadable(f"{type(tree).__name__}, not dict")
    return {str(name): str(value) for name, value in tree.items()}


def _response(answer: Answer) -> Response:
    return Response(answer.body, answer.status, answer.headers)


class Listeners:
    """One server, two listeners: Caddy comes by the unix socket, whoever gathers figures by loopback."""

    def __init__(self, home: Path, checker: KeyCheck) -> None:
        self._inside = Starlette(routes=[Route(caddy.CHECK, checker.check), Route(caddy.TROUBLE, checker.trouble)])
        self._figures = Starlette(routes=[Route("/metrics", _metrics(home))])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        _, port = scope.get("server") or ("", None)  # a unix socket has a path and no port
        await (self._inside if port is None else self._figures)(scope, receive, send)


def _metrics(home: Path) -> Callable[[Asked], Awaitable[Response]]:
    """Answers scrapes with what the supervisor in `home` wrote last."""
    exporter = Exporter(home)

    async def metrics(_: Asked) -> Response:
        return Response(exporter.page(), headers={"content-type": CONTENT_TYPE})

    return metrics


async def run(home: Path) -> None:
    """Until SIGTERM. Raises Unreadable or OSError when there is no setting to serve."""
    checker = KeyCheck(home, SystemClock())
    server = uvicorn.Server(
        uvicorn.Config(
            Listeners(home, checker),
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            http="h11",
            loop="asyncio",
            timeout_keep_alive=_REST,
            timeout_graceful_shutdown=1,
            h11_max_incomplete_event_size=_HEADERS,
        )
    )
    await server.serve(sockets=_sockets(home / "door", checker.setting.metrics))


def _sockets(folder: Path, metrics: int) -> list[socket.socket]:
    os.chdir(folder)  # a socket's own path may have no more than 107 bytes
    Path(caddy.SERVICE).unlink(missing_ok=True)
    inside = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        inside.bind(caddy.SERVICE)
        inside.listen()  # at once: whoever sees the socket may come
    finally:
        os.umask(before)
    return [inside, *_figures(metrics)]


def _figures(port: int) -> list[socket.socket]:
    """Without its port there are no figures; keys are checked all the same."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError:
        listener.close()
        return []
    return [listener]


def main(home: Path) -> int:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(_FILES, most), most))  # every request takes one or two
    asyncio.run(run(home))
    return 0
