"""The subject of a supervisor: the deployment that it keeps alive, and its observations."""

import math
from collections import deque
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property

from sparkwright.adapters.hooks import Hooks
from sparkwright.adapters.notify import Notifier
from sparkwright.adapters.sqlite.store import SqliteStore
from sparkwright.app import ranks
from sparkwright.app.cluster_state import nodes_for
from sparkwright.app.diagnose.diagnosing import reading
from sparkwright.app.diagnose.incident import Heard
from sparkwright.app.serve.prepare import Outcome
from sparkwright.app.services import LaunchRequest, Services
from sparkwright.domain.command import Secret
from sparkwright.domain.incident import Incident, Uptime
from sparkwright.domain.known_keys import mask_keys
from sparkwright.domain.live import (
    Desired,
    LiveCacheTier,
    LiveCanary,
    LiveDiskCache,
    LiveEngine,
    LivePrefixes,
    LiveRank,
    RequestAnswer,
)
from sparkwright.domain.plan import Placement, Plan, RankSpec
from sparkwright.domain.progress import Happening, RankPhase
from sparkwright.domain.sample import GpuSample, Sample
from sparkwright.domain.units import DRAIN_SECONDS
from sparkwright.domain.values import dataclass, field, replace
from sparkwright.engines.catalog import engine_of
from sparkwright.engines.dialect import is_exit_noise
from sparkwright.engines.engine import Engine, served_name
from sparkwright.ports import Sink
from sparkwright.supervisor.core.state import Announce, Policy
from sparkwright.supervisor.home import Home

_LAST_LINES, _LAST_READINGS, _LAST_SAMPLES = 40, 12, 60
_ANSWERS = 8
_SCRAPED = 'metrics HTTP/1.1" 200'
LOOPBACK = "127.0.0.1"
RELAUNCHES, STARTED_IN = "relaunches", "started in"
RESTARTS, RESTARTED = "restarts:", "restarted:"
BEGUN, LEFT = "begun", "left"
_BESIDE = "beside:"
_LEAST_PAUSE = 0.4  # s


