"""The gateway's own process on the head: Caddy hands it every request, and it passes those on that may enter.

It decides from files that supervisors and `sparkwright keys` write, and lives on when a supervisor ends: what is not
known to be away is let through. It listens on a unix socket in a folder that nobody else can enter, and on loopback for
scrapers of its metrics.
"""

import asyncio
import gc
import json
import os
import resource
import signal
import socket
import sys
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from inspect import isawaitable
from math import inf
from pathlib import Path

from sparkwright.adapters.exporter import CONTENT_TYPE, Exporters
from sparkwright.adapters.machine import SystemClock, boot_id, seconds_since_boot
from sparkwright.adapters.openai_http import ModelLists
from sparkwright.adapters.sqlite.usage import UsageStore
from sparkwright.adapters.unix_socket import ServiceSocket
from sparkwright.adapters.watchdog import watched_by_systemd
from sparkwright.adapters.watched import Watched
from sparkwright.domain.codec import Unreadable, from_json
from sparkwright.domain.standby import FOLDER, TERM_FILE, Term
from sparkwright.gateway import caddy, decide
from sparkwright.gateway.decide import UNKNOWN_MODEL, GatewayAnswer
from sparkwright.gateway.guard import GuardSetting
from sparkwright.gateway.keys import (
    FRONT,
    FrontSetting,
    Keys,
    Role,
    digest,
    key_owner,
    parse,
    shown_in,
)
from sparkwright.gateway.keys import Key as GatewayKey
from sparkwright.gateway.models import MODELS, ListedModels, models_page, names_of
from sparkwright.gateway.replicas import MOST_BODY, PromptBlocks
from sparkwright.ports import Clock
from sparkwright.supervisor.proxy.behind import SAME, Behind, Deployed
from sparkwright.supervisor.proxy.caddy_watch import CaddyWatch
from sparkwright.supervisor.proxy.connection import OwnPage, RequestHead
from sparkwright.supervisor.proxy.flight import Flight
from sparkwright.supervisor.proxy.links import Listening
from sparkwright.supervisor.proxy.meter import OTHER, Counted, Meter
from sparkwright.supervisor.proxy.passing import Passing
from sparkwright.supervisor.proxy.remembering import Remembering
from sparkwright.supervisor.proxy.replicas import Offer, Replicas, ReplicaSet
from sparkwright.supervisor.proxy.usage_writer import UsageWriter

_LOOK_AGAIN = 0.1
_SCAN_EVERY = 0.2
_TRY_AGAIN = 1.0
_KEYS_PATIENCE = 2.0
_FILES, _BACKLOG = 65536, 1024
_COLLECT_AFTER = 20_000  # new objects; some 100 requests at once have as many
_TERM_SAME, _FENCE_EVERY = 0.05, 0.25
_NO_PROMPT = PromptBlocks()


Choice = Flight | OwnPage | GatewayAnswer


