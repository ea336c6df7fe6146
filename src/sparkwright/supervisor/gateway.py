"""The key check: Caddy shows it every request before the engine sees it. A small process next to the supervisor.

It lives on when the supervisor ends: what is not known to be away is let through. It listens on a unix socket in a
folder that nobody else can enter, and on loopback for scrapers of its metrics.
"""

import asyncio
import json
import os
import resource
import socket
import sys
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Generic, TypeVar

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request as Asked
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from sparkwright.adapters.exporter import CONTENT_TYPE, Exporter
from sparkwright.adapters.machine import SystemClock
from sparkwright.domain.codec import Unreadable, from_json
from sparkwright.domain.live import Live
from sparkwright.gateway import caddy, decide
from sparkwright.gateway.decide import Answer
from sparkwright.gateway.keys import FILE, GatewaySetting, Keys, digest, owner, parse, shown_in
from sparkwright.gateway.keys import Key as GatewayKey
from sparkwright.ports import Clock

T = TypeVar("T")
_PAUSE = 0.2


class Watched(Generic[T]):
    """`parse` raises ValueError for what cannot be read. A missing file is `empty`, at once.

    A file that cannot be read is tried again at most every 0.2 s. Meanwhile what was read before counts, for `patience`
    seconds; then it is `empty` until a read succeeds. clock: monotonic seconds.
    """

    def __init__(
        self, path: Path, parse: Callable[[bytes], T], empty: T, clock: Callable[[], float], patience: float = inf
    ) -> None:
        self._path, self._parse, self._empty = path, parse, empty
        self._clock, self._patience = clock, patience
        self._seen: tuple[int, int, int] | None = None
        self._failed: float | None = None
        self._again = -inf
        self._value = empty

    @property
    def value(self) -> T:
        if self._clock() >= self._again:
            self._refresh()
        return self._value

    @property
    def given_up(self) -> bool:
        """Whether `empty` counts because the file has not been readable for longer than `patience`."""
        return self._failed is not None and self._clock() - self._failed > self._patience

    def _refresh(self) -> None:
        try:
            seen = self._mark()
            if seen != self._seen or self._failed is not None:
                self._value = self._parse(self._path.read_bytes()) if seen else self._empty
                self._seen, self._failed = seen, None
        except (OSError, ValueError) as error:
            self._postpone(error)

    def _postpone(self, error: Exception) -> None:
        now = self._clock()
        if self._failed is None:
            self._failed = now
            sys.stderr.write(f"{self._path}: cannot be read and is tried again: {error}\n")
        self._again = now + _PAUSE
        if self.given_up:
            self._value = self._empty

    def _mark(self) -> tuple[int, int, int] | None:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size


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
    """One server, two listeners: Caddy comes by the unix socket, scrapers of metrics by loopback."""

    def __init__(self, home: Path, checker: KeyCheck) -> None:
        self._inside = Starlette(routes=[Route(caddy.CHECK, checker.check), Route(caddy.TROUBLE, checker.trouble)])
        # Answers scrapes with what the supervisor in `home` wrote last
        exporter = Exporter(home)

        async def metrics(_: Asked) -> Response:
            return Response(exporter.page(), headers={"content-type": CONTENT_TYPE})

        self._figures = Starlette(routes=[Route("/metrics", metrics)])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        _, port = scope.get("server") or ("", None)  # a unix socket has a path and no port
        await (self._inside if port is None else self._figures)(scope, receive, send)


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
