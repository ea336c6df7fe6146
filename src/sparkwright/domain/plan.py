"""What would happen, as data: which rank runs where, with exactly which command."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sparkwright.domain.advice import Advice
from sparkwright.domain.cluster import Cluster
from sparkwright.domain.command import Secret
from sparkwright.domain.facts import FabricChoice
from sparkwright.domain.finding import Finding
from sparkwright.domain.ledger import MemoryLedger
from sparkwright.domain.recipe import Recipe, Runtime
from sparkwright.domain.speed import Speed
from sparkwright.domain.verdict import Remedy, Verdict


@dataclass(frozen=True, slots=True)
class Placement:
    """Rank -> node. nodes[rank] is the node's name; fabric has one entry per node."""

    nodes: tuple[str, ...]
    fabric: Mapping[str, FabricChoice]

    @property
    def world(self) -> int:
        return len(self.nodes)

    @property
    def head(self) -> str:
        return self.nodes[0]


@dataclass(frozen=True, slots=True)
class Mount:
    host: str
    container: str
    read_only: bool = False

    @property
    def label(self) -> str:
        return f"{self.host} as {self.container}{', read only' if self.read_only else ''}"


@dataclass(frozen=True, slots=True)
class RankFile:
    """A file that a rank needs: a launcher script, a configuration. It lies in the rank's `files` folder (files_at).

    secret: the content instead of `text`; such a file is 0600 and never shown.
    """

    name: str
    text: str = ""
    secret: Secret | None = None


@dataclass(frozen=True, slots=True)
class RankSpec:
    """Everything that one rank needs, for either runtime.

    argv: the engine's command. env: per-rank environment, no secrets. secrets: names to values, delivered through
    a 0600 file. files: written into the rank's folder before it starts. listens: address -> port pairs that must be
    free. gpu/rdma: pass the devices (docker runtime). engine_argv: the part of argv that is the engine's own, to be
    checked against its flags, where argv begins with a launcher (None: all; empty: this rank starts no such program).
    """

    rank: int
    node: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    runtime: Runtime
    image: str = ""
    entrypoint: tuple[str, ...] | None = None
    mounts: tuple[Mount, ...] = ()
    secrets: Mapping[str, Secret] = field(default_factory=dict)
    files: tuple[RankFile, ...] = ()
    listens: tuple[tuple[str, int], ...] = ()
    gpu: bool = True
    rdma: bool = True
    shm_bytes: int = 64 * 1024**3
    labels: Mapping[str, str] = field(default_factory=dict)
    engine_argv: tuple[str, ...] | None = None

    @property
    def is_head(self) -> bool:
        return self.rank == 0

    @property
    def engine_words(self) -> tuple[str, ...]:
        return self.argv if self.engine_argv is None else self.engine_argv


@dataclass(frozen=True, slots=True)
class Plan:
    """specs[rank]; ledgers per node; findings that came up while planning. bind: where the API listens on the head.

    verdict: of all ledgers together, None before they are weighed. remedies: what would fit where this does not.
    speeds: what is expected of one stream, of one at full depth, and of many. ignored: findings that the cluster file
    ignores.
    """

    deployment: str
    recipe: Recipe
    cluster: Cluster
    placement: Placement
    specs: tuple[RankSpec, ...]
    ledgers: tuple[MemoryLedger, ...]
    findings: tuple[Finding, ...]
    bind: str
    port: int
    served_name: str
    advice: Advice | None = None
    verdict: Verdict | None = None
    remedies: tuple[Remedy, ...] = ()
    speeds: tuple[Speed, ...] = ()
    ignored: tuple[Finding, ...] = ()

    @property
    def head(self) -> str:
        return self.placement.head

    @property
    def launch_order(self) -> tuple[RankSpec, ...]:
        """Workers first, head last: a head whose workers wait already meets no stale rendezvous (field guide C0)."""
        return (*self.specs[1:], self.specs[0])