@dataclass
class Observations:
    """The latest observations. bind: the engine's address on the head. lines: the last ones of each rank.

    why, back_at: of the refusal at the gateway. doing: what a work waits for. request: nonce of the one that is
    followed. answers: to the last requests.

    incidents: how many, and the last one's number. closed, ended: the last incident that was closed, by its number
    and as the store has it. folder: where the evidence of the last one is; captured: the one whose evidence is
    collected. relaunches: since `up`. launched_at: when the launch under way began (monotonic). launched: what it
    launches, None where another process did.
    opening: to be announced of the next incident once it has its number. drain: seconds that requests under way get
    at the stop that is asked for. room: why another deployment asks it to stop if idle. good_at: when it answered
    last. starting: how far each rank of a start is. count, last: lines of each rank since the start, and the last.
    own_at: when the engine had a request of ours last, infinite while it has one. followers: by the open incident's
    number, keys of causes that only follow from its own. incident: number of the open one, 0 for none. boots: the last
    known boot marker of each node. looked: when each node was seen last (monotonic).
    history: the last samples of each node. prefixes: sent again since the start.
    disk_cache, cache_tiers: as last seen. restored: tokens that slots had after the last start.
    moved: id of the image that the recipe's tag has become, once that was said.
    """

    bind: str = LOOPBACK
    ranks: dict[int, LiveRank] = field(default_factory=dict)
    lines: dict[int, deque[str]] = field(default_factory=dict)
    samples: dict[str, Sample] = field(default_factory=dict)
    gpus: dict[str, deque[GpuSample]] = field(default_factory=dict)
    engine: LiveEngine | None = None
    page: str = ""
    canary: LiveCanary | None = None
    why: str = ""
    moved: str = ""
    back_at: float = 0.0
    doing: str = ""
    request: str = ""
    answers: tuple[RequestAnswer, ...] = ()
    drain: float = DRAIN_SECONDS
    room: str = ""
    incidents: tuple[int, int] = (0, 0)
    closed: int = 0
    ended: Incident | None = None
    relaunches: int = 0
    launched_at: float = 0.0
    launched: Outcome | None = None
    folder: str = ""
    captured: int = 0
    opening: Announce | None = None
    good_at: float = 0.0
    starting: dict[int, RankPhase] = field(default_factory=dict)
    count: dict[int, int] = field(default_factory=dict)
    last: dict[int, str] = field(default_factory=dict)
    own_at: float = 0.0
    followers: dict[int, tuple[str, ...]] = field(default_factory=dict)
    incident: int = 0
    boots: dict[str, str] = field(default_factory=dict)
    looked: dict[str, float] = field(default_factory=dict)
    history: dict[str, deque[Sample]] = field(default_factory=dict)
    prefixes: LivePrefixes | None = None
    disk_cache: tuple[LiveDiskCache, ...] = ()
    cache_tiers: tuple[LiveCacheTier, ...] = ()
    restored: float | None = None
    _good: dict[int, int] = field(default_factory=dict)

    def answer(self, request: str, refused: str = "", cure: str = "") -> None:
        """Keeps what became of a request, for the caller who looks for it."""
        others = tuple(one for one in self.answers if one.request != request)
        self.answers = (*others, RequestAnswer(request, refused, cure))[-_ANSWERS:]
        if not refused:
            self.request = request

    def forget_request(self) -> None:
        """Its work has ended: the same process may ask again, and waits for a new answer then."""
        self.answers = tuple(one for one in self.answers if one.request != self.request)
        self.request = ""

    def sample(self, node: str, sample: Sample) -> None:
        self.samples[node] = sample
        self.history.setdefault(node, deque(maxlen=_LAST_SAMPLES)).append(sample)
        if isinstance(sample.gpu, GpuSample):
            self.gpus.setdefault(node, deque(maxlen=_LAST_READINGS)).append(sample.gpu)

    def line(self, rank: int, text: str) -> None:
        """Note a line. Scrapes of metrics and noise at exit are not saved: they would push out a rank's last lines."""
        if text.strip():  # the first was there before it was followed
            self.count[rank], self.last[rank] = self.count.get(rank, -1) + 1, text
        if _SCRAPED not in text and not is_exit_noise(text):
            self.lines.setdefault(rank, deque(maxlen=_LAST_LINES)).append(text)

    def begin(self, at: float) -> None:
        """A start serves."""
        self.good_at = at
        for told in (self.count, self._good, self.last):
            told.clear()

    def answered(self, count: Mapping[int, int], at: float) -> None:
        """It gave a good answer at that time, and before it the ranks had printed so many lines."""
        self.good_at = max(self.good_at, at)
        self._good = {rank: max(lines, self._good.get(rank, 0)) for rank, lines in count.items()}

    def progress(self, rank: LiveRank) -> LiveRank:
        """The rank with the progress of its start."""
        at = self.starting.get(rank.rank)
        if at is None:
            return rank
        return replace(rank, phase=str(at.phase), text=at.text[:200], done=at.done, total=at.total, unit=at.unit)

    def since_good(self, rank: int) -> Heard:
        return Heard(self.count.get(rank, 0) - self._good.get(rank, 0), self.last.get(rank, ""))


@dataclass(frozen=True, slots=True)
class Starting:
    """A sink that also notes how far each rank is."""

    seen: Observations
    sink: Sink

    def report(self, happening: Happening) -> None:
        if isinstance(happening, RankPhase):
            self.seen.starting[happening.rank] = happening
        self.sink.report(happening)


