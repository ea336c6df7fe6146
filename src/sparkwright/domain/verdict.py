"""The verdict on a recipe: does it fit in the free memory of its nodes, what would make it fit at what cost, its
speed."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from sparkwright.domain.ledger import Fit, KvCapacity, Lack
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.values import dataclass, field


@dataclass(frozen=True, slots=True)
class Estimate:
    """value with the interval low..high that nine of ten measurements should fall into. why: the arithmetic.

    value 0 with a why: it cannot be estimated, and for which reason.
    """

    value: float
    low: float = 0.0
    high: float = 0.0
    why: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        return self.value > 0


@dataclass(frozen=True, slots=True)
class Load:
    """The load on the endpoint. depth: tokens before; prompt: tokens of each request; cached: those of them that are
    cached.

    text: what is written, as far as it decides how many drafts are accepted (prose, code, counting; '' not known).
    """

    depth: int = 0
    concurrency: int = 1
    prompt: int = 0
    cached: int = 0
    text: str = ""


@dataclass(frozen=True, slots=True)
class Speed:
    """decode: tokens/s of one stream; decode_all: of all together. prefill: tokens/s. ttft, loading: seconds.

    starts: loading again, for a start from the disk and for a later one from the page cache.
    """

    load: Load
    decode: Estimate
    decode_all: Estimate
    prefill: Estimate
    ttft: Estimate
    loading: Estimate
    starts: tuple[tuple[str, Estimate], ...] = ()


@dataclass(frozen=True, slots=True)
class LoaderCost:
    """A way to read weights. name: its load-format, `default` for the engine's own. there: True if the engine's version
    has it, None if that was not read. buffers, keeps: bytes as (likely, least, most), while it reads and for as long as
    it serves. files: seconds for a rank's share. took, kept: as measured at an earlier start on these nodes, None
    without one; source: where those come from."""

    name: str
    what: str
    there: bool | None
    buffers: tuple[int, int, int]
    keeps: tuple[int, int, int]
    files: Estimate
    took: float | None = None
    kept: int | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """short: bytes that `node`, the worst, lacks. room: bytes that stay free on the fullest node.

    doubt: what would be in the way at the low end of a pool's range where it starts at the high end.
    kv: of the rank with the smallest pool, None when it is unknown. known: False where a node's memory, or
    what a line of its ledger takes, is not. missing: `what: why` of each, without repetition.
    pools: how many ranks have such a KV pool of their own (data parallelism); a request has all its tokens in one of
    them.
    """

    fits: bool
    lack: Lack | None = None
    short: int = 0
    node: str = ""
    room: int = 0
    kv: KvCapacity | None = None
    known: bool = True
    doubt: Lack | None = None
    missing: tuple[str, ...] = ()
    pools: int = 1

    @property
    def fit(self) -> Fit:
        if not self.fits:
            return Fit.NOT
        if not self.known:
            return Fit.UNKNOWN
        return Fit.MAY if self.doubt else Fit.FITS

    @property
    def sequences(self) -> float:
        """The number of sequences of full length that fit at once in all pools; 0 if unknown."""
        each = self.kv.sequences if self.kv else 0.0
        return each * self.pools if each >= 1 else each

    @property
    def tokens(self) -> int:
        """Tokens of all pools together; 0 if unknown."""
        return self.kv.tokens * self.pools if self.kv else 0


class ActionKind(StrEnum):
    DROP_CACHE = "drop the page cache"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Action:
    """Something to do on a node. frees: bytes that it gives back at most. lost: what somebody has no more then.

    pids: GPU processes that end with it. deployment: the one of ours that ends with it, '' for none.
    """

    node: str
    kind: ActionKind
    command: str
    frees: int
    lost: str = ""
    pids: tuple[int, ...] = ()
    deployment: str = ""


@dataclass(frozen=True, slots=True)
class Variant:
    """A recipe's keys with other values (`serving.context` -> 131072; None: leave the key out), and actions."""

    changes: tuple[tuple[str, Any], ...] = ()
    actions: tuple[Action, ...] = ()

    def __add__(self, other: "Variant") -> "Variant":
        return Variant((*self.changes, *other.changes), (*self.actions, *other.actions))

    @property
    def keys(self) -> Mapping[str, Any]:
        return dict(self.changes)


@dataclass(frozen=True, slots=True)
class Remedy:
    """One way to make it fit. change: what to write in the recipe or to do, exactly. costs: what is given up for it.

    verdict: what is judged of `recipe` (the changed one) once the actions are done.
    """

    change: str
    costs: tuple[str, ...]
    variant: Variant
    recipe: Recipe
    verdict: Verdict


class Goal(StrEnum):
    """The goal of `--optimize`.

    context: the longest context. throughput: most tokens/s of many requests. latency: the soonest whole answer.
    """

    CONTEXT = "context"
    THROUGHPUT = "throughput"
    LATENCY = "latency"


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to set the limits, and what comes of it. alone: one stream; together: `together.load.concurrency`."""

    variant: Variant
    recipe: Recipe
    verdict: Verdict
    alone: Speed | None = None
    together: Speed | None = None
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class Optimum:
    """best is before itself where nothing better was found. table: what other settings would give, best first.

    why: in one sentence what was looked for. judged: how many settings were judged.
    """

    goal: Goal
    before: Choice
    best: Choice
    table: tuple[Choice, ...] = field(default_factory=tuple)
    why: str = ""
    judged: int = 0
