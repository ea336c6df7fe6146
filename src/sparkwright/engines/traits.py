"""Traits of an engine for planning memory, splits and speed: the planner asks these, never a name."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any

from sparkwright.domain.engine import WORKERS_FIRST
from sparkwright.domain.ledger import OVERHEAD, PROCESSES, Counts, LedgerLine, Origin
from sparkwright.domain.recipe import Parallelism, Recipe
from sparkwright.domain.units import GIB
from sparkwright.domain.values import dataclass


class Claim(StrEnum):
    """The base of the memory fraction: the whole pool, the memory free at start, the rest after the weights."""

    POOL = "pool"
    FREE = "free"
    REST = "rest"
    NONE = "none"


class Cache(StrEnum):
    """The layout of the KV pool: blocks shared by groups of layers, one pool of tokens, rows of whole sequences."""

    BLOCKS = "blocks"
    TOKENS = "tokens"
    SEQUENCES = "sequences"


@dataclass(frozen=True, slots=True)
class Range:
    """GiB a rank as seen, and where."""

    name: str
    gib: float
    low: float
    high: float
    why: str

    @property
    def line(self) -> LedgerLine:
        why = f"{self.gib:g} GiB a rank, {self.low:g} to {self.high:g} seen: {self.why}"
        sizes = (int(size * GIB) for size in (self.gib, self.low, self.high))
        return LedgerLine(self.name, next(sizes), Origin.ASSUMED, why, next(sizes), next(sizes))


def _usual_limits(recipe: Recipe, unified: bool) -> tuple[int, int]:
    return 2048, 4


# Nodes that served with less than 1 GiB free had swapped 3.6-4.5 GiB out: the least is 0.
_PROCESSES = Range(PROCESSES, 2.0, 0.0, 4.0, "API server, engine core and worker; what they do not use is swapped out")


@dataclass(frozen=True, slots=True)
class Traits:
    """The defaults are those of an engine that nothing is known of.

    Memory. counts: the figure that its own check reads. fraction: the share without one in the recipe. limits: (batched
    tokens, sequences) without any in the recipe; the second argument is whether CPU and GPU share memory. neighbours:
    releases around a version that was not read, for an architecture. checks_context: no start where one full sequence
    does not fit. whole: all besides weights and cache, where that is not counted in parts; processes, context, graphs:
    parts as seen, None: computed. outside: lines on top of the fraction. loaded: bytes that count as weights although
    no checkpoint holds them; positions: so do the tables of positions, in numbers of so many bytes. tier: bytes of a KV
    tier in host memory, from those of the pool, and why. host_cache: serving.host_cache asks for it.
    experts: times that MXFP4 experts take of their bytes, as the kernels hold them: of an architecture, by its hidden
    width and a rank's slice of the inner one; whether CPU and GPU share memory.
    second_runner: vLLM's Model Runner V2 works.
    Cache. block: tokens, for SEQUENCES. eagle_inside: EAGLE means layers of the model itself. convolutions: those next
    to attention are states, not windows. windows: have a pool of their own, for an architecture. rows_for_all: layers
    that read another's cache have rows, too. follows_checkpoint: the checkpoint's number format for the cache is taken
    where the recipe has none. exact_states: in FP32 whatever the model's type. expands: architectures whose latent rows
    it keeps as keys and values of every head, both as wide as the keys.
    Splits. refusals: what the engine itself forbids. one_stage: who drafts on one pipeline stage only. by_layer: only
    layers are split, and files evenly; the head alone reads them. even_experts: the same number on every rank. blocks:
    no slice may cut a block of the quantization.
    Speed. paces: by the format of the weights, how fast its kernels read them against what engines for GB10 do with
    formats of their own (fast, likely, slow); `packed` are EXL3, AQLM and others whose kernels come with a plugin, and
    wide where nothing was measured. prefill: pace against a BF16 product. hop: seconds (fast, likely, slow) of an
    exchange; None: as links give. rows: seconds (fast, likely, slow) that a step waits for rows of tables off memory;
    None: as usual. rows_read: so does each token of a prompt. computed: option and default of the prompt tokens that
    are computed at once, where that is less than what is scheduled; 0: all that is.
    Starting. start_order: as of EngineDefinition.
    compiles: kernels and CUDA graphs before it answers. around: seconds (fast, likely, slow) of imports,
    profile and warm-up. reader: its way to read files among the loaders,
    '' for the one that its load-format names.
    Options. queue: can limit how many requests wait. batches: has a limit on batched tokens; eager_flag: switches CUDA
    graphs off; kv_option: the cache's type.
    weights_alone: options and variables, each of which has dense 4-bit weights multiplied with 16-bit activations.
    rest_as_written: repositories whose images read what is no expert of an MXFP4 checkpoint in BF16; other builds, and
    all where there is none, in 8 bits.
    tables_off: options that leave tables of single rows (n-grams, PLE, Engram) on disk, where a version has them all.
    converts: values of its option `quantization` and the format in which it then holds weights of files in 16 bits.
    gguf: reads GGUF files, others safetensors. plays: of a simulator, the engine whose figures it shows.
    Faults. faults: codes of the checks that are about this engine. timeout: the option for ranks that wait for others,
    and a good value, seconds. proven: memory fractions that hold on two nodes, and from where on it is a warning. fa3:
    options that ask for FlashAttention 3. helpers: programs that its ranks start (ray, rpc). media: what a client's
    image_url may be (files, hosts).
    Server. owned_by: as its list of models names the owner; property: of /props, where it has such a page.
    kills_itself: its first process ends with SIGKILL when one of its own has ended. choose: members of a request that
    allow these answers only; None: unknown. tool_option: without it no tool call is parsed; '' where none is needed.
    opaque: what it takes besides its weights is not known. leaves: pattern (`grep -E`) of the files in shared memory
    that it names in its log, and leaves when it is killed; '' for none. disk_cache: why serving.disk_cache does not
    work with a recipe, '' if it does. slots: it writes contexts to that folder and reads them only when it is asked to.
    """

    claim: Claim = Claim.POOL
    counts: Callable[[Recipe], Counts] = lambda recipe: Counts.AVAILABLE
    fraction: float = 0.92
    limits: Callable[[Recipe, bool], tuple[int, int]] = _usual_limits
    neighbours: Callable[[Recipe, str], tuple[str, ...]] = lambda recipe, architecture: ()
    checks_context: bool = False
    whole: Range | None = None
    processes: Range = _PROCESSES
    context: Range | None = None
    graphs: Range | None = None
    outside: Callable[[Recipe], tuple[str, ...]] = lambda recipe: (OVERHEAD,)
    loaded: float = 0.0
    positions: float = 0.0
    windows: Callable[[Recipe, str], bool] = lambda recipe, architecture: True
    tier: Callable[[Recipe, int], tuple[float, str]] = lambda recipe, pool: (0.0, "")
    host_cache: bool = False
    experts: Callable[[Recipe, bool, str, tuple[int, int]], float] = lambda recipe, unified, architecture, widths: 1.0
    second_runner: Callable[[Recipe], bool] = lambda recipe: False
    cache: Cache = Cache.BLOCKS
    block: int = 1
    eagle_inside: bool = False
    convolutions: bool = False
    rows_for_all: bool = False
    follows_checkpoint: Callable[[Recipe], bool] = lambda recipe: True
    exact_states: bool = False
    expands: tuple[str, ...] = ()
    refusals: Callable[[Parallelism], tuple[str, ...]] = lambda split: ()
    one_stage: str = ""
    by_layer: bool = False
    converts: tuple[tuple[str, str], ...] = ()
    even_experts: bool = False
    blocks: bool = False
    paces: tuple[tuple[str, tuple[float, float, float]], ...] = (("packed", (1.0, 0.8, 0.4)),)
    prefill: float = 1.0
    hop: tuple[float, float, float] | None = None
    rows: tuple[float, float, float] | None = None
    rows_read: tuple[float, float, float] = (0.0, 0.0, 0.0)
    start_order: str = WORKERS_FIRST
    compiles: bool = True
    around: tuple[float, float, float] = (25.0, 120.0, 480.0)
    reader: Callable[[Recipe], str] = lambda recipe: ""
    queue: bool = False
    batches: bool = True
    eager_flag: str = ""
    kv_option: str = "kv-cache-dtype"
    tables_off: tuple[tuple[str, Any], ...] = ()
    weights_alone: tuple[tuple[str, Any], ...] = ()
    rest_as_written: tuple[str, ...] = ()
    gguf: bool = False
    plays: str = ""
    faults: frozenset[str] = frozenset()
    timeout: tuple[str, int] = ("", 0)
    computed: tuple[str, int] = ("", 0)
    proven: tuple[float, float] = (0.82, 0.85)
    fa3: tuple[str, ...] = ()
    helpers: frozenset[str] = frozenset()
    media: str = ""
    owned_by: str = ""
    property: str = ""
    kills_itself: bool = False
    choose: Callable[[Sequence[str]], dict[str, Any]] | None = None
    tool_option: str = ""
    opaque: bool = False
    leaves: str = ""
    disk_cache: Callable[[Recipe], str] = lambda recipe: "sparkwright knows no such tier of it"
    slots: bool = False

    def pace(self, written: str) -> tuple[float, float, float]:
        """The pace of weights in this format; 1.0 for those that rates.toml was fitted to."""
        return dict(self.paces).get(written, (1.0, 1.0, 1.0))
