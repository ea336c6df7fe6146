"""A benchmark run as it is kept: conditions, levels, and every request that was sent."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sparkwright.domain.traffic import Lag, Row
from sparkwright.domain.workload import LevelPlan, Workload


@dataclass(frozen=True, slots=True)
class Conditions:
    """Under what a run was measured; '' where it is not known. ours: the endpoint is a deployment of this cluster.

    tokenizer: how prompt lengths were made (`/tokenize of the server`, `file <sha>`, `estimate`). nodes: a line each.
    front_door: URL of the one that a deployment of ours was measured through, '' for the engine itself.
    flags: the engine's argv of rank 0 without secrets. clock: the client's, and how it is disciplined.
    """

    endpoint: str
    model: str
    ours: bool = False
    deployment: str = ""
    front_door: str = ""
    recipe: str = ""
    recipe_hash: str = ""
    image: str = ""
    engine: str = ""
    engine_version: str = ""
    flags: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    max_context: int = 0
    tokenizer: str = ""
    client: str = ""
    client_host: str = ""
    seed: int = 0
    clock: str = ""
    simulated: bool = False

    @property
    def missing(self) -> tuple[str, ...]:
        """What provenance lacks: on our own deployments a run without it is not valid."""
        wanted = ("recipe_hash", "engine", "engine_version", "flags", "nodes") if self.ours else ("model",)
        return tuple(name for name in wanted if not getattr(self, name))


@dataclass(frozen=True, slots=True)
class Scrape:
    """The server's counters at one moment (words of engines/metrics.py), and the nodes' memory if they are ours.

    at: seconds since the level's start. memory: node -> bytes available.
    """

    at: float
    figures: Mapping[str, float] = field(default_factory=dict)
    memory: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Level:
    """One repeat of one level. doubts: why its figures may not count (client behind, server restarted, ...).

    complete: False where the run ended, or was killed, before all of its requests had an end.
    """

    plan: LevelPlan
    repeat: int
    began: float
    seconds: float = 0.0
    rows: tuple[Row, ...] = ()
    lag: Lag = field(default_factory=Lag)
    scrapes: tuple[Scrape, ...] = ()
    doubts: tuple[str, ...] = ()
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Run:
    """id: as users name it (r-20261122-7f3a). state: running, done, stopped. imported: from which tool, '' if ours."""

    id: str
    began: float
    workload: Workload
    conditions: Conditions
    state: str = "running"
    ended: float = 0.0
    levels: tuple[Level, ...] = ()
    tags: tuple[str, ...] = ()
    note: str = ""
    imported: str = ""


@dataclass(frozen=True, slots=True)
class Listed:
    """A run without its requests. workload: name@version. done of planned: repeats of levels that are complete."""

    id: str
    began: float
    ended: float
    state: str
    workload: str
    model: str
    endpoint: str
    engine: str = ""
    engine_version: str = ""
    simulated: bool = False
    done: int = 0
    planned: int = 0
    requests: int = 0
    errors: int = 0
    tags: tuple[str, ...] = ()
    note: str = ""
    imported: str = ""
