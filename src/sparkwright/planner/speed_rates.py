"""Rates of a GB10, each as fast, likely and slow: an estimate is worked out with all three."""

import tomllib
from functools import lru_cache, partial
from importlib.resources import files
from typing import cast

from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Parallelism, Recipe
from sparkwright.domain.values import dataclass, replace
from sparkwright.engines.catalog import traits
from sparkwright.engines.options import flag_value
from sparkwright.engines.releases import split_image
from sparkwright.planner.once import compute_once
from sparkwright.planner.parts import (
    Spread,
    Weights,
    bits_of,
    draft_layers,
    main,
    missing,
    number_bytes,
    packed,
    part_share,
)

Waits = tuple[float, float, float]
_DATA = tomllib.loads((files("sparkwright.planner") / "rates.toml").read_text(encoding="utf-8"))
_BF16 = 2.0
# A checkpoint that differs more from the count is another thing than the shape says.
_ALIKE = 3.0
_EIGHT_BITS = 1.06  # bytes, with a scale for 32
_FEW_BITS = 2.2
_FOUR_BITS = {"nvfp4", "mxfp4", "int4"}
_GGUF_ENDS = 210 / 256  # bytes of a number in Q6_K, in which 4-bit GGUF files have the vocabulary; BF16 elsewhere
_Q8 = 34 / 32  # bytes of a number in Q8_0
_FEW = 0.5  # bytes of a number: below it a GGUF file of experts has the rest in more bits
# What tools write that quantize a finished model, and leave layers out of; FP8 releases are as their config says.
_AFTERWARDS = {"nvfp4", "int4", "int8"}
# How fast a product of that number format runs against BF16: dense, and grouped by expert.
_DENSE = {"bf16": 1.0, "fp32": 0.5, "fp8": 1.2, "int8": 1.0, "int4": 0.85, "nvfp4": 0.9, "mxfp4": 0.9}
_GROUPED = {"bf16": 0.55, "fp32": 0.3, "fp8": 0.5, "int8": 0.5, "int4": 0.45, "nvfp4": 0.5, "mxfp4": 0.5}


@dataclass(frozen=True, slots=True)
class Rates:
    """read: bytes/s of weights that a decoding step reads. cache: bytes/s of KV. scan: FLOP/s of a lightning indexer.

    kernel: seconds that one kernel of a CUDA graph costs besides its bytes (start, end, small shapes); host: seconds of
    CPU work that launches one without a graph. step: seconds of a step that wait for sampling and the scheduler.
    exchange: seconds of one small all-reduce. link: bytes/s over the cable. rows: seconds in which a step gets its rows
    of tables on disk or in host memory; rows_read: so does each token of a prompt. gemm: FLOP/s of large BF16 products.
    fp4, packed: how fast a prompt's dense products of NVFP4 and of packed weights run against those; experts: those
    grouped by expert in 4 bits. exposed: share of reading the weights that a prompt's products do not hide. start:
    seconds until a request is tokenized and scheduled. joined: share of a load's other prompts read in the same
    steps. cold: seconds that the first prompts of their size wait for kernels to be compiled.
    alike: n neighbouring tokens of one text need as many experts as n**alike tokens drawn by chance. crowd: how evenly
    sequences ask for experts, as split_cost.drawn_evenly takes it (one prompt that is sent many times shares more).
    unsaid: share of the cache's bytes where a quantized checkpoint may come with FP8 KV and the recipe gives no type.
    index: seconds of each layer with an indexer beside its kernels, by the model's kind of indexer.
    rest: bytes of a number outside the experts of a 4-bit checkpoint whose size is not known; 0: as the shape has it.
    MXFP4's is known to be BF16 in images of vLLM and NVIDIA, and 0 stands for 8 bits.
    """

    read: float
    cache: float
    scan: float
    kernel: float
    host: float
    step: float
    exchange: float
    link: float
    rows: float
    gemm: float
    fp4: float
    packed: float
    experts: float
    exposed: float
    start: float
    joined: float
    cold: float
    alike: float
    crowd: float
    unsaid: float
    rest: float
    rows_read: float = 0.0
    index: float = 0.0


