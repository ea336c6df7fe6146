"""The reports of this head's supervisors, read again when a file has changed. No node is asked."""

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sparkwright.adapters.sqlite import samples, usage
from sparkwright.adapters.sqlite.folders import Folders, RecordMark
from sparkwright.adapters.sqlite.store import FOLDERS, STORE
from sparkwright.adapters.watched import Watched
from sparkwright.console.requests import READ, RECENT, Latency, latency
from sparkwright.console.strip import SPAN, STEP
from sparkwright.domain.codec import Unreadable, from_json
from sparkwright.domain.deployment import is_deployment_name
from sparkwright.domain.errors import CommandFailed
from sparkwright.domain.history import Minute, RequestRecord, RequestSpan
from sparkwright.domain.incident import Incident
from sparkwright.domain.live import STALE, Desired, Live
from sparkwright.domain.units import duration
from sparkwright.engines.engine import served_name
from sparkwright.gateway.usage import DAY, Used
from sparkwright.report.markup import Html
from sparkwright.report.rates import EngineHistory

_MOST = 200
_LIST_EVERY, _COUNT_EVERY, _READ_EVERY = 2.0, 5.0, 2.0


@dataclass
class DeploymentWatch:
    """One deployment. desired: what it is to serve, None where that cannot be read. shown: the last report."""

    name: str
    home: Path
    live_file: "Watched[Live | None]"
    desired_file: "Watched[Desired | None]"
    history: EngineHistory = field(default_factory=EngineHistory)
    live: Live | None = None

    @property
    def desired(self) -> Desired | None:
        return self.desired_file.value

    @property
    def replica_of(self) -> str:
        """The model of which it is a replica, '' for a deployment that stands alone."""
        return self.desired.replica.of if self.desired and self.desired.replica else ""

    @property
    def endpoint(self) -> str:
        """The gateway's URL for clients, '' without one."""
        try:
            return (self.home / "door" / "endpoint").read_text("utf-8", "replace").strip()[:200]
        except OSError:
            return ""

    def stale(self, now: float) -> str:
        """The reason why its report is stale, '' if it is current."""
        if self.live is None:
            return "its supervisor has written no report that can be read"
        age = now - self.live.at
        return f"its supervisor has not reported for {duration(age)}" if age > STALE else ""

    def refresh(self) -> bool:
        """True if there is a new report."""
        before, self.live = self.live, self.live_file.value
        if self.live is before:
            return False
        self.history.add(self.live.engine if self.live else None)
        return True


