"""What a benchmark needs from outside, and its target."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sparkwright.app.bench.target import Target
from sparkwright.domain.facts import RankStatus
from sparkwright.domain.probed import Launched, Probed
from sparkwright.domain.run import Lag, Row
from sparkwright.domain.workload import LevelPlan, Workload
from sparkwright.ports import Clock, Endpoint, LoadClient, RunStore, Tokenizer


class Screen(Protocol):
    """Where it is shown how a run goes on. Never blocks, never fails."""

    def level(self, plan: LevelPlan, repeat: int, of: int) -> None:
        """One repeat of a level begins. repeat: from 0, of `of`."""
        ...

    def row(self, row: Row) -> None: ...

    def lag(self, lag: Lag) -> None: ...

    def note(self, text: str) -> None: ...

    def done(self) -> None:
        """Of that repeat."""
        ...


@dataclass(frozen=True, slots=True)
class Machine:
    """The one that measures. client: version and Python. clock: how it is disciplined. nonce: of this call."""

    client: str
    host: str
    clock: str
    nonce: str


@dataclass(frozen=True, slots=True)
class Bench:
    """tokenizer: how prompts of an engine are counted."""

    asker: Endpoint
    client: LoadClient
    runs: RunStore
    clock: Clock
    machine: Machine
    tokenizer: Callable[[Endpoint, Target, Probed], Awaitable[Tokenizer]]


@dataclass(frozen=True, slots=True)
class DeploymentInfo:
    """A deployment of this cluster, by its head's rank. nodes: a line each of those it runs on.

    tunnelled: reached through ssh. gateway: URL of the gateway that is measured, '' for the engine itself.
    """

    head: RankStatus
    nodes: tuple[str, ...]
    names: tuple[str, ...]
    launched: Launched
    tunnelled: bool = False
    gateway: str = ""


async def no_memory() -> Mapping[str, int]:
    return {}


@dataclass(frozen=True, slots=True)
class Order:
    """One endpoint under one workload. levels: those that fit. memory: of the nodes, {} where they are not ours."""

    target: Target
    probed: Probed
    workload: Workload
    levels: tuple[LevelPlan, ...]
    ours: DeploymentInfo | None = None
    memory: Callable[[], Awaitable[Mapping[str, int]]] = field(default=no_memory)
    tags: tuple[str, ...] = ()
    note: str = ""
