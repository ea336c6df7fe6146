"""The traces of a supervisor, in memory."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from sparkwright.domain.history import Minute
from sparkwright.domain.incident import DeploymentRecord, Incident, IncidentEvent, News, Uptime
from sparkwright.domain.live import Live, Request
from sparkwright.supervisor.core.state import State


@dataclass
class FakeJournal:
    """A journal as supervisor.home.Home. full: why nothing can be written. path: a folder that is not there."""

    path: Path = Path("/nonexistent/supervision/twin")
    states: list[State] = field(default_factory=list)
    shown: list[Live] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)
    is_wanted: bool = True
    full: str = ""
    troubles: dict[str, str] = field(default_factory=dict)
    asked: Request | None = None

    def load(self) -> State | None:
        return self.states[-1] if self.states else None

    def save(self, state: State) -> str:
        if not self.full:
            self.states.append(state)
        return self.full

    def show(self, live: Live) -> None:
        self.shown.append(live)

    def wanted(self) -> bool:
        return self.is_wanted

    def request(self) -> Request | None:
        return self.asked

    def answered(self, nonce: str = "") -> None:
        if self.asked and nonce in ("", self.asked.nonce):
            self.asked = None

    def recall(self) -> dict[str, float]:
        return dict(self.figures)

    def remember(self, figures: Mapping[str, float]) -> None:
        self.figures = dict(figures)

    def wrong(self) -> Mapping[str, str]:
        return dict(self.troubles)


@dataclass
class FakeStore:
    """A store as adapters.sqlite.store.SqliteStore. Its first number is 7."""

    incidents: list[Incident] = field(default_factory=list)
    events: list[tuple[IncidentEvent, int]] = field(default_factory=list)
    over: list[str] = field(default_factory=list)
    trouble: str = ""
    files: dict[str, str] = field(default_factory=dict)
    unsaved: str = ""
    minutes: list[Minute] = field(default_factory=list)

    def sample(self, minute: Minute) -> None:
        self.minutes.append(minute)

    async def began(self, deployed: DeploymentRecord) -> None:
        self.over.clear()

    async def ended(self, deployment: str, at: float, why: str) -> None:
        self.over.append(why)

    async def note(self, deployment: str, event: IncidentEvent, incident: int = 0) -> None:
        self.events.append((event, incident))

    async def open(self, incident: Incident) -> Incident:
        number = incident.number or 7 + len(self.incidents)
        made = replace(incident, number=number, folder=f"/evidence/{number}")
        self.incidents.append(made)
        return made

    async def explain(self, number: int, cause: str, code: str, fix: tuple[str, ...], what: str = "") -> None:
        self._change(number, cause=cause, code=code, **({"what": what} if what else {}))

    async def close(
        self, number: int, at: float, outcome: str, serving_at: float = 0.0, up: Uptime | None = None
    ) -> Incident | None:
        self.incidents = [
            one.closed(at, outcome, serving_at, up) if one.number == number else one for one in self.incidents
        ]
        return next((one for one in self.incidents if one.number == number), None)

    async def served(self, number: int, at: float, up: Uptime | None = None) -> None:
        self.incidents = [one.served(at, up) if one.number == number else one for one in self.incidents]

    async def is_handed(self, number: int) -> bool:
        return any(one.is_handed for one in self.incidents if one.number == number)

    async def counts(self, deployment: str) -> tuple[int, int]:
        return len(self.incidents), max((one.number for one in self.incidents), default=0)

    async def save(self, number: int, files: Mapping[str, str]) -> str:
        self.files |= files
        return self.unsaved

    def wrong(self) -> str:
        return self.trouble

    def _change(self, number: int, **what: object) -> None:
        self.incidents = [replace(i, **what) if i.number == number else i for i in self.incidents]  # type: ignore[arg-type]


@dataclass
class FakeNotifier:
    """A notifier as adapters.hooks.Hooks."""

    news: list[News] = field(default_factory=list)

    def announce(self, news: News) -> None:
        self.news.append(news)


@dataclass
class FakeKeep:
    journal: FakeJournal = field(default_factory=FakeJournal)
    store: FakeStore = field(default_factory=FakeStore)
    notifier: FakeNotifier = field(default_factory=FakeNotifier)