@dataclass
class DeploymentContext:
    """Rank k is on the k-th node of the recipe, the head's first.

    state: folder with the gateway's files on this machine, '' for the node's own: a standby has a copy of the head's.
    """

    services: Services
    desired: Desired
    journal: Home
    store: SqliteStore
    notifiers: Sequence[Hooks | Notifier]
    policy: Policy
    seen: Observations = field(default_factory=Observations)
    state: str = ""

    @property
    def name(self) -> str:
        return self.desired.deployment

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        return tuple(node.name for node in nodes_for(self.services, self.desired.recipe))

    @property
    def rdma(self) -> bool:
        """True if its ranks talk over RDMA, as far as known before the fabric is inspected."""
        return len(self.nodes) > 1 and not self.simulated

    @property
    def simulated(self) -> bool:
        return self.services.cluster.simulated or self.desired.recipe.model.simulated

    @property
    def head(self) -> str:
        return self.nodes[0]

    @property
    def supervisor_node(self) -> str:
        """This machine: the head, but for a replica elsewhere."""
        return self.services.cluster.supervisor_node

    @property
    def launch_request(self) -> LaunchRequest:
        return LaunchRequest(
            self.desired.recipe,
            self.name,
            self.desired.force,
            self.key,
            supervised=True,
            beside=self.neighbours,
            replica=self.desired.replica,
        )

    @property
    def neighbours(self) -> tuple[str, ...]:
        """Deployments that were seen to run on its nodes together with it; kept over reboots."""
        figures = self.journal.recall()
        return tuple(sorted(name.removeprefix(_BESIDE) for name in figures if name.startswith(_BESIDE)))

    def note_neighbours(self, others: Collection[str]) -> None:
        if new := set(others).difference(self.neighbours):
            self.remember({f"{_BESIDE}{name}": 1.0 for name in new})

    @property
    def key(self) -> Secret | None:
        """The engine's own."""
        return self.services.secrets.get(self.desired.recipe.serving.api_key_env)

    @property
    def outline(self) -> Plan:
        """The plan as far as it is the same at every start: who is where, and how it is reached. Asks no node."""
        recipe = self.desired.recipe
        specs = tuple(RankSpec(k, node, (), {}, recipe.engine.runtime) for k, node in enumerate(self.nodes))
        return Plan(
            deployment=self.name,
            recipe=recipe,
            cluster=self.services.cluster,
            placement=Placement(self.nodes, {}),
            specs=specs,
            ledgers=self.seen.launched.plan.ledgers if self.seen.launched else (),
            findings=(),
            bind=self.seen.bind,
            port=recipe.serving.port,
            served_name=served_name(recipe),
        )

    @property
    def url(self) -> str:
        """The engine's URL as this machine reaches it."""
        bind = LOOPBACK if self.seen.bind in ("", "0.0.0.0") else self.seen.bind
        host = f"[{bind}]" if ":" in bind else bind
        return f"http://{host}:{self.desired.recipe.serving.port}"

    def handle(self, rank: int) -> str:
        """The container's name, or the folder of the processes."""
        return ranks.handle(self.services, self.name, self.outline.specs[rank])

    def following(self, rank: int) -> AsyncIterator[str | ranks.End]:
        """Its log from now on, and its end."""
        runtime = self.desired.recipe.engine.runtime
        return ranks.follow(self.services.hosts[self.nodes[rank]], runtime, self.handle(rank), 1)

    @cached_property
    def engine(self) -> Engine:
        return engine_of(self.desired.recipe)

    @property
    def fix_values(self) -> dict[str, str]:
        """The names that a fix's commands may contain."""
        serving, model = self.desired.recipe.serving, served_name(self.desired.recipe)
        words = {"deployment": self.name, "recipe": self.desired.recipe.label, "head": self.head, "node": self.head}
        words |= {"port": str(serving.port), "model": model, "peer": self.nodes[-1]}
        words |= {"runtime": str(self.desired.recipe.engine.runtime)}
        return words | reading(self.name)

    def remember(self, figures: Mapping[str, float]) -> None:
        """Adds figures to those of the journal."""
        self.journal.remember({**self.journal.recall(), **figures})

    def label(self, rank: int) -> str:
        return f"rank {rank} on {self.nodes[rank]}"

    def now(self) -> float:
        return self.services.clock.now()

    def opened(self, incident: Incident) -> Incident:
        """The incident with its begin by the clock that nobody sets."""
        return incident.began(self.now(), self.uptime())

    def uptime(self) -> Uptime:
        return replace(self.services.clock.uptime(), node=self.supervisor_node)

    @contextmanager
    def own_request(self) -> Iterator[None]:
        """Marks a request of ours, which is nobody's use of the engine."""
        self.seen.own_at = math.inf
        try:
            yield
        finally:
            self.seen.own_at = self.now()

    def scaled(self, seconds: float) -> float:
        """A wait of ours, as drills shorten it."""
        return seconds * self.desired.time_scale

    async def pause(self, seconds: float) -> None:
        """Shortened as drills ask for it, but to no less than `_LEAST_PAUSE`: each look costs CPU."""
        await self.services.clock.sleep(max(self.scaled(seconds), min(seconds, _LEAST_PAUSE)))

    def notice(self, text: str, warning: bool = False) -> None:
        self.services.notice(mask_keys(text), warning)
