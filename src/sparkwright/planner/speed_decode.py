"""Seconds of one decoding step: weights, cache, kernels, exchanges, CPU launches without graphs, drafts."""

import tomllib
from importlib.resources import files
from typing import Any

from sparkwright.domain.ledger import CacheKind, CacheLayers
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe, Speculation
from sparkwright.domain.values import dataclass
from sparkwright.domain.verdict import Load
from sparkwright.engines.catalog import traits
from sparkwright.engines.options import flag_value, number
from sparkwright.planner.limits import captures, is_eager
from sparkwright.planner.speed_rates import Rates, products, weighed
from sparkwright.planner.split_cost import bytes_sent, collectives, drawn_evenly, read

Cache = tuple[CacheLayers, ...]
# Kernels of one layer part as vLLM 0.21.0's model code launches them for a few tokens: norms, products, rotation, cache
# writes, attention and its merge; of experts routing, alignment, two products, activation and sum.
_ATTENTION, _STATE, _DENSE, _EXPERTS, _SHARED, _INDEX, _COMPRESS = 7, 7, 4, 9, 3, 7, 6
_EXPOSED = 0.5  # share of a batch's arithmetic that reading does not hide: fits 8B to 70B at 16 to 128 sequences
_WIDE = 256  # heads wider than this leave sm_121's shared memory no room for a second tile
_WIDE_RATE = 0.5
_TOKENS = 3  # when nobody says how many are drafted
_DRAFTS: dict[str, dict[str, Any]] = tomllib.loads((files("sparkwright.planner") / "drafts.toml").read_text("utf-8"))
_OTHER, _ANY = "other", "any"
TEXTS = ("prose", "code")  # whose speeds with drafts a plan shows apart
_HOST = 1.5e-3  # seconds of a pass beside its reading: sampling, and the input of the next


@dataclass(frozen=True, slots=True)
class Reading:
    """The cache reads of one sequence at one depth on one rank. bytes: of rows. state: bytes of states, also written.

    flop: of the indexer, for each token that is decoded or verified.
    """

    bytes: float
    state: float
    flop: float


@dataclass(frozen=True, slots=True)
class _Rows:
    """Layers that read only rows picked by an indexer and their rows; layers that read all, and their rows."""

    sparse: int
    picked: float
    whole: int
    rows: float


def reading(cache: Cache, shape: ModelShape, depth: float) -> Reading:
    """Every kind reads what it must: rows of all tokens, of the window, or the tokens that an indexer picked."""
    state = sum(2.0 * one.state * one.layers for one in cache if one.kind is CacheKind.STATE)
    scanned = sum(one.layers * _rows(one, depth) for one in cache if one.kind is CacheKind.INDEX)
    read = ((one.row, _read(one, cache, shape, depth)) for one in cache if one.kind is not CacheKind.STATE)
    return Reading(
        bytes=sum(row * (r.sparse * r.picked + r.whole * r.rows) for row, r in read),
        state=state,
        flop=scanned * 2.0 * shape.index_heads * shape.index_dim,
    )


def attended(cache: Cache, shape: ModelShape, depth: float) -> tuple[float, float]:
    """Scores (query x row) that one token of a prompt asks for at a depth: of picked rows, and of all others."""
    kinds = (CacheKind.INDEX, CacheKind.STATE)
    read = [_read(one, cache, shape, depth) for one in cache if one.kind not in kinds]
    return sum(r.sparse * r.picked for r in read), sum(r.whole * r.rows for r in read)


def _read(one: CacheLayers, cache: Cache, shape: ModelShape, depth: float) -> _Rows:
    sparse, rows = _sparse(one, cache, shape), _rows(one, depth)
    return _Rows(sparse, min(rows, shape.index_topk), one.layers - sparse, rows)


def _sparse(one: CacheLayers, cache: Cache, shape: ModelShape) -> int:
    """MLA layers all read what is picked, as they may share an indexer; others as many as there are indexers."""
    index = [other for other in cache if other.kind is CacheKind.INDEX]
    if not index or not shape.index_topk:
        return 0
    if one.kind is CacheKind.MLA:
        return one.layers
    own = one.kind is CacheKind.FULL or (one.kind is CacheKind.COMPRESSED and one.ratio == index[0].ratio)
    return min(one.layers, sum(other.layers for other in index)) if own else 0


def _rows(one: CacheLayers, depth: float) -> float:
    return (min(depth, one.window) if one.window else depth) / one.ratio


@dataclass(frozen=True, slots=True)
class DecodedModel:
    """The recipe and model of an estimate. size: bytes of the checkpoint, 0 if unknown; cache: () if its layout is
    unknown."""

    recipe: Recipe
    shape: ModelShape
    size: int
    cache: Cache


@dataclass(frozen=True, slots=True)
class Step:
    """Seconds, part by part. tables: of rows that are not in memory. indexers: of layers with one, beside kernels.

    host: what the CPU needs to launch every kernel; it and the GPU work at the same time.
    """

    weights: float
    cache: float
    kernels: float
    exchanges: float
    host: float
    fixed: float
    tables: float = 0.0
    indexers: float = 0.0

    @property
    def seconds(self) -> float:
        gpu = self.weights + self.cache + self.kernels + self.indexers + self.exchanges
        return max(gpu, self.host) + self.fixed + self.tables


