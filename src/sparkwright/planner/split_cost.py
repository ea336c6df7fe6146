"""The cost of a split on GB10 nodes: weights, KV and time of a decoding step. Estimates, each with its source.

Left out: reading the KV cache (context near 0), speculation, eager mode (-55 %), kernels that suit narrow slices badly.
docs/reference/parallelism-measured.md compares these figures with measured ones.
"""

from math import log, sqrt
from statistics import NormalDist

from sparkwright.domain.facts import Unknown
from sparkwright.domain.ledger import CacheKind
from sparkwright.domain.model import ModelShape
from sparkwright.domain.plan import Range, SplitCost
from sparkwright.domain.recipe import Parallelism, Recipe
from sparkwright.planner.kv_layout import cache_type, kv_heads, layers
from sparkwright.planner.kv_numbers import number
from sparkwright.planner.parts import Spread, Weights, main, part_share, settled

# Bytes a second that decoding really reads: 240e9 is the most measured. The least on one node was 80 %
# of the nominal 273e9 for dense models and 57 % for sparse ones, whose small kernels wait for launches.
BEST_READ = 240e9
WORST_READ = {"dense": 0.80 * 273e9, "sparse": 0.57 * 273e9}
# Seconds of one small exchange inside a decoding engine over RoCE, (best, worst). Two nodes: 3.6 ms a token at about 86
# exchanges up to what Nemotron-3-Super lost (146 us). More nodes: GLM-5.2's and V4.1-Flash's own breakdowns on
# four. A bare NCCL all-reduce takes 22-28 us: engines never reached that.
EXCHANGE: dict[bool, Range] = {True: (40e-6, 150e-6), False: (100e-6, 240e-6)}
# Bytes a second over the cable: both halves of the port under NCCL, and one 100 Gb/s half.
LINK: Range = (23.8e9, 12.5e9)
_GROWING = (CacheKind.FULL, CacheKind.MLA, CacheKind.COMPRESSED, CacheKind.INDEX)
_ACTIVATION = 2  # bytes of a number that travels


def split_cost(recipe: Recipe, shape: ModelShape, checkpoint: int, batch: int) -> SplitCost:
    """The cost of the recipe's own split. checkpoint: bytes that go into memory, 0 if unknown; it includes tensors that
    no dimension shows."""
    split = recipe.parallelism
    shape = settled(shape, checkpoint, recipe.model.on_disk)
    everything = main(shape)
    total = sum(part.bytes for part in everything)
    # Far from the count it is another thing: a folder without weights (`--load-format dummy`), or several copies.
    scale = checkpoint / total if total / 2 < checkpoint < total * 2 else 1.0
    weights = scale * bytes_on_rank(everything, shape, split)
    return SplitCost(
        weights=int(weights),
        copies=max(0, int(weights - scale * total / split.world_size)),
        kv_token=kv_token(recipe, shape),
        read=int(read(everything, shape, split, 1)),
        collectives=collectives(shape, split),
        sent=int(bytes_sent(shape, split, 1)),
        step=step_seconds(everything, shape, split, 1),
        batch_step=step_seconds(everything, shape, split, batch),
    )


