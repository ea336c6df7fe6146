"""Seconds to read a prompt: products, attention that grows with the square, exchanges, and the weights every chunk."""

from sparkwright.domain.model import ModelShape
from sparkwright.domain.values import dataclass
from sparkwright.domain.verdict import Load
from sparkwright.engines.catalog import traits
from sparkwright.planner.limits import batched_tokens, computed_tokens
from sparkwright.planner.speed_decode import DecodedModel, attended, kernels, reading
from sparkwright.planner.speed_rates import Rates, dense_pace, grouped_pace, products, weighed
from sparkwright.planner.split_cost import bytes_sent, collectives, read

# Paces against a dense BF16 product, fitted to 46 published prompts of 2K to 25K tokens. Attention by the width of a
# head: wide ones leave sm_121's shared memory no room for two tiles. Heads that share one latent row; rows gathered for
# each token, as an indexer picks them.
_HEADS = ((128, 0.95), (256, 0.5), (1 << 30, 0.13))
_LATENT = 0.5
_PICKED = 0.1
_SCAN = 10.5  # against a step's: a prompt keeps the indexer's products full
# A state layer's scan takes as long as so many FLOP for each number of its width (DeltaNet, else as named).
_STATES = {"mamba1": 19e3, "mamba2": 19e3, "kda": 180e3}
_STATE = 90e3
# Models of compressed attention keep four residual streams, which every attention and FFN reads and writes as BF16.
_STREAMS = 4 * 2.0 * 3


@dataclass(frozen=True, slots=True)
class Prefill:
    """Seconds of all uncached tokens of one prompt, part by part. chunks: steps that it takes; weights: reading them as
    far as products do not hide it; rows: of tables that are not in memory."""

    tokens: int
    chunks: int
    products: float
    attention: float
    weights: float
    exchanges: float
    fixed: float
    rows: float = 0.0

    @property
    def seconds(self) -> float:
        return self.products + self.attention + self.weights + self.exchanges + self.fixed + self.rows


def prefill(model: DecodedModel, load: Load, rates: Rates) -> Prefill:
    """One of the load's prompts, behind what is cached of it and behind `depth` tokens.

    No step is shorter than reading its weights: a prompt of some words takes as long as one step of decoding.
    """
    shape, split = model.shape, model.recipe.parallelism
    tokens = max(1, load.prompt - load.cached)
    prompts = 1 + rates.joined * (max(1, load.concurrency) - 1)  # prompts that are read in the same steps
    chunk = min(round(tokens * prompts), computed_tokens(model.recipe))
    chunks = -(-tokens * prompts // chunk)
    # Neighbouring tokens share experts as they do in a step that verifies drafts: a short prompt does not need all.
    needed = max(1, round(chunk**rates.alike))
    loaded = read(weighed(shape, model.size, rates.rest), shape, split, needed)
    steps, work = chunks / prompts, tokens * _products(model, rates)
    fetched, waits = steps * loaded / rates.read, steps * collectives(shape, split) * rates.exchange
    return Prefill(
        tokens=tokens,
        chunks=int(-(-tokens // chunk)),
        products=work,
        attention=_attention(model, rates, load.depth + min(load.cached, load.prompt), tokens),
        weights=max(rates.exposed * fetched, fetched - work),
        exchanges=waits + tokens * bytes_sent(shape, split, 1) / rates.link,
        fixed=rates.start + rates.cold + steps * (kernels(shape) * rates.kernel + rates.step),
        rows=tokens * rates.rows_read if model.recipe.model.on_disk else 0.0,
    )


def waiting(model: DecodedModel, load: Load) -> float:
    """The number of other prompts read before one's first token when all arrive at once: all in its steps, or half of
    them if each fills steps of its own."""
    shared = load.concurrency * max(1, load.prompt - load.cached) <= batched_tokens(model.recipe)
    return (load.concurrency - 1) * (1.0 if shared else 0.5)


def _products(model: DecodedModel, rates: Rates) -> float:
    """Seconds a token: products, scans of state layers, residual streams."""
    shape, split = model.shape, model.recipe.parallelism
    scans = shape.state_layers * shape.state_width * _STATES.get(shape.state_kind, _STATE) / split.tp
    pace = rates.gemm * traits(model.recipe).prefill
    streams = 2 * shape.layers * shape.hidden * _STREAMS if shape.compress else 0.0  # bytes
    work = products(shape, split, dense_pace(shape, rates), grouped_pace(shape, rates)) + scans
    return work / pace + streams / rates.cache


def _attention(model: DecodedModel, rates: Rates, start: int, tokens: int) -> float:
    """Scores and values of every token with all before it, at the middle of the stretch, stage after stage."""
    shape, split, middle = model.shape, model.recipe.parallelism, start + tokens / 2
    picked, others = attended(model.cache, shape, middle)
    pace = _LATENT if shape.latent or shape.compress else next(pace for most, pace in _HEADS if shape.head_dim <= most)
    flop = 2 * _width(shape) * shape.heads / split.tp * (picked / _PICKED + others / pace)
    scan = reading(model.cache, shape, middle).flop / (rates.scan * _SCAN)
    return split.pp * tokens * (flop / rates.gemm + scan)


def _width(shape: ModelShape) -> int:
    """Numbers of a query and of a value; rows that an indexer picked are read as latents."""
    if shape.latent and shape.index_topk:
        return 2 * shape.latent - shape.rope_dim
    return shape.head_dim + (shape.value_dim or shape.head_dim)