class ReportBoard:
    """state: the head's folder."""

    def __init__(self, state: Path, now: Callable[[], float] = time.time) -> None:
        self.state, self.now = state, now
        self.version = 0
        """Counts the changes that a page has to show, whoever's refresh found them."""
        self._listed = 0.0
        self._known: tuple[object, ...] = ()
        self._records: dict[Path, RecordMark] = {}
        self._incidents: tuple[Incident, ...] = ()
        self.folders = Folders(state / FOLDERS)
        self.watches: dict[str, DeploymentWatch] = {}
        self.notes: dict[str, str] = {}  # what came of the last operation
        self.past: dict[str, tuple[float, Html]] = {}  # the last day, by what a key opens: when it was made, and it
        self._stale: tuple[bool, ...] = ()
        self._noted: dict[str, str] = {}
        self._today: tuple[Used, ...] = ()
        self._recent: tuple[RequestRecord, ...] = ()
        self._listed_requests: tuple[float, tuple[RequestRecord, ...]] = (0.0, ())
        self._counted = 0.0

    def refresh(self) -> None:
        """Read what has changed; `version` is another one if a page has to change."""
        now, before = self.now(), self._stale
        noted, self._noted = dict(self.notes) != self._noted, dict(self.notes)
        due = abs(now - self._listed) >= _LIST_EVERY
        listed = self._list(now) if due else False
        counted = self._count(now)
        reports = [watch.refresh() for watch in self.watches.values()]
        self._stale = tuple(bool(watch.stale(now)) for watch in self.watches.values())
        recorded = self._read_incidents(due)
        # How long a silent one has been silent
        silent = self._stale != before or (due and any(self._stale))
        if listed or noted or counted or any(reports) or silent or recorded:
            self.version += 1

    def _list(self, now: float) -> bool:
        self._listed = now
        try:
            homes = sorted(path for path in (self.state / "supervision").iterdir() if is_deployment_name(path.name))
        except OSError:
            homes = []
        named = {home.name: home for home in homes[:_MOST]}
        before = tuple(self.watches)
        self.watches = {name: self.watches.get(name) or _watch(name, home) for name, home in named.items()}
        return tuple(self.watches) != before

    def _count(self, now: float) -> bool:
        """True if more was used today."""
        if abs(now - self._counted) < _COUNT_EVERY:
            return False
        self._counted, before = now, (self._today, self._recent)
        self._today, self._recent = self._used(1), self._requests(RECENT, READ)
        return (self._today, self._recent) != before

    def _used(self, days: int) -> tuple[Used, ...]:
        """The usage of the last days; () if it cannot be read: the log has the reason."""
        day = time.strftime("%Y-%m-%d", time.gmtime(self.now() - (days - 1) * DAY))
        try:
            return usage.used_since(self.state / "door", day)
        except CommandFailed as error:
            sys.stderr.write(f"{error.message}\n")
            return ()

    def used(self, only: str = "", days: int = 1) -> tuple[Used, ...]:
        """The usage of the last days, newest first. only: a deployment as in `visible`; its models alone count."""
        rows = self._today if days == 1 else self._used(days)
        if not only:
            return rows
        models = self.models(only)
        return tuple(row for row in rows if row.model in models)

    def _requests(self, seconds: float, most: int) -> tuple[RequestRecord, ...]:
        try:
            return usage.requests_since(self.state / "door", self.now() - seconds, most)
        except CommandFailed as error:
            sys.stderr.write(f"{error.message}\n")
            return ()

    def requests(self, only: str) -> tuple[RequestRecord, ...]:
        """The requests of the last day, newest first; a key for one deployment sees those of its models. Read once for
        all."""
        now, (read, found) = self.now(), self._listed_requests
        if abs(now - read) >= _READ_EVERY:
            found = self._requests(DAY, READ)
            self._listed_requests = now, found
        models = self.models(only) if only else ()
        return tuple(one for one in found if not only or one.model in models)

    def latency(self, watch: DeploymentWatch) -> Latency:
        """The latency of the last ten minutes, as the gateway measured it."""
        model = served_name(watch.desired.recipe) if watch.desired else ""
        since = self.now() - RECENT
        return latency([one for one in self._recent if one.model == model and one.at >= since])

    def day(self, watch: DeploymentWatch) -> tuple[Sequence[Minute], Sequence[RequestSpan]]:
        """The last day of a deployment; () where it cannot be read: the log has why."""
        since, models = self.now() - SPAN, {served_name(watch.desired.recipe)} if watch.desired else set[str]()
        try:
            minutes = samples.minutes_since(self.state / STORE, watch.name, since)
            return minutes, usage.spans_since(self.state / "door", models, since, STEP)
        except CommandFailed as error:
            sys.stderr.write(f"{error.message}\n")
            return (), ()

    def models(self, only: str) -> set[str]:
        """Names of the models that a key for `only` sees."""
        return {served_name(watch.desired.recipe) for watch in self.visible(only) if watch.desired}

    def visible(self, only: str) -> tuple[DeploymentWatch, ...]:
        """The watches that a visitor may see. only: the one deployment or model that a key opens, '' for all."""
        return tuple(watch for name, watch in self.watches.items() if only in ("", name, watch.replica_of))

    def _read_incidents(self, due: bool) -> bool:
        """True if a record was written since. A supervisor may write one after the report that it belongs to: an
        incident that is closed by then would be shown as open until the next one."""
        lives = [watch.live for watch in self.watches.values() if watch.live]
        known = tuple((one.deployment, one.phase, one.incident, one.last_incident, one.incidents) for one in lives)
        if known == self._known and not due:
            return False
        marks = self.folders.marks()
        self._known, same = known, marks == self._records
        if same:
            return False
        found, before = tuple(reversed(self.folders.all())), self._incidents
        # One that could not be read, as it is being written on a full disk, is read again.
        self._records, self._incidents = marks if len(found) == len(marks) else {}, found
        return found != before

    def incidents(self, only: str = "") -> tuple[Incident, ...]:
        """Newest first, as of the last refresh."""
        mine = {only, *(watch.name for watch in self.visible(only))}
        return tuple(one for one in self._incidents if not only or one.deployment in mine)


def _watch(name: str, home: Path) -> DeploymentWatch:
    return DeploymentWatch(
        name,
        home,
        Watched(home / "live.json", lambda text: from_json(Live, text), None, time.monotonic),
        Watched(home / "desired.json", _desired, None, time.monotonic),
    )


def _desired(text: bytes) -> Desired | None:
    try:
        return from_json(Desired, text)
    except Unreadable:
        return None
