"""Seconds of one decoding step: weights, cache, kernels, exchanges, and what the CPU must launch without graphs."""

from dataclasses import dataclass

from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.speed import Load
from sparkwright.planner.limits import captures, eager, flag, number
from sparkwright.planner.speed_cache import Cache, reading
from sparkwright.planner.speed_rates import Rates
from sparkwright.planner.speed_weights import products, weighed
from sparkwright.planner.split_cost import collectives, read, sent

# Kernels of one layer part as vLLM 0.21.0's model code launches them for a few tokens: norms, products, rotation, cache
# writes, attention and its merge; of experts routing, alignment, two products, activation and sum.
_ATTENTION, _STATE, _DENSE, _EXPERTS, _SHARED, _INDEX, _COMPRESS = 7, 7, 4, 9, 3, 7, 6
_EXPOSED = 0.5  # share of a batch's arithmetic that reading does not hide: fits 8B to 70B at 16 to 128 sequences
_WIDE = 256  # heads wider than this leave sm_121's shared memory no room for a second tile
_WIDE_RATE = 0.5


@dataclass(frozen=True, slots=True)
class Model:
    """What is asked about. size: bytes of the checkpoint, 0 if not known; cache: () where nobody knows its layout."""

    recipe: Recipe
    shape: ModelShape
    size: int
    cache: Cache


@dataclass(frozen=True, slots=True)
class Step:
    """Seconds, part by part. host: what the CPU needs to launch every kernel; it and the GPU work at the same time."""

    weights: float
    cache: float
    kernels: float
    exchanges: float
    host: float
    fixed: float

    @property
    def seconds(self) -> float:
        return max(self.weights + self.cache + self.kernels + self.exchanges, self.host) + self.fixed


def step(model: Model, load: Load, rates: Rates, tokens: int = 1) -> Step:
    """One step in which each of the running sequences decodes or verifies so many tokens."""
    shape, split = model.shape, model.recipe.parallelism
    running, count = together(model.recipe, load), kernels(shape)
    return Step(
        weights=_weights(model, rates, running, tokens),
        cache=_cache(model, load, rates, tokens),
        kernels=count * rates.kernel,
        exchanges=_waits(model) * rates.exchange + sent(shape, split, running * tokens) / rates.link,
        host=count * rates.host if _launched(model.recipe, running * tokens) else 0.0,
        fixed=rates.step * split.pp,
    )


def together(recipe: Recipe, load: Load) -> int:
    """Sequences that run at once, one at least: the others wait for a place."""
    return max(1, min(load.concurrency, recipe.serving.sequences or load.concurrency))


def kernels(shape: ModelShape) -> int:
    """Kernels of a step of the main model."""
    mixers = shape.attention_layers * _ATTENTION + shape.state_layers * _STATE
    ffn = shape.dense_layers * _DENSE + shape.sparse_layers * (_EXPERTS + (_SHARED if shape.shared_experts else 0))
    return mixers + ffn + shape.index_layers * _INDEX + sum(_COMPRESS for ratio in shape.compress if ratio)


def _waits(model: Model) -> int:
    """Exchanges of a step; queries and results cross the link too where the context is spread over ranks."""
    spread = number(flag(model.recipe, "decode-context-parallel-size")) > 1
    return collectives(model.shape, model.recipe.parallelism) + (2 * model.shape.attention_layers if spread else 0)


def _weights(model: Model, rates: Rates, sequences: int, tokens: int) -> float:
    """Reading, and the arithmetic that does not hide behind it. Tokens of one text share experts."""
    shape, split = model.shape, model.recipe.parallelism
    needed = max(1, round(sequences**rates.crowd * tokens**rates.alike))
    seconds = read(weighed(shape, model.size, rates.rest), shape, split, needed) / rates.read
    batch = sequences * tokens
    return seconds + (_EXPOSED * batch * products(shape, split) / rates.gemm if batch > 1 else 0.0)


def _cache(model: Model, load: Load, rates: Rates, tokens: int) -> float:
    """All that a rank's sequences have in the cache, read once, stage after stage; an indexer asks for every token."""
    shape, serving, split = model.shape, model.recipe.serving, model.recipe.parallelism
    held = reading(model.cache, shape, load.depth + load.prompt)
    rate = rates.cache * (_WIDE_RATE if shape.head_dim > _WIDE and not shape.compress else 1.0)
    # A quantized checkpoint may bring scales for FP8 KV, which `auto` then takes (GGUF has none); V4's rows are FP8.
    unsaid = shape.quantization not in ("", "gguf") and not serving.kv_dtype and not shape.compress
    one = held.bytes / rate * (rates.unsaid if unsaid else 1.0) + held.state / rates.read
    turns = split.pp * -(-together(model.recipe, load) // (split.pp * split.dp))
    return turns * (one + tokens * held.flop / rates.scan)


def _launched(recipe: Recipe, batch: int) -> bool:
    """Whether the CPU launches each kernel: no graphs, or none for so many tokens."""
    return eager(recipe) or batch > captures(recipe)[1]