def _same_limits(recipe: Recipe) -> object:
    """Rates depend on no limit."""
    return recipe.model.on_disk


@partial(compute_once, limits=_same_limits)
def rate_range(recipe: Recipe, shape: ModelShape) -> tuple[Rates, Rates, Rates]:
    """(fast, likely, slow) for the links that this recipe has, and the kernels that its engine has for the weights."""
    waits, pace = _waits(recipe), traits(recipe).pace(format_of(shape))
    every = zip((FAST, LIKELY, SLOW), waits, pace, strict=True)
    fast, likely, slow = (replace(rate, exchange=wait, read=rate.read * share) for rate, wait, share in every)
    fast, likely, slow = _multiplied(fast, likely, slow, activations(recipe, shape))
    fast, likely, slow = _indexed(fast, likely, slow, "" if any(shape.compress) else shape.index_kind)
    if shape.quantization == "mxfp4" and _reads_as_written(recipe):
        likely = replace(likely, rest=_BF16)
    if not recipe.model.on_disk:
        return fast, likely, slow
    off, each = traits(recipe).rows or (FAST.rows, LIKELY.rows, SLOW.rows), traits(recipe).rows_read
    one, two, three = (
        replace(rate, rows=row, rows_read=read) for rate, row, read in zip((fast, likely, slow), off, each, strict=True)
    )
    return one, two, three


def _reads_as_written(recipe: Recipe) -> bool:
    """True if what is no expert of an MXFP4 checkpoint stays in BF16: by the image, or as the experts' kernels are
    named, which builds for GB10 call by an option of their own."""
    known = traits(recipe).rest_as_written
    named = flag_value(recipe, "moe-backend") not in (None, "", "auto")
    return split_image(recipe.engine.image)[0].removeprefix("docker.io/") in known or (bool(known) and named)


def activations(recipe: Recipe, shape: ModelShape) -> int:
    """Bits of what 4-bit weights are multiplied with: 16 where the recipe asks for that, else the checkpoint's own."""
    asked = traits(recipe).weights_alone
    alone = any(str(flag_value(recipe, name) or recipe.env.get(name, "")) == value for name, value in asked)
    return 16 if alone else shape.activations


def _multiplied(fast: Rates, likely: Rates, slow: Rates, bits: int) -> tuple[Rates, Rates, Rates]:
    """The rates with the pace of dense products whose activations have so many bits."""
    paces = _DATA["activations"].get(str(bits)) or (fast.fp4, likely.fp4, slow.fp4)
    one, two, three = (replace(rate, fp4=pace) for rate, pace in zip((fast, likely, slow), paces, strict=True))
    return one, two, three


def _indexed(fast: Rates, likely: Rates, slow: Rates, kind: str) -> tuple[Rates, Rates, Rates]:
    """The rates with the seconds of an indexer of that kind."""
    seconds = _DATA["index"].get(kind) or (0.0, 0.0, 0.0)
    one, two, three = (replace(rate, index=each) for rate, each in zip((fast, likely, slow), seconds, strict=True))
    return one, two, three


def format_of(shape: ModelShape) -> str:
    """The word for how most weights are written: gguf, gguf-low (1 bit, ternary), packed, or the format's own."""
    if shape.quantization == "gguf":
        return "gguf-low" if 0 < bits_of(shape) < _FEW_BITS else "gguf"
    return "packed" if packed(shape) else shape.expert_format or shape.format


def width_class(shape: ModelShape) -> str:
    """gguf; experts, of four bits or packed; other: classes whose published figures lie differently far off."""
    written = format_of(shape)
    if written.startswith("gguf"):
        return "gguf"
    return "experts" if shape.experts and (written in _FOUR_BITS or written == "packed") else "other"


def width_power(what: str, shape: ModelShape) -> float:
    """The power of a range's sides. what: decode, drafts, streams, prompts or first."""
    return float(_DATA["widths"][what][width_class(shape)])


