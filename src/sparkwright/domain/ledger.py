"""One node's memory pool and its KV cache, line by line."""

from enum import StrEnum
from math import hypot

from sparkwright.domain.values import dataclass


class CacheKind(StrEnum):
    """full: a row a token. window: the last tokens only. mla: one latent row a token, whole on every rank of tp.

    index: the lightning indexer's row. compressed: one row for `ratio` tokens. state: a fixed block a sequence.
    """

    FULL = "full"
    WINDOW = "window"
    MLA = "mla"
    INDEX = "index"
    COMPRESSED = "compressed"
    STATE = "state"


@dataclass(frozen=True, slots=True)
class CacheLayers:
    """Layers of one rank that keep the same. row: bytes an entry and layer on this rank; ratio: tokens an entry.

    window: tokens, 0 for the whole context. state: bytes a sequence and layer (kind state). why: the arithmetic.
    block: tokens a page where the engine's code fixes them, 0: the engine's block size. foreign: of another model, so
    that they are no group with layers that only look alike.
    """

    kind: CacheKind
    layers: int
    row: float = 0.0
    ratio: int = 1
    window: int = 0
    state: int = 0
    why: str = ""
    block: int = 0
    foreign: bool = False


@dataclass(frozen=True, slots=True)
class KvCapacity:
    """The capacity of a KV pool of `bytes` on one rank.

    reported: tokens as the engine's own line prints them. tokens: what really fits, in sequences of full length.
    sequences: how many of full length fit at once. block: tokens a page. per_sequence: bytes that one takes.
    unknown: why nothing could be counted, '' when it could. why: the arithmetic, line by line. low, high: `tokens` by
    what is not known: another release's rules, a draft model, a model without a configuration; doubts: sentences of it.
    context: tokens of one request, where the engine chooses the length by what fits; 0 elsewhere.
    """

    bytes: int
    reported: int = 0
    tokens: int = 0
    sequences: float = 0.0
    block: int = 0
    per_sequence: int = 0
    unknown: str = ""
    why: tuple[str, ...] = ()
    low: int | None = None
    high: int | None = None
    doubts: tuple[str, ...] = ()
    context: int = 0


class Origin(StrEnum):
    """The source of a ledger line."""

    MEASURED = "measured"
    COMPUTED = "computed"
    CALIBRATED = "calibrated"
    ASSUMED = "assumed"


# Names of lines that more than one reader looks for.
IN_USE = "in use now"
WEIGHTS = "weights"
OVERHEAD = "engine overhead"
PROCESSES = "engine's processes"
COMMUNICATION = "communication buffers"
CONTEXT = "CUDA kernels"
ACTIVATIONS = "activations"
GRAPHS = "CUDA graphs"
KV_POOL = "KV pool"
STATES = "states of sequences"
TIER = "KV tier in host memory"
LOADER = "loader's buffers"
KEEPER = "weight cache process"
LOADING = "load-time peak"


class Lack(StrEnum):
    """The reason why a recipe does not fit on a node.

    claim: the memory fraction is more than is free now. pool: weights and the engine's own needs leave nothing for a KV
    pool. node: all lines together, or the peak while loading, are more than the node has. context: the pool is smaller
    than one sequence of full length, and the engine ends at start.
    """

    CLAIM = "claim"
    POOL = "pool"
    NODE = "node"
    CONTEXT = "context"


class Fit(StrEnum):
    """fits: at the low end of the pool's range, too. may not fit: at its high end only. does not fit: at neither.

    not known: the size of the weights, of the KV pool or of a node's memory is not known.
    """

    FITS = "fits"
    MAY = "may not fit"
    NOT = "does not fit"
    UNKNOWN = "not known"


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """bytes: what is taken (or, for the pool, what there is). why: the arithmetic or the source in one sentence.

    low, high: the range that it is believed to be in, None when the figure is exact.
    known: False when nothing shows how much it is; bytes is 0 then, which is no figure, and low the least it can be.
    """

    name: str
    bytes: int
    origin: Origin
    why: str = ""
    low: int | None = None
    high: int | None = None
    known: bool = True


class Counts(StrEnum):
    """The figure of /proc/meminfo by which an engine counts what is free on a node whose CPU and GPU share memory."""

    AVAILABLE = "MemAvailable"
    FREE = "MemFree"


