"""Ways to split a model over the nodes, with what each costs: what the parallelism advisor says."""

from dataclasses import dataclass

from sparkwright.domain.recipe import Parallelism

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
    """refused: why it cannot work, each with what was observed and what is wanted. cost: None where it is not known."""

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
    """

    source: str = ""
    architecture: str = ""
    quantization: str = ""
    batch: int = 1
    splits: tuple[Split, ...] = ()
    why: str = ""
    other_nodes: tuple[int, ...] = ()

    @property
    def chosen(self) -> Split | None:
        return self.splits[0] if self.splits else None

    @property
    def nearest(self) -> Split | None:
        """The split that works and changes least of the recipe's own; None when none does."""
        own = self.chosen
        working = [split for split in self.splits[1:] if split.possible]
        return min(working, key=lambda s: _changes(s.parallelism, own.parallelism), default=None) if own else None


def words(p: Parallelism) -> str:
    """`tp 2 x pp 1 + ep`, without the ones: `tp 2`, `pp 2`, `dp 2 + ep`, `one node`."""
    parts = [f"{name} {count}" for name, count in (("tp", p.tp), ("pp", p.pp), ("dp", p.dp)) if count > 1]
    return (" x ".join(parts) or "one node") + (" + ep" if p.ep else "")


def _changes(one: Parallelism, other: Parallelism) -> tuple[int, int]:
    """How many of the keys differ; of equals, the one that keeps more tensor parallelism."""
    pairs = ((one.tp, other.tp), (one.pp, other.pp), (one.dp, other.dp), (one.ep, other.ep))
    return sum(a != b for a, b in pairs), -one.tp