class Doorman:
    """Decides about one request after the other. home: the gateway's own folder, among those of supervisors."""

    def __init__(self, home: Path, clock: Clock) -> None:
        self._clock, self._folder = clock, home.parent
        self.setting = from_json(FrontSetting, (home / "door" / FRONT).read_bytes())
        self._keys = Watched(Path(self.setting.keys), parse, Keys(), clock.monotonic, _KEYS_PATIENCE)
        self.usage = UsageWriter(UsageStore(Path(self.setting.keys).parent))
        self._meter = Meter(clock, self.usage)
        self._models = ModelLists(clock.monotonic)
        self.remembering = Remembering(clock)
        self.caddy = CaddyWatch(home / "door", clock)
        term = Watched[Term | None](home.parent / FOLDER / TERM_FILE, _term, None, clock.monotonic)
        self._term, self._boot = term.at_most_every(_TERM_SAME), boot_id()
        self._behind: dict[str, Behind] = {}
        self._replicas = Replicas()
        self._offer = Offer({}, ())
        self._scanned = self._looked = -inf
        self._waiting = 0

    @property
    def deployed(self) -> Mapping[str, Deployed]:
        """The deployments on this gateway's port, by name. Decide from one such look: the files change at any
        moment."""
        return self.offer.deployed

    @property
    def offer(self) -> Offer:
        """The same with what follows from them. It stays the same object while nothing changes."""
        now = self._clock.monotonic()
        if now >= self._looked + SAME:
            self._looked = now
            looks = [one.look() for one in self._all().values()]
            found = {one.name: one for one in looks if one and one.setting.port == self.setting.port}
            if found != self._offer.deployed:
                self._replicas.forget(found.values())
                self._offer = Offer(found, self._replicas.sets(found.values()))
        return self._offer

    @property
    def fenced(self) -> str:
        """The reason why this node may not serve, '' if it may: it is the head without a standby, or has the votes."""
        term = self._term.value
        if term is None or term.is_held(self._boot, seconds_since_boot()):
            return ""
        return term.why or "it has not the votes of most nodes"

    def _all(self) -> dict[str, Behind]:
        if self._clock.monotonic() >= self._scanned + _SCAN_EVERY:
            self._scanned = self._clock.monotonic()
            try:
                with os.scandir(self._folder) as folder:
                    names = sorted(one.name for one in folder if one.is_dir())
            except OSError as error:  # no descriptor is free, or a disk fails: what was there before still counts
                sys.stderr.write(f"{self._folder}: cannot be read and is tried again: {error}\n")
                return self._behind
            self._behind = {name: self._behind.get(name) or Behind(self._folder / name, self._clock) for name in names}
        return self._behind

    @property
    def limit(self) -> int:
        return self.offer.limit

    @property
    def shown(self) -> list[Path]:
        """Folders of the deployments whose figures are on this gateway's page."""
        found = {name: one.setting for name, one in self._all().items()}
        return [self._folder / name for name, one in found.items() if one and one.metrics == self.setting.metrics]

    def flights(self) -> bytes:
        """Requests that each engine has now, for supervisors, and what does not work here."""
        said = self._keys_trouble or self.caddy.trouble or self.usage.trouble or self.remembering.trouble
        deployed = self.deployed
        differing = self._replicas.troubles(deployed.values())
        plain = {name: asdict(one.behind.use) for name, one in deployed.items()}
        cut_off = {name: one.behind.cut_off for name, one in deployed.items()}
        for name, use in plain.items():
            del use["trouble"]  # an earlier supervisor knows no such
            if trouble := said or differing.get(name, "") or cut_off[name]:
                use["trouble"] = trouble
        return json.dumps(plain).encode()

    @property
    def _keys_trouble(self) -> str:
        """The reason why no client is let in whatever key it shows, '' for none."""
        self._keys.value  # noqa: B018 - reads it, also while no request comes
        if self._keys.given_up:
            return "its list of keys cannot be read: each request gets 503. The same `sparkwright up` makes a new one"
        if not os.path.lexists(self.setting.keys):
            return "its list of keys is gone: each request gets 401. The same `sparkwright up` makes a new one"
        return ""

    def _opened(self, head: RequestHead, before: "_Opened | None" = None) -> "_Opened":
        """The first key that the client shows and that opens something, and what it opens. before: found earlier, which
        holds while nothing has changed."""
        offer, keys = self.offer, self._keys.value
        if before and before.offer is offer and before.known is keys:
            return before
        shown, key, found = shown_in(head.headers), None, {}
        clients = tuple(one for one in keys.keys if one.role is not Role.VIEWER) if shown else ()
        for name, one in offer.deployed.items() if shown else ():
            engines_own = (GatewayKey("", digest(one.engine_key)),) if one.engine_key else ()
            known = key_owner((*clients, *engines_own), name, shown, one.setting.replica_of)
            key = key or known
            if known and key and known.sha256 == key.sha256:
                found[name] = one
        sets = offer.sets if len(found) == len(offer.deployed) else self._replicas.sets(found.values())
        return _Opened(offer, keys, key, bool(shown), tuple(sets))

    def first(self, head: RequestHead) -> "CountedRequest | GatewayAnswer":
        """Decide by the head alone. What a key's limits count is counted from here on."""
        opened = self._opened(head)
        offer, key = opened.offer, opened.key
        if not offer.deployed:
            return decide.NOTHING_DEPLOYED
        length = head.headers.get("content-length", "")
        request = decide.AdmissionRequest(
            method=head.method,
            path=head.path,
            known=key is not None,
            shown=opened.shown,
            length=int(length) if length.isascii() and length.isdigit() else None,
            readable=not self._keys.given_up,
        )
        if refused := decide.refused(request, offer.limit, offer.routes):
            return refused
        if fenced := self.fenced:
            return decide.not_serving(fenced)
        websocket = "upgrade" in head.headers and head.path in offer.websockets
        if key is None or not (head.method == "POST" or websocket):
            return CountedRequest(None, opened)
        models = {one.setting.models[0] for found in opened.sets for one in found.members if one.setting.models}
        counted = self._meter.enter(key, models.pop() if len(models) == 1 else OTHER)
        return counted if isinstance(counted, GatewayAnswer) else CountedRequest(counted, opened)

    def wants(self, head: RequestHead, model: str) -> int:
        offer = self.offer
        if head.method != "POST" or not offer.several:
            return 0
        model = model or head.model
        among = any(not model or len(offer.sets) == 1 or model in models for models in offer.several)
        return MOST_BODY + 1 if among else 0

    async def choose(
        self, head: RequestHead, model: str, entry: "CountedRequest", prompt: PromptBlocks = _NO_PROMPT
    ) -> Choice:
        choice = self.choice(head, model, entry, prompt)
        return await choice if isawaitable(choice) else choice

    def choice(
        self, head: RequestHead, model: str, entry: "CountedRequest", prompt: PromptBlocks = _NO_PROMPT
    ) -> Choice | Awaitable[Choice]:
        """The choice, made at once wherever no engine is asked and nothing is waited for."""
        opened, fenced = self._opened(head, entry.opened), self.fenced
        offer, sets = opened.offer, opened.sets
        if fenced or not offer.deployed:
            return decide.not_serving(fenced) if fenced else decide.NOTHING_DEPLOYED
        if not sets:  # its key was good when the head came
            return decide.KEYS_UNREADABLE if self._keys.given_up else decide.key_missing(opened.shown)
        model = model or head.model
        alone = len(offer.sets) == 1 and not offer.patient
        if not alone and head.path == MODELS:
            return self._own_models(sets)
        # One deployment alone gets all: its engine knows its own names
        found = _fitting(sets, f"{head.method} {head.path}", "" if alone else model)
        wanted = _Wanted(head, model, entry, prompt)
        if isinstance(found, GatewayAnswer):
            return self._asked_for(sets, found, wanted) if found.code == UNKNOWN_MODEL else found
        return self._going(found, wanted)

    async def _own_models(self, sets: Sequence[ReplicaSet]) -> OwnPage:
        listed = json.dumps(models_page(await self._listed(sets))).encode()
        return OwnPage("application/json", lambda: listed)

    async def _asked_for(self, sets: Sequence[ReplicaSet], unknown: GatewayAnswer, wanted: "_Wanted") -> Choice:
        """The deployment whose engine lists the model, though its recipe does not name it."""
        known = await self._listed(sets)
        for one, listed in zip(sets, known, strict=True):
            if wanted.model in names_of(listed):
                going = self._going(one, wanted)
                return await going if isawaitable(going) else going
        return unknown

    def _going(self, found: ReplicaSet, wanted: "_Wanted") -> Choice | Awaitable[Choice]:
        setting, length = found.setting, wanted.head.headers.get("content-length", "")
        if length.isascii() and length.isdigit() and setting.limit < int(length):
            return decide.too_large(setting.limit)
        patience = setting.patience if wanted.head.method not in ("GET", "HEAD") else 0.0
        verdict = self._verdict(found, 0.0, self._waiting, patience)
        if isinstance(verdict, decide.Hold):
            return self._held(found, wanted, patience)
        return self._admitted(found, wanted, verdict)

    async def _held(self, found: ReplicaSet, wanted: "_Wanted", patience: float) -> Choice:
        """A short wait for a deployment about to be back, or a longer one for a start on demand. One replica that is
        there is enough."""
        began, behind = self._clock.monotonic(), found.asked.behind
        self._waiting += 1
        behind.waiting += patience > 0
        try:
            verdict: GatewayAnswer | decide.Hold | None = decide.Hold(0.0)
            while isinstance(verdict, decide.Hold):
                await self._clock.sleep(_LOOK_AGAIN)
                verdict = self._verdict(found, self._clock.monotonic() - began, self._waiting - 1, patience)
        finally:
            self._waiting -= 1
            behind.waiting -= patience > 0
        return self._admitted(found, wanted, verdict)

    def _admitted(self, found: ReplicaSet, wanted: "_Wanted", verdict: GatewayAnswer | None) -> Flight | GatewayAnswer:
        """The flight, with what begins its count once it goes there (None where nothing counts it), or the refusal."""
        setting, head, counted = found.setting, wanted.head, wanted.entry.counted
        named = wanted.model or next(iter(setting.models), "")
        row_model = named if named in setting.models else OTHER
        refused = verdict or (None if found.there else found.asked.behind.unattended())
        if refused:
            if counted:
                self._meter.refuse(counted, row_model, head.path, refused.status)
            return refused
        guard = GuardSetting(setting.end_loops, setting.reasoning_tokens, setting.answer_tokens, setting.context)
        begins = partial(self._meter.begin, counted, row_model, head.path, guard) if counted else None
        return Flight(found, head.path, begins, wanted.prompt, self.remembering.keeper(setting, head.path))

    async def _listed(self, sets: Sequence[ReplicaSet]) -> list[ListedModels]:
        """The models that each engine lists, which may be more than its recipe names (adapters)."""
        return list(await asyncio.gather(*map(self._asked, sets)))

    async def _asked(self, found: ReplicaSet) -> ListedModels:
        one, setting = found.asked, found.setting
        live = one.behind.live
        state = str(live.phase) if live and decide.is_fresh(live, self._clock.now()) else ""
        rows = () if one.behind.refusing else await self._models.listed(one.setting.engine, one.engine_key)
        return ListedModels(found.name, setting.models, state, rows)

    def _verdict(
        self, found: ReplicaSet, held: float, crowd: int, patience: float
    ) -> GatewayAnswer | decide.Hold | None:
        """The best that a replica allows: to pass, else to wait, else the refusal that names the shortest time."""
        lives = (one.behind.live for one in found.members)
        all_of = [decide.admitted(live, self._clock.now(), held, crowd, patience) for live in lives]
        if None in all_of:
            return None
        holds = [one for one in all_of if isinstance(one, decide.Hold)]
        return next(iter(holds), None) or min(
            (one for one in all_of if isinstance(one, GatewayAnswer)), key=lambda one: one.retry_after
        )


