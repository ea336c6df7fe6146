"""A deployment behind a gateway, as its supervisor's folder shows it, and a request on its way to its engine."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from sparkwright.adapters.watched import Watched
from sparkwright.domain.codec import Unreadable, from_json
from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.live import GatewayUse, Live, unwritable_text
from sparkwright.gateway import decide
from sparkwright.gateway.decide import GatewayAnswer
from sparkwright.gateway.keys import ROUTE, RouteSetting
from sparkwright.gateway.usage import Body
from sparkwright.ports import Clock
from sparkwright.supervisor.proxy.engine_answer import EngineAnswer
from sparkwright.supervisor.proxy.meter import Metered


class Behind:
    """A deployment behind the gateway, from its supervisor's folder. under_way: requests that its engine has now;

    waiting: held until it is there. heard: when the engine last sent a byte of an answer's body (monotonic), None
    before.
    """

    def __init__(self, home: Path, clock: Clock) -> None:
        self._clock, now, self.name, self.home = clock, clock.monotonic, home.name, home
        self._setting: Watched[RouteSetting | None] = Watched(home / "door" / ROUTE, _route, None, now)
        self._live: Watched[Live | None] = Watched(home / "live.json", lambda text: from_json(Live, text), None, now)
        self._secrets: Watched[dict[str, str]] = Watched(home / "secrets.json", _secrets, {}, now)
        self.under_way = self.waiting = 0
        self.heard: float | None = None
        self._ended = now()
        self._unheard, self._tried = 0.0, 0.0
        self._reported: Live | None = None

    @property
    def use(self) -> GatewayUse:
        now = self._clock.monotonic()
        heard = None if self.heard is None else now - self.heard
        return GatewayUse(self.under_way, self.waiting, now - self._ended, heard=heard)

    def begin(self) -> None:
        self.under_way += 1
        self._unheard = self._unheard or self._clock.monotonic()

    def hear(self) -> None:
        """The engine has sent something: it lives."""
        self.heard, self._unheard = self._clock.monotonic(), 0.0

    def unattended(self) -> GatewayAnswer | None:
        """Refusal while the engine gives nothing and no supervisor sees why: it does not report, or a node is out of
        its reach. One request in a while is let through.

        A request that waits already is left alone: its prompt may be long.
        """
        now, live = self._clock.monotonic(), self.live
        silent = now - self._unheard if self._unheard else 0.0
        if silent < decide.SILENT or live is None or decide.attended(live, self._clock.now()):
            return None
        if now - self._tried >= decide.SILENT:
            self._tried = now
            return None
        return decide.unattended(live, self._clock.now(), silent, self._unwritable)

    @property
    def _unwritable(self) -> str:
        """The reason why the supervisor cannot write its report, '' if it can."""
        try:
            if os.statvfs(self.home).f_flag & os.ST_RDONLY:
                return unwritable_text("read-only")
            return "" if os.access(self.home, os.W_OK) else unwritable_text("mode")
        except PermissionError:
            return unwritable_text("mode")
        except OSError:
            return ""

    def end(self) -> None:
        self.under_way -= 1
        self._ended = self._clock.monotonic()

    def look(self) -> "Deployed | None":
        """The deployment as its files show it now; None if it is behind no gateway.

        Each read of a file may give another answer: whoever decides looks once.
        """
        setting = self.setting
        return Deployed(self, setting, self._key(setting)) if setting else None

    @property
    def setting(self) -> RouteSetting | None:
        return self._setting.value

    @property
    def live(self) -> Live | None:
        """The supervisor's last report. It outlives its file, which is removed before the route when a deployment is
        taken down: a request that passed then would reach the engine that took over the port."""
        self._reported = self._live.value or self._reported
        return self._reported

    def _key(self, setting: RouteSetting) -> str:
        return self._secrets.value.get(setting.key_env, "") if setting.key_env else ""

    @property
    def refusing(self) -> bool:
        live = self.live
        return live is not None and decide.fresh(live, self._clock.now()) and live.refusing

    def broken(self) -> GatewayAnswer:
        """The engine gave no answer to what was let through."""
        return decide.broken(self.live, self._clock.now(), self._unwritable)


@dataclass(frozen=True, slots=True)
class Deployed:
    """A deployment as its files were at one moment. engine_key: '' for none."""

    behind: Behind
    setting: RouteSetting
    engine_key: str

    @property
    def name(self) -> str:
        return self.behind.name


class PromptKeeper(Protocol):
    """Keeps the prompt of one request for the engine's next start."""

    def take(self, body: Body) -> None: ...
    def answered(self, tokens: int) -> None: ...


@dataclass
class Flight:
    """A request on its way to an engine, which is counted until it ends. begins: None for what no key counts.

    keeper: None where no prompts are kept.
    """

    at: Deployed
    path: str
    begins: "Callable[[], Metered] | None"
    metered: Metered | None = None
    keeper: PromptKeeper | None = None

    @property
    def host(self) -> str:
        return self.at.setting.engine.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        return int(self.at.setting.engine.rpartition(":")[2])

    @property
    def key(self) -> str:
        return self.at.engine_key

    @property
    def limit(self) -> int:
        return self.at.setting.limit

    @property
    def websocket(self) -> bool:
        return self.path in self.at.setting.websockets

    def begin(self) -> "Flight":
        self.metered = self.begins() if self.begins else None
        self.at.behind.begin()
        return self

    def broken(self) -> GatewayAnswer:
        return self.at.behind.broken()

    @property
    def reads(self) -> bool:
        return self.metered is not None and (self.metered.streams or self.keeper is not None)

    def insertion(self, body: Body) -> bytes:
        if self.keeper:
            self.keeper.take(body)
        return self.metered.insertion(body) if self.metered else b""

    def answers(self, answer: EngineAnswer) -> None:
        """The head of an answer; no sign of life: a server sends that of a stream, and its dead engine nothing more."""
        if self.metered:
            self.metered.begins(answer)

    def saw(self, piece: bytes) -> bytes:
        self.at.behind.hear()
        return self.metered.saw(piece) if self.metered else piece

    @property
    def over(self) -> bool:
        return self.metered is not None and self.metered.over

    def rest(self) -> bytes:
        return self.metered.rest() if self.metered else b""

    def ended(self, whole: bool) -> None:
        if whole:
            self.at.behind.hear()
        self.at.behind.end()
        if self.metered:
            self.metered.ended(whole)
        if self.keeper and self.metered and (tokens := self.metered.prompt_tokens) is not None:
            self.keeper.answered(tokens)


def _route(text: bytes) -> RouteSetting:
    return from_json(RouteSetting, text)


def _secrets(text: bytes) -> dict[str, str]:
    tree = read_json(text)
    if not isinstance(tree, dict):
        raise Unreadable(f"{type(tree).__name__}, not dict")
    return {str(name): str(value) for name, value in tree.items()}