def _waits(recipe: Recipe) -> Waits:
    hop = traits(recipe).hop
    if hop:
        return hop
    if sockets(recipe):
        return _SOCKETS
    if recipe.parallelism.world_size > 2:
        return _MANY
    asked = recipe.env.get("NCCL_NET") == "IB" or recipe.env.get("NCCL_IB_DISABLE") == "0"
    return _RDMA if asked else (FAST.exchange, LIKELY.exchange, SLOW.exchange)


def sockets(recipe: Recipe) -> bool:
    """True if NCCL is configured without RDMA."""
    env = recipe.env
    return env.get("NCCL_IB_DISABLE") == "1" or env.get("NCCL_NET", "").lower() == "socket"


# A search asks about one model hundreds of times.
@lru_cache(maxsize=64)
def weighed(shape: ModelShape, checkpoint: int, rest: float = 0.0) -> tuple[Weights, ...]:
    """The parts of the main model as this checkpoint writes them; () when a dimension or a format is not known.

    checkpoint: its bytes, 0 if not known. What it has beyond the count lies in parts that were not quantized after all
    (attention, shared experts, dense FFN), up to BF16: fits NVFP4 builds of Qwen3.5-122B, Super, Laguna,
    Gemma-4-31B within 10 %. rest: bytes of a number there when they are not known, 0: as in the shape.
    """
    try:
        counted = () if missing(shape) else main(shape)
        own = number_bytes(shape.format, shape.group) if counted else 1.0
    except KeyError:
        return ()
    if shape.quantization == "gguf":
        plain = shape.format == "bf16" and shape.expert_format == "mxfp4"
        if counted and shape.experts and not plain and own < _FEW:
            return _beside_few_bits(_packed(counted, own), own, checkpoint)
        return _in_file(_beside_mxfp4(counted) if plain else _packed(counted, own), checkpoint) if counted else ()
    if shape.quantization == "mxfp4" and shape.experts:
        return _requantized(counted, shape, (rest or _EIGHT_BITS) / own)
    if not checkpoint and {shape.format, shape.expert_format} & _FOUR_BITS:
        return tuple(_scaled(p, (rest or own) / own) if _grows(p) else p for p in counted)
    return _beside(counted, shape, checkpoint) if counted else ()


def _packed(counted: tuple[Weights, ...], own: float) -> tuple[Weights, ...]:
    """GGUF files have the vocabulary in few bits, too: a large part of what small models read."""
    ends = max(_GGUF_ENDS, own) / _BF16
    return tuple(_scaled(part, ends) if part.ends and not part.idle else part for part in counted)


def _beside_mxfp4(counted: tuple[Weights, ...]) -> tuple[Weights, ...]:
    """llama.cpp's MXFP4_MOE files have all but the experts in Q8_0: gpt-oss-120b's 63.4 GB are exactly that."""
    return tuple(part if part.spread is Spread.EXPERTS else _scaled(part, _Q8 / _BF16) for part in counted)


def _beside_few_bits(counted: tuple[Weights, ...], own: float, checkpoint: int) -> tuple[Weights, ...]:
    """Files of experts in less than four bits have the rest, which each token reads whole, in Q8_0 or nearly.

    Seven files on one node (DeepSeek V4, GLM-4.6, MiniMax-M2.1 and M2.7, Gemma 4) from six sources, each planned 1.2 to
    1.9 times too fast with the same bits everywhere, are 0.9 to 1.1 times so; one of V4 on two nodes is 0.8 times, was
    1. checkpoint: what the rest leaves of it is the experts'.
    """
    wide = tuple(p if p.ends or p.spread is Spread.EXPERTS else _scaled(p, _Q8 / own) for p in counted)
    experts = sum(part.bytes for part in wide if part.spread is Spread.EXPERTS)
    left = checkpoint - (sum(part.bytes for part in wide) - experts)
    known = experts / _ALIKE < left < experts * _ALIKE
    return tuple(_scaled(p, left / experts) if known and p.spread is Spread.EXPERTS else p for p in wide)


