"""A plan as data: which rank would run where, with exactly which command; and the advice to the user."""

from collections.abc import Mapping

from sparkwright.domain.cluster import Cluster
from sparkwright.domain.command import Secret
from sparkwright.domain.facts import FabricChoice
from sparkwright.domain.finding import Finding
from sparkwright.domain.ledger import Fit, MemoryLedger
from sparkwright.domain.recipe import Parallelism, Recipe, Runtime
from sparkwright.domain.replica import ReplicaPlace
from sparkwright.domain.values import dataclass, field
from sparkwright.domain.verdict import LoaderCost, Remedy, Speed, Verdict

Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class SplitCost:
    """One node's share, and one decoding step without speculation at short context.

    weights: bytes on the fullest node; copies: how much of it other nodes hold, too. kv_token: bytes of KV cache that a
    token takes on a node. read: bytes that the slowest path reads for one token. collectives: exchanges between nodes
    that a token waits for; sent: bytes that a node sends in them. step, batch_step: seconds (best, worst) of a step for
    one sequence and for `batch` of them.
    """

    weights: int
    copies: int
    kv_token: float
    read: int
    collectives: int
    sent: int
    step: Range
    batch_step: Range


@dataclass(frozen=True, slots=True)
class Split:
    """refused: why it cannot work, each with the value and what is needed. cost: None where it is not known."""

    parallelism: Parallelism
    refused: tuple[str, ...] = ()
    cost: SplitCost | None = None

    @property
    def possible(self) -> bool:
        return not self.refused


@dataclass(frozen=True, slots=True)
class Advice:
    """All splits over so many nodes, the recipe's own first. source: where the model's shape is from, '' if unknown.

    architecture, quantization: what config.json calls them.
    why: what is not known, or what the figures leave out. other_nodes: node counts near by that some split works on.
    contradictions: figures for the size of the model that cannot all be right. too_small: nodes whose files are smaller
    than the model that their config.json describes, each with the command that completes them.
    """

    source: str = ""
    architecture: str = ""
    quantization: str = ""
    batch: int = 1
    splits: tuple[Split, ...] = ()
    why: str = ""
    other_nodes: tuple[int, ...] = ()
    contradictions: tuple[str, ...] = ()
    too_small: tuple[tuple[str, str], ...] = ()

    @property
    def chosen(self) -> Split | None:
        return self.splits[0] if self.splits else None

    @property
    def nearest(self) -> Split | None:
        """The split that works and changes least of the recipe's own; None when none does."""
        own = self.chosen
        working = [split for split in self.splits[1:] if split.possible]
        return min(working, key=lambda s: _changes(s.parallelism, own.parallelism), default=None) if own else None


def split_text(p: Parallelism) -> str:
    """`tp 2 x pp 1 + ep`, without the ones: `tp 2`, `pp 2`, `dp 2 + ep`, `one node`."""
    parts = [f"{name} {count}" for name, count in (("tp", p.tp), ("pp", p.pp), ("dp", p.dp)) if count > 1]
    return (" x ".join(parts) or "one node") + (" + ep" if p.ep else "")


def _changes(one: Parallelism, other: Parallelism) -> tuple[int, int]:
    """Sort key: the number of keys that differ, then the larger tensor parallelism first."""
    pairs = ((one.tp, other.tp), (one.pp, other.pp), (one.dp, other.dp), (one.ep, other.ep))
    return sum(a != b for a, b in pairs), -one.tp


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
    keeper: the process that keeps this rank's weights in GPU memory; it outlives the rank.
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
    keeper: "Keeper | None" = None

    @property
    def is_head(self) -> bool:
        return self.rank == 0

    @property
    def engine_words(self) -> tuple[str, ...]:
        return self.argv if self.engine_argv is None else self.engine_argv


@dataclass(frozen=True, slots=True)
class Keeper:
    """The process that keeps a rank's weights. spec: started as a rank is; its labels name the deployment as `keeper`.

    ready: words of its log once the weights can be mapped. folder: of its sockets, below /tmp on the node; '' in a
    container.
    """

    spec: RankSpec
    ready: str
    folder: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """specs[rank]; ledgers per node; findings that came up while planning. bind: where the API listens on the head.

    verdict: of all ledgers together, None before they are weighed. remedies: what would fit where this does not.
    speeds: what is expected of one stream, of one at full depth, and of many. loaders: what
    each costs, the recipe's own first. ignored: findings that the cluster file ignores. replica: None for a deployment
    that stands alone.
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
    loaders: tuple[LoaderCost, ...] = ()
    ignored: tuple[Finding, ...] = ()
    replica: ReplicaPlace | None = None

    @property
    def head(self) -> str:
        """The node of rank 0, where the engine answers."""
        return self.placement.head

    @property
    def supervisor_node(self) -> str:
        """The node of supervisor and gateway: the head, but for a replica elsewhere."""
        return self.cluster.supervised_on or self.head


def stopping(plan: Plan, force: str) -> tuple[Finding, ...]:
    """The findings that forbid acting on the plan; `force` lifts those that may be overridden."""
    return tuple(f for f in plan.findings if f.severity == "block" or (f.severity == "override" and not force))


def not_known(plan: Plan) -> bool:
    """Tell whether the verdict lacks a figure, so that nobody knows whether the plan fits.

    A simulated engine takes no memory: it always fits.
    """
    simulated = plan.cluster.simulated or any(spec.labels.get("simulated") == "true" for spec in plan.specs)
    return plan.verdict is not None and plan.verdict.fit is Fit.UNKNOWN and not simulated
