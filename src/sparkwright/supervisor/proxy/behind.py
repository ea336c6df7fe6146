"""A deployment behind a gateway, as its supervisor's folder shows it."""

import os
from dataclasses import dataclass
from pathlib import Path

from sparkwright.adapters.watched import Watched
from sparkwright.domain.codec import Unreadable, from_json
from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.live import SERVING, DeploymentState, GatewayUse, Live, unwritable_text
from sparkwright.gateway import decide
from sparkwright.gateway.decide import GatewayAnswer
from sparkwright.gateway.keys import ROUTE, RouteSetting
from sparkwright.gateway.replicas import Replica
from sparkwright.ports import Clock

_LEFT_OUT = 1.0
_CUT_OFF = 3.0
"""Seconds: an engine that has ended is seen by its supervisor sooner."""
SAME = 0.005
"""Seconds in which a file is looked at once: one request asks for each of them a dozen times."""


class Behind:
    """A deployment behind the gateway, from its supervisor's folder. under_way: requests that its engine has now;

    waiting: held until it is there. unread: bytes of prompts that are new to it and without an answer. heard: when the
    engine last sent a byte of an answer's body (monotonic), None before.
    """

    def __init__(self, home: Path, clock: Clock) -> None:
        self._clock, now, self.name, self.home = clock, clock.monotonic, home.name, home
        self._setting = Watched[RouteSetting | None](
            home / "door" / ROUTE, lambda text: from_json(RouteSetting, text), None, now
        )
        self._live = Watched[Live | None](
            home / "live.json", lambda text: from_json(Live, text), None, now
        ).at_most_every(SAME)
        self._secrets = Watched[dict[str, str]](home / "secrets.json", _secrets, {}, now)
        self.under_way = self.waiting = self.unread = 0
        self.heard: float | None = None
        self._ended = now()
        self._unheard, self._tried = 0.0, 0.0
        self._failures, self._left_out, self._unreached = 0, 0.0, False
        self._reported: Live | None = None
        self._cut: tuple[float, float, str] | None = None

    @property
    def use(self) -> GatewayUse:
        now = self._clock.monotonic()
        heard = None if self.heard is None else now - self.heard
        return GatewayUse(self.under_way, self.waiting, now - self._ended, heard=heard)

    def begin(self) -> None:
        self.under_way += 1
        now = self._clock.monotonic()
        if self._unheard and now - self._unheard >= decide.SILENT:
            self._tried = now
        self._unheard = self._unheard or now

    def hear(self) -> None:
        """The engine has sent something: it lives."""
        self.heard, self._unheard = self._clock.monotonic(), 0.0
        self._failures, self._left_out, self._unreached, self._cut = 0, 0.0, False, None

    @property
    def cut_off(self) -> str:
        """The reason why this process has not reached the engine for some seconds, while others may; '' if it does."""
        if self._cut is None:
            return ""
        first, last, why = self._cut
        lasts = last - first >= _CUT_OFF and self._clock.monotonic() - last < _CUT_OFF
        return f"its process cannot connect to the engine ({why}): each request gets 503" if lasts else ""

    def fail(self, unreached: bool, why: str = "") -> None:
        """The engine gave no answer. It gets no request while another replica is there: for a second, and twice as long
        after each further time."""
        self._failures, self._unreached = self._failures + 1, unreached
        now = self._clock.monotonic()
        self._cut = ((self._cut[0] if self._cut else now), now, why) if unreached else None
        pause = min(_LEFT_OUT * 2 ** min(self._failures - 1, 10), decide.SILENT)
        self._left_out = self._clock.monotonic() + pause

    @property
    def away(self) -> bool:
        """True if another replica is to be asked."""
        return self.refusing or self._clock.monotonic() < self._left_out or self._silent

    @property
    def lost(self) -> bool:
        """True if what waits for its answer here waits in vain: nobody reaches it, or its supervisor has given it up.

        One that drains still answers what it has.
        """
        live = self.live
        given_up = self.refusing and live is not None and live.phase not in (*SERVING, DeploymentState.DRAINING)
        return given_up or (self._unreached and self._clock.monotonic() < self._left_out)

    @property
    def _silent(self) -> bool:
        """True if it has given nothing for long, and no supervisor sees why. Now and then a request may try it."""
        live, now = self.live, self._clock.monotonic()
        if not self._unheard or now - self._unheard < decide.SILENT or now - self._tried >= decide.SILENT:
            return False
        return live is not None and not decide.attended(live, self._clock.now())

    @property
    def as_replica(self) -> Replica:
        live = self.live
        return Replica(self.name, self.under_way, self.unread, live.up_since if live else 0.0)

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
        return live is not None and decide.is_fresh(live, self._clock.now()) and live.refusing

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


def _secrets(text: bytes) -> dict[str, str]:
    tree = read_json(text)
    if not isinstance(tree, dict):
        raise Unreadable(f"{type(tree).__name__}, not dict")
    return {str(name): str(value) for name, value in tree.items()}