@dataclass(frozen=True, slots=True)
class CountedRequest:
    """One request that was let in. counted: None for what no limit counts. opened: what its key opens."""

    counted: Counted | None = None
    opened: "_Opened | None" = None

    def leave(self) -> None:
        if self.counted:
            self.counted.leave()


@dataclass(frozen=True, slots=True)
class _Opened:
    """The deployments that a request's key opens, of an offer and among the keys that were known then.

    key: None for none. shown: the client showed one.
    """

    offer: Offer
    known: Keys
    key: GatewayKey | None
    shown: bool
    sets: tuple[ReplicaSet, ...]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A request, as far as a choice needs it. model: as it names it, '' for none."""

    head: RequestHead
    model: str
    entry: CountedRequest
    prompt: PromptBlocks


def _fitting(sets: Sequence[ReplicaSet], call: str, model: str) -> ReplicaSet | GatewayAnswer:
    """The deployment that the request is for, with its replicas."""
    fits = [one for one in sets if decide.matcher(one.setting.routes).fullmatch(call)]
    models = [name for one in sets for name in one.setting.models]
    if model:
        if model not in models:
            return decide.unknown_model(model, models)
        fits = [one for one in fits if model in one.setting.models]
    elif len(fits) > 1:
        return decide.no_model(models)
    if not fits:
        return decide.no_such_route(call)
    # Of two of one name the other is about to take its place
    return min(fits, key=lambda one: one.refusing)


async def run(home: Path) -> None:
    """Runs until SIGTERM. Raises Unreadable or OSError if there is no setting to serve."""
    doorman, exporters, over = Doorman(home, SystemClock()), Exporters(), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    inside = Passing({caddy.FLIGHTS: OwnPage("application/json", doorman.flights)}, doorman)
    figures = Passing({"/metrics": OwnPage(CONTENT_TYPE, lambda: exporters.page(doorman.shown))})
    listens = asyncio.ensure_future(_listen(home / "door", inside))
    with suppress(OSError):  # without its port there are no figures; keys are checked all the same
        Listening(socket.create_server(("127.0.0.1", doorman.setting.metrics)), figures)
    remembers = asyncio.ensure_future(doorman.remembering.watch(lambda: doorman.deployed))
    watches = asyncio.ensure_future(doorman.caddy.watch())
    fence = asyncio.ensure_future(_end_when_fenced(doorman, over))
    ended = asyncio.ensure_future(over.wait())
    await asyncio.wait({ended, listens}, return_when=asyncio.FIRST_COMPLETED)
    for task in (remembers, watches, fence):
        task.cancel()
    doorman.usage.end_gathering()
    await doorman.remembering.end()


async def _end_when_fenced(doorman: Doorman, over: asyncio.Event) -> None:
    """Answers under way are cut when this node loses the votes: the other one may serve from then on. The process that
    is started after this one refuses."""
    served = False
    while not (served and doorman.fenced):
        served = served or not doorman.fenced
        await asyncio.sleep(_FENCE_EVERY)
    sys.stderr.write(f"ends with all its answers: {doorman.fenced}\n")
    over.set()


def _term(text: bytes) -> Term:
    """One that cannot be read holds nothing."""
    try:
        return from_json(Term, text)
    except Unreadable as error:
        return Term("", 0.0, f"its term cannot be read ({error})")


async def _listen(folder: Path, serve: Passing) -> None:
    """Listens for Caddy, and again where somebody has removed the socket; requests under way go on.

    Returns where another process has taken the socket's place.
    """
    while True:
        try:
            inside = ServiceSocket(folder, caddy.SERVICE, _BACKLOG)
        except OSError as error:
            sys.stderr.write(f"{folder / caddy.SERVICE} cannot be made and is tried again: {error}\n")
            await asyncio.sleep(_TRY_AGAIN)
            continue
        async with Listening(inside.listener, serve):
            removed = await inside.wait_until_lost()
        if not removed:
            return
        sys.stderr.write(f"{folder / caddy.SERVICE} was removed: a new one is made\n")


def main(home: Path) -> int:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(_FILES, most), most))  # every request takes two
    gc.collect()
    gc.freeze()  # what was imported stays: a collection that looks through it holds up every answer
    gc.set_threshold(_COLLECT_AFTER)  # requests leave no cycles behind; with 700 every third one would wait for a look
    asyncio.run(watched_by_systemd(run(home)))
    return 0
