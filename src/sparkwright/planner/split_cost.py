"""What a split costs on GB10 nodes: weights, KV and time of a decoding step. Estimates, with where each is from.

Left out: reading the KV cache (context near 0), speculation, eager mode (-55 %), kernels that suit narrow slices badly.
docs/parallelism.md sets these figures beside measured ones.
"""

from math import sqrt
from statistics import NormalDist

from sparkwright.domain.advice import Range, SplitCost
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Parallelism
from sparkwright.planner.parameters import Spread, Weights, parts, share

# Bytes a second that decoding really reads: 240e9 is the most measured (field guide D4). The least on one node was 80 %
# of the nominal 273e9 for dense models and 57 % for sparse ones, whose small kernels wait for launches.
BEST_READ = 240e9
WORST_READ = {"dense": 0.80 * 273e9, "sparse": 0.57 * 273e9}
# Seconds of one small exchange inside a decoding engine over RoCE, (best, worst). Two nodes: 3.6 ms a token at about 86
# exchanges (D4) up to what Nemotron-3-Super lost (146 us). More nodes: GLM-5.2's and V4.1-Flash's own breakdowns on
# four. A bare NCCL all-reduce takes 22-28 us (B6): engines never reached that.
EXCHANGE: dict[bool, Range] = {True: (40e-6, 150e-6), False: (100e-6, 240e-6)}
# Bytes a second over the cable: both halves of the port under NCCL, and one 100 Gb/s half (B6).
LINK: Range = (23.8e9, 12.5e9)
_ACTIVATION = 2  # bytes of a number that travels


def cost(shape: ModelShape, split: Parallelism, kv_bytes: float, checkpoint: int, batch: int) -> SplitCost:
    """kv_bytes: of one cached number. checkpoint: bytes on disk, 0 if not known; what is not in the shape is in it."""
    everything = parts(shape)
    total = sum(part.bytes for part in everything)
    # Far from the count it is another thing: a folder without weights (`--load-format dummy`), or several copies.
    scale = checkpoint / total if total / 2 < checkpoint < total * 2 else 1.0
    weights = scale * held(everything, shape, split)
    return SplitCost(
        weights=int(weights),
        copies=max(0, int(weights - scale * total / split.world_size)),
        kv_token=kv_token(shape, split, kv_bytes),
        read=int(read(everything, shape, split, 1)),
        collectives=collectives(shape, split),
        sent=int(sent(shape, split, 1)),
        step=step(everything, shape, split, 1),
        batch_step=step(everything, shape, split, batch),
    )


def held(everything: tuple[Weights, ...], shape: ModelShape, split: Parallelism) -> float:
    """Bytes of weights on the fullest rank: the stage with most layers, and the larger of the two vocabularies."""
    layers = -(-shape.layers // split.pp) / shape.layers
    inner = sum(p.bytes * share(p, shape, split) for p in everything if not p.ends)
    ends = [p.bytes * share(p, shape, split) for p in everything if p.ends]
    return inner * layers + (sum(ends) if split.pp == 1 else max(ends))


def kv_token(shape: ModelShape, split: Parallelism, each: float) -> float:
    """Bytes of KV that a token takes on a node. MLA and compressed KV are whole on every rank of tp.

    With dp a token is on one of the ranks only: the mean. Index rows and scales of compressed KV are not counted.
    """
    stages = split.pp * split.dp
    if shape.compress:
        return each * sum(shape.head_dim / ratio for ratio in shape.compress if ratio) / stages
    if shape.latent:
        return each * shape.growing_layers * shape.latent / stages
    width = shape.head_dim + (shape.value_dim or shape.head_dim)
    heads = shape.kv_heads / min(split.tp, shape.kv_heads)
    return each * shape.growing_layers * width * heads / stages


def read(everything: tuple[Weights, ...], shape: ModelShape, split: Parallelism, batch: int) -> float:
    """Bytes that a step reads one after the other: of the slowest rank of each stage, over all stages."""
    micro = -(-batch // split.pp)
    return sum(_read(part, shape, split, micro) for part in everything if not part.idle)


def _read(part: Weights, shape: ModelShape, split: Parallelism, batch: int) -> float:
    if part.spread is not Spread.EXPERTS:
        return part.bytes * share(part, shape, split)
    if split.ep:
        return part.bytes * busiest(shape, split.tp * split.dp, batch) / shape.experts
    return part.bytes * share(part, shape, split) * touched(shape, batch) / shape.experts


def touched(shape: ModelShape, batch: int) -> float:
    """How many different experts of a layer so many tokens need, if routing were even."""
    return shape.experts * (1 - (1 - shape.experts_per_token / shape.experts) ** batch)


def busiest(shape: ModelShape, ranks: int, batch: int) -> float:
    """How many of the needed experts are on the rank that has most of them, with whole experts dealt out to ranks.

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


def sent(shape: ModelShape, split: Parallelism, batch: int) -> float:
    """Bytes that a node sends in a step. A ring's all-reduce sends 2(n-1)/n of the vector, a hop two vectors."""
    vector = batch * shape.hidden * _ACTIVATION
    mixers, ffn = shape.attention_layers + shape.state_layers, shape.ffn_layers or shape.layers
    sums = (mixers + ffn) * vector / split.dp * 2 * (split.tp - 1) / split.tp
    routed = 2 * shape.sparse_layers * vector * (split.dp - 1) / split.dp
    return sums + routed + (2 * vector if split.pp > 1 else 0)


def step(everything: tuple[Weights, ...], shape: ModelShape, split: Parallelism, batch: int) -> Range:
    """Seconds, (best, worst), until every sequence of the batch has one more token."""
    exchange = EXCHANGE[split.world_size <= 2]
    worst_read = WORST_READ["sparse" if shape.experts else "dense"]
    size, waits = read(everything, shape, split, batch), collectives(shape, split)
    moved = sent(shape, split, batch)
    best = size / BEST_READ + waits * exchange[0] + moved / LINK[0]
    return best, size / worst_read + waits * exchange[1] + moved / LINK[1]
