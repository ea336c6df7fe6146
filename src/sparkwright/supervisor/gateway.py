"""The gateway's own process on the head: Caddy hands it every request, and it passes those on that may enter.

It decides from files that supervisors and `sparkwright keys` write, and lives on when a supervisor ends: what is not
known to be away is let through. It listens on a unix socket in a folder that nobody else can enter, and on loopback for
scrapers of its metrics.
"""

import asyncio
import json
import os
import resource
import signal
import socket
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from math import inf
from pathlib import Path

from sparkwright.adapters.exporter import CONTENT_TYPE, Exporters
from sparkwright.adapters.machine import SystemClock
from sparkwright.adapters.openai_http import listed_by
from sparkwright.adapters.sqlite.usage import UsageStore
from sparkwright.adapters.watchdog import watched_by_systemd
from sparkwright.domain.codec import from_json
from sparkwright.gateway import caddy, decide
from sparkwright.gateway.decide import UNKNOWN_MODEL, Answer
from sparkwright.gateway.keys import (
    FRONT,
    FrontSetting,
    Keys,
    Role,
    digest,
    owner,
    parse,
    shown_in,
)
from sparkwright.gateway.keys import Key as GatewayKey
from sparkwright.gateway.models import MODELS, Listed, models_page, names_of
from sparkwright.ports import Clock
from sparkwright.supervisor.behind import Behind, Flight
from sparkwright.supervisor.connection import PIECE, Head, Page
from sparkwright.supervisor.meter import OTHER, Meter, Metered
from sparkwright.supervisor.passing import Passing
from sparkwright.supervisor.watched import Watched

_LOOK_AGAIN = 0.1
_SCAN_EVERY = 0.2
_KEYS_PATIENCE = 2.0
_FILES, _BACKLOG = 65536, 1024


class Doorman:
    """Decides about one request after the other. home: the gateway's own folder, among those of supervisors."""

    def __init__(self, home: Path, clock: Clock) -> None:
        self._clock, self._folder = clock, home.parent
        self.setting = from_json(FrontSetting, (home / "door" / FRONT).read_bytes())
        self._keys = Watched(Path(self.setting.keys), parse, Keys(), clock.monotonic, _KEYS_PATIENCE)
        self._meter = Meter(clock, UsageStore(Path(self.setting.keys).parent))
        self._behind: dict[str, Behind] = {}
        self._scanned = -inf
        self._waiting = 0

    @property
    def behind(self) -> dict[str, Behind]:
        """By deployment: what is on this gateway's port."""
        return {name: one for name, one in self._all().items() if one.setting and one.setting.port == self.setting.port}

    def _all(self) -> dict[str, Behind]:
        if self._clock.monotonic() >= self._scanned + _SCAN_EVERY:
            self._scanned = self._clock.monotonic()
            names = sorted(one.name for one in os.scandir(self._folder) if one.is_dir())
            self._behind = {name: self._behind.get(name) or Behind(self._folder / name, self._clock) for name in names}
        return self._behind

    @property
    def limit(self) -> int:
        return max((one.setting.limit for one in self.behind.values() if one.setting), default=0)

    @property
    def shown(self) -> list[Path]:
        """Folders of the deployments whose figures are on this gateway's page."""
        found = {name: one.setting for name, one in self._all().items()}
        return [self._folder / name for name, one in found.items() if one and one.metrics == self.setting.metrics]

    def _open(self, head: Head) -> dict[str, Behind]:
        """Those that the client's key opens."""
        shown = shown_in(head.headers)
        return {name: one for name, one in self.behind.items() if owner(self._keys_to(one), name, shown)}

    def _keys_to(self, behind: Behind) -> tuple[GatewayKey, ...]:
        keys = (key for key in self._keys.value.keys if key.role is not Role.VIEWER)
        return (*keys, *([GatewayKey("", digest(behind.engine_key))] if behind.engine_key else []))

    def first(self, head: Head) -> Answer | None:
        settings = [one.setting for one in self.behind.values() if one.setting]
        length = head.headers.get("content-length", "")
        request = decide.Request(
            method=head.method,
            path=head.path,
            known=bool(self._open(head)),
            shown=bool(shown_in(head.headers)),
            length=int(length) if length.isascii() and length.isdigit() else None,
            readable=not self._keys.given_up,
        )
        routes = tuple(dict.fromkeys(route for setting in settings for route in setting.routes))
        return decide.refused(request, self.limit, decide.matcher(routes))

    async def choose(self, head: Head, model: str) -> Flight | Page | Answer:
        opened, model = self._open(head), model or head.model
        alone = len(self.behind) == 1 and not any(one.on_demand for one in self.behind.values())
        if not alone and head.path == MODELS:
            listed = json.dumps(models_page(await self._listed(opened))).encode()
            return Page("application/json", lambda: listed)
        # One deployment alone gets all: its engine knows its own names
        found = _fitting(opened, f"{head.method} {head.path}", "" if alone else model)
        if isinstance(found, Answer) and found.code == UNKNOWN_MODEL:
            known = await self._listed(opened)
            found = next((opened[name] for name, one in known.items() if model in names_of(one)), found)
        if isinstance(found, Answer):
            return found
        return await self._towards(found, head, model)

    async def _towards(self, found: Behind, head: Head, model: str) -> Flight | Answer:
        setting = found.setting
        assert setting  # of those that serve
        if setting.limit < int(head.headers.get("content-length", "0") or 0):
            return decide.too_large(setting.limit)
        begins = partial(self._metered, head, found, model or next(iter(setting.models), ""))
        refused = await self._admitted(found, head) or found.unattended()
        return refused or Flight(found, setting, found.engine_key, head.path, begins)

    def _metered(self, head: Head, behind: Behind, model: str) -> Metered | Answer | None:
        """None for what makes no tokens."""
        key = owner(self._keys_to(behind), behind.name, shown_in(head.headers))
        if key is None or head.method != "POST":
            return None
        served = model in behind.setting.models if behind.setting else False
        return self._meter.begin(key, model if served else OTHER, head.path)

    async def _listed(self, opened: dict[str, Behind]) -> dict[str, Listed]:
        """What each engine lists, which may be more than its recipe names (adapters)."""
        found = await asyncio.gather(*(self._asked(one) for one in opened.values()))
        return dict(zip(opened, found, strict=True))

    async def _asked(self, behind: Behind) -> Listed:
        setting, live = behind.setting, behind.live
        assert setting  # of those that serve
        state = str(live.phase) if live and decide.fresh(live, self._clock.now()) else ""
        rows = () if behind.refusing else await listed_by(setting.engine, behind.engine_key)
        return Listed(setting.deployment, setting.models, state, rows)

    async def _admitted(self, behind: Behind, head: Head) -> Answer | None:
        """At once, or after a short wait for what is about to be back, or a longer one for what a request starts."""
        began, counted = self._clock.monotonic(), False
        patience = behind.setting.patience if behind.setting and head.method not in ("GET", "HEAD") else 0.0
        try:
            while True:
                held = self._clock.monotonic() - began
                crowd = self._waiting - counted
                verdict = decide.admitted(behind.live, self._clock.now(), held, crowd, patience)
                if not isinstance(verdict, decide.Hold):
                    return verdict
                if not counted:
                    counted, self._waiting = True, self._waiting + 1
                    behind.waiting += patience > 0
                await self._clock.sleep(_LOOK_AGAIN)
        finally:
            if counted:
                self._waiting -= 1
                behind.waiting -= patience > 0