def _in_file(counted: tuple[Weights, ...], checkpoint: int) -> tuple[Weights, ...]:
    """The parts scaled to the bytes of the file: a mix has more bits for some tensors of every part."""
    total = sum(part.bytes for part in counted)
    known = total / _ALIKE < checkpoint < total * _ALIKE
    return tuple(_scaled(part, checkpoint / total) for part in counted) if known else counted


def _requantized(counted: tuple[Weights, ...], shape: ModelShape, factor: float) -> tuple[Weights, ...]:
    """MXFP4 experts next to BF16: engines for GB10 load the rest as 8 bits or less.

    gpt-oss-120b would read 5.0 GB a token with BF16; the 56 to 59 tokens/s of five published runs are 280 to 295 GB/s.
    """
    plain = shape.format == "bf16" and shape.expert_format == "mxfp4"
    return tuple(_scaled(p, factor) if plain and p.spread is not Spread.EXPERTS else p for p in counted)


@lru_cache(maxsize=64)
def products(shape: ModelShape, split: Parallelism, dense: float = 0.0, grouped: float = 0.0) -> float:
    """FLOP a token and rank, as if all were BF16. The vocabulary is only asked for the last token.

    dense, grouped: pace of products outside the experts and of theirs against BF16, 0: as their format has it.
    """
    total = 0.0
    for part in _parameters(shape):
        if part.ends:
            continue
        experts = part.spread is Spread.EXPERTS
        used = shape.experts_per_token / shape.experts if experts else 1.0
        written = _expert_format(shape) if experts else shape.format
        pace = (_GROUPED if experts else _DENSE).get(written, 0.5)
        pace = (grouped if experts else dense) or pace
        total += 2 * part.bytes * used * part_share(part, shape, split) / pace
    return total / split.dp


def dense_pace(shape: ModelShape, rates: Rates) -> float:
    """Pace of a prompt's dense products where it is a range of its own, else 0.0."""
    if shape.format == "nvfp4":
        return rates.fp4
    return rates.packed if packed(shape) or (shape.quantization == "gguf" and shape.format != "bf16") else 0.0


def grouped_pace(shape: ModelShape, rates: Rates) -> float:
    """Pace of a prompt's products grouped by expert where it is a range of its own, else 0.0."""
    return rates.experts if shape.quantization != "gguf" and _expert_format(shape) in ("nvfp4", "mxfp4") else 0.0


def _expert_format(shape: ModelShape) -> str:
    return shape.expert_format or shape.format


def _parameters(shape: ModelShape) -> tuple[Weights, ...]:
    """The parts with counts of numbers in place of bytes."""
    plain = replace(shape, format="bf16", group=0, rows=0, expert_format="", expert_group=0)
    return tuple(_scaled(part, 1 / _BF16) for part in main(plain))


def _beside(counted: tuple[Weights, ...], shape: ModelShape, checkpoint: int) -> tuple[Weights, ...]:
    total = sum(part.bytes for part in counted)
    drafts = sum(part.bytes for part in draft_layers(shape))
    if not total / _ALIKE < checkpoint < total * _ALIKE:
        return counted
    if checkpoint < total:
        return tuple(_scaled(part, checkpoint / total) for part in counted)
    if shape.format not in _AFTERWARDS and not packed(shape):
        return counted
    plain = sum(part.bytes for part in counted if _grows(part))
    most = _BF16 / number_bytes(shape.format, shape.group)
    factor = min(1 + max(0.0, checkpoint - total - drafts) / plain, most) if plain else 1.0
    return tuple(_scaled(part, factor) if _grows(part) else part for part in counted)


def _grows(part: Weights) -> bool:
    return not part.ends and part.spread is not Spread.EXPERTS and part.name != "router"


def _scaled(part: Weights, factor: float) -> Weights:
    return replace(part, bytes=part.bytes * factor)


FAST, LIKELY, SLOW = (Rates(**{name: row[n] for name, row in _DATA["rates"].items()}) for n in range(3))
_RDMA, _MANY, _SOCKETS = (cast(Waits, tuple(_DATA["exchange"][name])) for name in ("rdma", "many", "sockets"))