@dataclass(frozen=True, slots=True)
class FreeMemory:
    """Three figures that differ, bytes: available and free as of /proc/meminfo, large: of `free` in blocks of 16 MiB

    or more, None where it is not known. counts: the one by which this engine's own check goes.
    """

    counts: Counts
    available: int
    free: int
    large: int | None = None

    @property
    def counted(self) -> int:
        return self.free if self.counts is Counts.FREE else self.available


@dataclass(frozen=True, slots=True)
class MemoryLedger:
    """pool: the node's MemTotal, or CUDA's total of a GPU with memory of its own. lines: what takes from it. left =
    pool - sum(lines); below 0 it does not fit.

    claim: bytes of the pool that the engine wants to find free at start (its memory fraction); 0: it has no such check.
    outside: names of the engine's own lines that come on top of the claim. capacity: what the KV pool holds, None when
    nothing shows it; kv_needed: bytes of one sequence of full length, without which the engine does not start, by the
    costliest release that its version may be, kv_least by the cheapest (None: the same).
    uncounted: why nobody knows whether the KV pool holds one sequence of full length, where the engine asks for that.
    loading: the most that is taken while weights are read, None where nothing is. seen: the node's memory as it is
    now, None where it is not known or the GPU has its own.
    """

    node: str
    pool: LedgerLine
    lines: tuple[LedgerLine, ...]
    claim: int = 0
    outside: tuple[str, ...] = ()
    capacity: KvCapacity | None = None
    kv_needed: int | None = None
    loading: LedgerLine | None = None
    kv_least: int | None = None
    seen: FreeMemory | None = None
    uncounted: str = ""

    @property
    def kv_tokens(self) -> int | None:
        """Tokens as the engine will print them."""
        return self.capacity.reported if self.capacity and not self.capacity.unknown else None

    @property
    def engine_bytes(self) -> int:
        """Bytes that the engine needs within its claim before any KV pool: weights and its own needs."""
        apart = (IN_USE, KV_POOL, STATES, TIER, *self.outside)
        return sum(line.bytes for line in self.lines if line.name not in apart)

    def line(self, name: str) -> LedgerLine | None:
        """The first line of that name."""
        return next((line for line in self.lines if line.name == name), None)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names of the lines of which nobody knows how much they take: `fits` is decided without them."""
        return tuple(line.name for line in self.lines if not line.known)

    @property
    def unknown_least(self) -> int:
        """Bytes that the lines without a figure take at least, by a hint such as the model's name."""
        return sum(line.low or 0 for line in self.lines if not line.known)

    @property
    def too_much_at_least(self) -> int:
        """Bytes by which the least that is known exceeds what the engine can have; 0 if it may be enough."""
        room = min(self.claim, self.free) if self.claim else self.free
        return max(0, self.engine_bytes + self.unknown_least - room) if self.unknown_least else 0

    @property
    def left(self) -> int:
        return self.pool.bytes - sum(line.bytes for line in self.lines)

    @property
    def lowest(self) -> int:
        """Bytes that stay free when least is, while it loads or serves; below 0 it does not fit."""
        return min(self.left, self.free - self.loading.bytes) if self.loading else self.left

    @property
    def free(self) -> int:
        """Bytes that the next engine can have now, driver-retained pages included."""
        used = self.line(IN_USE)
        return self.pool.bytes - (used.bytes if used else 0)

    @property
    def loads(self) -> bool:
        """True if the free memory suffices while weights load, judged by the lowest load peak ever seen."""
        peak = self.loading
        least = 0 if peak is None else peak.bytes if peak.low is None else peak.low
        return least <= self.free + self._more_free

    @property
    def fits(self) -> bool:
        """True if all lines stay within the pool, while loading and after.

        What comes on top of the claim counts with the least that has been seen: nodes started with less room than its
        middle leaves, and serve. So do all lines where the size of the KV pool is given and takes no part of a range,
        and what others have in use.
        """
        slack = (line.bytes - line.low for line in self.lines if line.name in self.outside and line.low is not None)
        given = self._pinned and bool(self._pool_end("low"))
        spare = max(sum(slack), self._below) if given else sum(slack)
        return self.left + spare + self._more_free >= 0 and self.loads

    @property
    def claims_too_much(self) -> bool:
        return self.claim > self.free + self._more_free

    @property
    def has_no_kv(self) -> bool:
        """Weights and the engine's needs leave nothing, nor a full sequence at best, of what the engine claims."""
        kv, most = self.line(KV_POOL), self._pool_end("high") or 0
        enough = self.kv_needed is not None and most >= (self.kv_least or self.kv_needed)
        return self.claim > 0 and kv is not None and kv.known and kv.bytes <= 0 and not enough

    @property
    def too_short(self) -> bool:
        """The KV pool holds less than one sequence of full length: the engine ends, or cuts what it accepts."""
        most = self._pool_end("high")
        least = self.kv_needed if self.kv_least is None else self.kv_least
        return least is not None and most is not None and 0 < most < least and not self.has_no_kv

    def _pool_end(self, end: str) -> int | None:
        """Bytes of the KV pool at the `low` or `high` end of its range."""
        kv = self.line(KV_POOL)
        size: int | None = getattr(kv, end, None)
        return size if size is not None or kv is None else kv.bytes

    @property
    def lack(self) -> Lack | None:
        """The first reason against a start at the high end of the pool's range; None if it starts."""
        if self.too_much_at_least:
            return Lack.POOL if self.claim else Lack.NODE
        if self.claims_too_much:
            return Lack.CLAIM
        if self.has_no_kv:
            return Lack.POOL
        if not self.fits:
            return Lack.NODE
        return Lack.CONTEXT if self.too_short else None

    @property
    def doubt(self) -> Lack | None:
        """The reason that would prevent a start only at the low end of the pool's range; None without one or if `lack`
        has it."""
        least = self._pool_end("low")
        if self.lack or least is None or self.unknown:
            return None
        free = self.free - self._less_free
        if self.claim > free:
            return Lack.CLAIM
        if self.claim > 0 and least <= 0:
            return Lack.POOL
        scant = hypot(self._above if self._pinned else 0, self._less_free)
        if self.left < scant or (self.loading and self.loading.bytes > free):
            return Lack.NODE
        return Lack.CONTEXT if self.kv_needed and least < self.kv_needed else None

    @property
    def _more_free(self) -> int:
        """Bytes by which more may be free than the ledger says."""
        used = self.line(IN_USE)
        return used.bytes - used.low if used and used.low is not None else 0

    @property
    def _less_free(self) -> int:
        """Bytes by which less may be free on a node that nobody asked; 0 on one that was asked, and for GPUs with
        memory of their own."""
        used = self.line(IN_USE)
        return used.high - used.bytes if used and used.high is not None and self.seen is None else 0

    @property
    def _pinned(self) -> bool:
        """True if the size of the KV pool is given: nothing shrinks when the engine needs more."""
        return (kv := self.line(KV_POOL)) is not None and kv.known and kv.low in (None, kv.bytes)

    @property
    def _below(self) -> int:
        """Bytes by which the engine's lines may fall short of their figures, like `_above`."""
        wide = [line.bytes - line.low for line in self.lines if line.low is not None and line.name != IN_USE]
        return int(sum(width**2 for width in wide if width > 0) ** 0.5)

    @property
    def _above(self) -> int:
        """Bytes by which the engine's lines may exceed their figures; widths of independent lines add as squares.

        They decide where the size of the KV pool is given.
        """
        wide = [line.high - line.bytes for line in self.lines if line.high is not None and line.name != IN_USE]
        smaller = 0 if self.pool.low is None else self.pool.bytes - self.pool.low
        return int(sum(width**2 for width in (*wide, smaller)) ** 0.5)

    @property
    def fit(self) -> Fit:
        if self.lack:
            return Fit.NOT
        if self.unknown or not self.pool.bytes or (self.uncounted and not self.doubt):
            return Fit.UNKNOWN
        return Fit.MAY if self.doubt else Fit.FITS

    @property
    def short(self) -> int:
        """Bytes that are missing for a start with one sequence of full length; 0 when it starts."""
        return self.short_of(lack) if (lack := self.lack) else 0

    def short_of(self, lack: Lack) -> int:
        """`short` for the reason that `lack` gave."""
        kv, needed = self.line(KV_POOL), self.kv_needed or 0
        missing = {
            Lack.CLAIM: self.claim - self.free,
            Lack.POOL: self.engine_bytes + needed - self.claim,
            Lack.NODE: max(-self.left, self.loading.bytes - self.free if self.loading else 0),
            Lack.CONTEXT: needed - (kv.bytes if kv else 0),
        }
        return self.too_much_at_least or max(1, missing[lack])