def _fitting(opened: dict[str, Behind], call: str, model: str) -> Behind | Answer:
    """The deployment that the request is for."""
    settings = {name: one.setting for name, one in opened.items() if one.setting}
    fits = {name: one for name, one in settings.items() if decide.matcher(one.routes).fullmatch(call)}
    models = [name for one in settings.values() for name in one.models]
    if model:
        if model not in models:
            return decide.unknown_model(model, models)
        fits = {name: one for name, one in fits.items() if model in one.models}
    elif len(fits) > 1:
        return decide.no_model(models)
    if not fits:
        return decide.no_such_route(call)
    # Of two of one name the other is about to take its place
    return min((opened[name] for name in fits), key=lambda one: one.refusing)


async def run(home: Path) -> None:
    """Until SIGTERM. Raises Unreadable or OSError when there is no setting to serve."""
    doorman, exporters, over = Doorman(home, SystemClock()), Exporters(), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)

    def flights() -> bytes:
        return json.dumps({name: asdict(one.use) for name, one in doorman.behind.items()}).encode()

    inside = Passing({caddy.FLIGHTS: Page("application/json", flights)}, doorman)
    figures = Passing({"/metrics": Page(CONTENT_TYPE, lambda: exporters.page(doorman.shown))})
    await asyncio.start_unix_server(inside, sock=_socket(home / "door"), limit=PIECE)
    with suppress(OSError):  # without its port there are no figures; keys are checked all the same
        await asyncio.start_server(figures, "127.0.0.1", doorman.setting.metrics)
    await over.wait()


def _socket(folder: Path) -> socket.socket:
    os.chdir(folder)  # a socket's own path may have no more than 107 bytes
    Path(caddy.SERVICE).unlink(missing_ok=True)
    inside = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        inside.bind(caddy.SERVICE)
        inside.listen(_BACKLOG)  # at once: whoever sees the socket may come
    finally:
        os.umask(before)
    return inside


def main(home: Path) -> int:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(_FILES, most), most))  # every request takes two
    asyncio.run(watched_by_systemd(run(home)))
    return 0