def decode_step(model: DecodedModel, load: Load, rates: Rates, tokens: int = 1) -> Step:
    """One step in which each of the running sequences decodes or verifies so many tokens."""
    shape, split = model.shape, model.recipe.parallelism
    running, count = together(model.recipe, load), kernels(shape)
    # Whether the CPU launches each kernel: no graphs, or none for so many tokens
    return Step(
        weights=_weights(model, rates, running, tokens),
        cache=_cache(model, load, rates, tokens),
        kernels=count * rates.kernel,
        exchanges=_waits(model) * rates.exchange + bytes_sent(shape, split, running * tokens) / rates.link,
        host=count * rates.host if (is_eager(model.recipe) or (running * tokens) > captures(model.recipe)[1]) else 0.0,
        fixed=rates.step * split.pp,
        tables=rates.rows if model.recipe.model.on_disk else 0.0,
        indexers=shape.index_layers * rates.index,
    )


def together(recipe: Recipe, load: Load) -> int:
    """Sequences that run at once, one at least: the others wait for a place."""
    return max(1, min(load.concurrency, recipe.serving.sequences or load.concurrency))


def kernels(shape: ModelShape) -> int:
    """Kernels of a step of the main model."""
    mixers = shape.attention_layers * _ATTENTION + shape.state_layers * _STATE
    ffn = shape.dense_layers * _DENSE + shape.sparse_layers * (_EXPERTS + (_SHARED if shape.shared_experts else 0))
    return mixers + ffn + shape.index_layers * _INDEX + sum(_COMPRESS for ratio in shape.compress if ratio)


def _waits(model: DecodedModel) -> int:
    """Exchanges of a step; queries and results cross the link too where the context is spread over ranks."""
    spread = number(flag_value(model.recipe, "decode-context-parallel-size")) > 1
    return collectives(model.shape, model.recipe.parallelism) + (2 * model.shape.attention_layers if spread else 0)


def _weights(model: DecodedModel, rates: Rates, sequences: int, tokens: int) -> float:
    """Reading, and the arithmetic that does not hide behind it. Tokens of one text share experts."""
    shape, split = model.shape, model.recipe.parallelism
    needed = max(1, round(drawn_evenly(shape, sequences, rates.crowd) * tokens**rates.alike)) * _undivided(model)
    seconds = read(weighed(shape, model.size, rates.rest), shape, split, needed) / rates.read
    batch = sequences * tokens
    return seconds + (_EXPOSED * batch * products(shape, split) / rates.gemm if batch > 1 else 0.0)


def _undivided(model: DecodedModel) -> int:
    """Times the share of a batch that a stage works on where a batch goes through the stages as one: 1 elsewhere.

    llama.cpp decodes all its slots in one graph; another stage waits for it.
    """
    return model.recipe.parallelism.pp if traits(model.recipe).by_layer else 1


def _cache(model: DecodedModel, load: Load, rates: Rates, tokens: int) -> float:
    """All that a rank's sequences have in the cache, read once, stage after stage; an indexer asks for every token."""
    shape, serving, split = model.shape, model.recipe.serving, model.recipe.parallelism
    held = reading(model.cache, shape, load.depth + load.prompt)
    rate = rates.cache * (_WIDE_RATE if shape.head_dim > _WIDE and not shape.compress else 1.0)
    # A quantized checkpoint may bring scales for FP8 KV, which `auto` then takes (GGUF has none); V4's rows are FP8.
    unsaid = shape.quantization not in ("", "gguf") and not serving.kv_dtype and not shape.compress
    # A state is read once and written after every token, so that what was drafted in vain can be taken back.
    states = held.state * (1 + tokens) / 2 / rates.read
    one = held.bytes / rate * (rates.unsaid if unsaid else 1.0) + states
    turns = split.pp * -(-together(model.recipe, load) * _undivided(model) // (split.pp * split.dp))
    return turns * (one + tokens * held.flop / rates.scan)


@dataclass(frozen=True, slots=True)
class Method:
    """low, likely, high: probability that a draft token is accepted when those before it were.

    each: every token of a draft is a pass of its own. layers: of one pass, 0 where no model drafts.
    """

    low: float
    likely: float
    high: float
    each: bool = True
    layers: int = 1


def drafted(speculation: Speculation) -> int:
    """Tokens that each step drafts; 0 without speculation."""
    return (speculation.tokens or _TOKENS) if speculation.method else 0


def method(speculation: Speculation, text: str = "") -> Method:
    """text: prose, code or counting, '' for any (drafts.toml)."""
    name = speculation.method.lower()
    row = next((row for word, row in _DRAFTS.items() if word in name), _DRAFTS[_OTHER])
    low, likely, high = row[text or _ANY]
    return Method(low, likely, high, row.get("each", True), row.get("layers", 1))


def yielded(tokens: int, accepted: float) -> float:
    """Tokens of a step that verifies so many drafts: those accepted in a row, and one of the model itself."""
    return sum(accepted**n for n in range(tokens + 1))


def draft_seconds(model: DecodedModel, load: Load, rates: Rates) -> float:
    """Seconds of all draft passes before one step: the draft's layers, the vocabulary, two exchanges a layer, the host
    between."""
    tokens, how = drafted(model.recipe.speculation), method(model.recipe.speculation)
    if not tokens:
        return 0.0
    passes, batch = (tokens, 1) if how.each else (1, tokens)
    waits = 2 * how.layers * rates.exchange if model.recipe.parallelism.tp > 1 else 0.0
    loaded = _loaded(model, rates, how, batch * together(model.recipe, load)) if how.layers else 0.0
    return passes * (loaded / rates.read + waits + _HOST)


def _loaded(model: DecodedModel, rates: Rates, how: Method, batch: int) -> float:
    """Bytes of a pass: layers like the model's own, and its vocabulary."""
    shape, split = model.shape, model.recipe.parallelism
    counted = weighed(shape, model.size, rates.rest)
    inner = tuple(part for part in counted if not part.ends)
    ends = tuple(part for part in counted if part.ends)
    return read(inner, shape, split, batch) * how.layers / shape.layers + read(ends, shape, split, batch)