def bytes_on_rank(everything: tuple[Weights, ...], shape: ModelShape, split: Parallelism) -> float:
    """Bytes of weights on the fullest rank: the stage with most layers, and what the first or the last has in addition.

    Tables and encoders, which no token reads whole, are on the first; the output and drafts on the last.
    """
    layers = -(-shape.layers // split.pp) / shape.layers
    inner = sum(p.bytes * part_share(p, shape, split) for p in everything if not p.ends)
    ends = [p for p in everything if p.ends]
    first, last = (sum(p.bytes * part_share(p, shape, split) for p in ends if p.idle is idle) for idle in (True, False))
    return inner * layers + (first + last if split.pp == 1 else max(first, last))


def kv_token(recipe: Recipe, shape: ModelShape) -> float:
    """Bytes of KV that a token more takes on the fullest node: what grows with the context, as the KV pool is counted.

    With dp a token is on one of the ranks only: the mean. Of a layout that is not known in full, what entries take.
    """
    kinds, split = layers(recipe, shape), recipe.parallelism
    if isinstance(kinds, Unknown):
        return _entries(shape, split.tp) * number(cache_type(recipe, shape)) / (split.pp * split.dp)
    return sum(kind.layers * kind.row / kind.ratio for kind in kinds if kind.kind in _GROWING) / split.dp


def _entries(s: ModelShape, tp: int) -> float:
    """Numbers a token and rank; of compressed entries with their indexers' rows, in the layers that have their own."""
    if not s.compress:
        heads = kv_heads(s.kv_heads, tp) * (s.head_dim + (s.value_dim or s.head_dim))
        return (s.growing_layers - s.shared_full_layers) * (s.latent or heads)
    kept = [s.compress[n] for n in s.kv_sources if n < len(s.compress)] if s.kv_sources else s.compress
    indexed = s.index_dim if s.index_layers else 0
    return sum((s.head_dim + indexed) / ratio for ratio in kept if ratio)


def read(everything: tuple[Weights, ...], shape: ModelShape, split: Parallelism, batch: int) -> float:
    """Bytes that a step reads one after the other: of the slowest rank of each stage, over all stages."""
    micro = -(-batch // split.pp)
    return sum(_read(part, shape, split, micro) for part in everything if not part.idle)


def _read(part: Weights, shape: ModelShape, split: Parallelism, batch: int) -> float:
    if part.spread is not Spread.EXPERTS:
        return part.bytes * part_share(part, shape, split)
    if split.ep:
        return part.bytes * busiest(shape, split.tp * split.dp, batch) / shape.experts
    return part.bytes * part_share(part, shape, split) * touched(shape, batch) / shape.experts


def touched(shape: ModelShape, batch: int) -> float:
    """The number of different experts in a layer that the batch needs, if routing were even."""
    return shape.experts * (1 - (1 - shape.experts_per_token / shape.experts) ** batch)


def drawn_evenly(shape: ModelShape, sequences: int, evenness: float) -> float:
    """Tokens that would need as many experts as so many sequences do, if routing were even.

    Some experts are asked for more often than others, so sequences share them: popularity is taken as a gamma
    distribution with `evenness` as its shape. One sequence is one token.
    """
    if sequences < 2 or not shape.experts:
        return float(sequences)
    share = shape.experts_per_token / shape.experts
    one, every = (1 - (1 + n * share / evenness) ** -evenness for n in (1, sequences))
    met = min(share * every / one, 1 - (1 - share) ** sequences)
    return log(1 - met) / log(1 - share) if 0 < met < 1 else float(sequences)


def busiest(shape: ModelShape, ranks: int, batch: int) -> float:
    """The number of needed experts on the fullest rank, with whole experts dealt out to ranks.

    The others wait for it: with one token, 8 of 128 experts and two ranks it has 5.1, not 4. Draws without
    replacement, taken as normal; the largest of so many normal values by Blom's formula. Uneven routing makes it worse.
    """
    needed, count = touched(shape, batch), shape.experts
    if ranks < 2 or count < 2:
        return needed
    spread = sqrt(needed * (ranks - 1) / ranks**2 * (count - needed) / (count - 1) * ranks / (ranks - 1))
    most = NormalDist().inv_cdf((ranks - 0.375) / (ranks + 0.25))
    return min(needed / ranks + spread * most, needed, count / ranks)


def collectives(shape: ModelShape, split: Parallelism) -> int:
    """Exchanges between nodes that one token waits for.

    tp: an all-reduce after each attention and each FFN, with ep just as without: vLLM and SGLang leave every token on
    every rank of tp and sum the experts' results. dp: tokens go to the experts and come back. pp: one hop a stage.
    """
    mixers, ffn = shape.attention_layers + shape.state_layers, shape.ffn_layers or shape.layers
    sums = mixers + ffn if split.tp > 1 else 0
    routed = 2 * shape.sparse_layers if split.dp > 1 else 0
    return sums + routed + (split.pp if split.pp > 1 else 0)


def bytes_sent(shape: ModelShape, split: Parallelism, batch: int) -> float:
    """Bytes that a node sends in a step. A ring's all-reduce sends 2(n-1)/n of the vector, a hop two vectors."""
    vector = batch * shape.hidden * _ACTIVATION
    mixers, ffn = shape.attention_layers + shape.state_layers, shape.ffn_layers or shape.layers
    sums = (mixers + ffn) * vector / split.dp * 2 * (split.tp - 1) / split.tp
    routed = 2 * shape.sparse_layers * vector * (split.dp - 1) / split.dp
    return sums + routed + (2 * vector if split.pp > 1 else 0)


def step_seconds(everything: tuple[Weights, ...], shape: ModelShape, split: Parallelism, batch: int) -> Range:
    """Seconds, (best, worst), until every sequence of the batch has one more token."""
    exchange = EXCHANGE[split.world_size <= 2]
    worst_read = WORST_READ["sparse" if shape.experts else "dense"]
    size, waits = read(everything, shape, split, batch), collectives(shape, split)
    moved = bytes_sent(shape, split, batch)
    best = size / BEST_READ + waits * exchange[0] + moved / LINK[0]
    return best, size / worst_read + waits * exchange[1] + moved / LINK[1]
