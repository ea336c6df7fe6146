"""The bytes of a model's parts, and their shares under a split.

Dimensions as vLLM 0.21.0 makes the layers: models/deepseek_v4.py, layers/deepseek_compressor.py, models/deepseek_v2.py,
layers/rotary_embedding. Encoders and drafts outside the checkpoint have no dimensions here: assumed, and marked so.
"""

import re
from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache

from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Parallelism, Recipe
from sparkwright.domain.values import dataclass, replace

# Bytes of a number without its scales.
_BYTES = {"fp32": 4.0, "bf16": 2.0, "fp8": 1.0, "int8": 1.0, "int4": 0.5, "nvfp4": 0.5, "mxfp4": 0.5,
          "mxfp8": 1 + 1 / 32}  # fmt: skip
# Bytes of the scale that a group shares: FP8 (E4M3) for NVFP4, E8M0 for MXFP4, 16 bits for integers (GPTQ, AWQ).
_SCALE = {"nvfp4": 1.0, "mxfp4": 1.0, "int4": 2.0, "int8": 2.0}
_BITS = re.compile(r"(\d+\.\d+)bit")
_FEWEST_BITS, _MOST_BITS = 0.5, 16.5
_LEAST_BITS = 1.5  # of packings: the smallest published (IQ1_S) has 1.6
_ROUNDED = 1.03  # published sizes are rounded
_PACKED = "packed"  # of tables: like the rest of the model
_WAYS = ("bf16", "fp8", _PACKED)
TABLES = "tables of single rows"
UNKNOWN_TABLES = f"{TABLES}, of unknown size"
_TABLE_FORMATS, _TABLE_GROUP = ("bf16", "fp8", "nvfp4"), 16
ENCODER = "encoder"
_OUTPUT_GROUPS = {"nvfp4": 16, "mxfp4": 32, "int4": 128, "int8": 128}
# Bytes of an encoder whose configuration has no sizes: 0.4 to 0.6 billion BF16 numbers in most families.
_ENCODER = 0.9e9
STREAMS = 4  # residual streams of compressed attention's models (hc_mult of DeepSeek-V4's config.json)
_MIX = (2 + STREAMS) * STREAMS
# What a tool that quantizes afterwards leaves as it is: the MTP layers (Qwen3.5-122B: 4.7 GiB more with them).
_LEFT_OUT = ("nvfp4", "int4", "int8")
_OWN_DRAFTS = ("mtp", "nextn", "dspark")
_NO_MODEL = ("ngram", "suffix", "custom")


class Spread(StrEnum):
    """heads: over tp. kv: over tp, at most one KV head each. experts: over tp x dp. copy: whole on every rank."""

    HEADS = "heads"
    KV = "kv"
    EXPERTS = "experts"
    COPY = "copy"


@dataclass(frozen=True, slots=True)
class Weights:
    """One part of the whole model: its bytes. ends: on the first or last pipeline stage; else spread over the layers.

    idle: not read for a decoded token (the embedding and other tables, of which single rows are).
    """

    name: str
    bytes: float
    spread: Spread
    ends: bool = False
    idle: bool = False


def missing(shape: ModelShape) -> str:
    """The first dimension without which the bytes cannot be counted; '' when all are there.

    Keys of the config that size experts or FFNs and are not understood count as one.
    """
    if shape.unread:
        return f"meaning of {shape.unread.replace(',', ', ')} in its config.json"
    written = all(each in _BYTES or _BITS.fullmatch(each) for each in (shape.format, shape.expert_format or "bf16"))
    wanted = {"hidden": shape.hidden, "vocab": shape.vocab, "head_dim": shape.head_dim, "format": written}
    if shape.experts:
        wanted |= {"experts_per_token": shape.experts_per_token, "expert_intermediate": shape.expert_intermediate}
    if shape.dense_layers > 0:
        wanted |= {"intermediate": shape.intermediate}
    if shape.state_layers:
        wanted |= {"state_width": shape.state_width}
    return next((name for name, value in wanted.items() if not value), "")


def model_parts(shape: ModelShape) -> tuple[Weights, ...]:
    """The parts of the main model; draft layers and encoders of images and sound are not counted."""
    return (*_plain_attention(shape), *_feed_forward(shape), *_ends(shape))


def part_share(part: Weights, shape: ModelShape, split: Parallelism) -> float:
    """The fraction of the part on a rank of one pipeline stage (stages share layers evenly beyond that)."""
    by = {
        Spread.HEADS: split.tp,
        Spread.KV: min(split.tp, shape.kv_heads),
        Spread.EXPERTS: split.tp * split.dp,
        Spread.COPY: 1,
    }
    return 1 / by[part.spread]


def number_bytes(written: str, group: int) -> float:
    """Bytes of one number with its share of the scale. FP8 blocks of 128 x 128 cost nothing worth counting.

    `3.25bit`: of a format that only the files' bytes show, scales included.
    """
    if bits := _BITS.fullmatch(written):
        return float(bits[1]) / 8
    return _BYTES[written] + (_SCALE.get(written, 0.0) / group if group else 0.0)


def table_size(s: ModelShape) -> float:
    """Bytes of a number of the tables. Not given: FP8 releases have them in FP8, tools for other formats skip them."""
    written = s.table_format or ("fp8" if s.format == "fp8" else "bf16")
    return number_bytes(written, _TABLE_GROUP)


def packed(shape: ModelShape) -> bool:
    """True if the format packs numbers into a count of bits (EXL3, AQLM, a GGUF mix): `3.250bit`."""
    return bool(_BITS.fullmatch(shape.format))


def bits_of(shape: ModelShape) -> float:
    """Bits of a number of a packed format; 0.0 for every other."""
    found = _BITS.fullmatch(shape.format)
    return float(found[1]) if found else 0.0


def by_bytes(shape: ModelShape, checkpoint: int) -> ModelShape:
    """The shape in so many bits a number as the checkpoint's bytes give, where its format is none that is known.

    The vocabulary is taken to be BF16: what a packing like EXL3, QTIP or GGUF's 2 bits saves there is in the others.
    A packing whose stated bits make more than the files have is counted by the files, too. Tables of single rows stay
    as they were written where that leaves the model enough bits, and are packed with it otherwise.
    """
    stated = bits_of(shape)
    if not checkpoint or (missing(shape) != "format" and not stated):
        return shape
    if stated and _counted(shape, stated) <= checkpoint * _ROUNDED:
        return shape
    open_tables = shape.tables and not shape.table_format
    # Who writes GGUF files of few bits packs the tables, too.
    choices = (_PACKED,) if shape.quantization == "gguf" and not stated else _WAYS
    ways = {tables: _bits(shape, checkpoint, tables) for tables in (choices if open_tables else (shape.table_format,))}
    able = {tables: bits for tables, bits in ways.items() if bits}
    if not able:
        return shape
    likely = (tables for tables, bits in able.items() if bits >= _LEAST_BITS)
    best = min(able, key=lambda way: abs(able[way] - stated)) if stated else next(likely, list(able)[-1])
    return _at(shape, able[best], best)


def _at(shape: ModelShape, bits: float, tables: str = "") -> ModelShape:
    written = f"{bits:.3f}bit"
    table = written if tables == _PACKED else tables or shape.table_format
    whole = replace(shape, format=written, group=0, rows=0, expert_format="", expert_group=0)
    return replace(whole, table_format=table)


def _counted(shape: ModelShape, bits: float, tables: str = "") -> float:
    """Bytes of the main model; 0.0 where a dimension is missing."""
    at = _at(shape, bits, tables)
    return 0.0 if missing(at) else sum(part.bytes for part in main(at))


def _bits(shape: ModelShape, checkpoint: int, tables: str) -> float:
    """Bits with which the count is the checkpoint; 0.0 where none that a number can have makes it so."""
    one, two = _counted(shape, 1.0, tables), _counted(shape, 2.0, tables)
    bits = 1 + (checkpoint - one) / (two - one) if two > one else 0.0
    return bits if _FEWEST_BITS <= bits <= _MOST_BITS else 0.0


@lru_cache(maxsize=128)  # every figure of every variant of a recipe begins with it
def settled(shape: ModelShape, checkpoint: int = 0, on_disk: int = 0) -> ModelShape:
    """The shape with the tables that are in memory, in the format that explains the size best where none is given.

    checkpoint: bytes that go into memory, 0 if not known; on_disk: those of tables that do not.
    """
    shape = by_bytes(shape, checkpoint and checkpoint + on_disk)
    if not shape.tables or missing(shape):
        return shape
    if not shape.table_format and checkpoint:
        choices = [replace(shape, table_format=written) for written in _TABLE_FORMATS]
        shape = min(choices, key=lambda one: abs(sum(part.bytes for part in model_parts(one)) - checkpoint - on_disk))
    return replace(shape, tables=max(0, int(shape.tables - on_disk / table_size(shape))))


def _plain_attention(s: ModelShape) -> Iterator[Weights]:
    each, layers = number_bytes(s.format, s.group), s.attention_layers
    value = s.value_dim or s.head_dim
    queries = s.query_rank * s.heads * s.head_dim if s.query_rank else s.hidden * s.heads * s.head_dim
    queries *= 1 + s.output_gate
    outputs = s.heads * value * s.hidden
    if s.output_rank:
        outputs = (s.heads * value + (s.output_groups or 1) * s.hidden) * s.output_rank
    keys = s.hidden * s.kv_heads * (s.head_dim if s.compress else s.head_dim + value)
    if s.latent:
        # The latent is made whole on every rank; what each head takes from it is split.
        queries += (s.latent - s.rope_dim) * s.heads * (s.head_dim - s.rope_dim + value)
        yield Weights("KV latent", layers * s.hidden * s.latent * each, Spread.COPY)
    else:
        yield Weights("keys and values", layers * keys * each, Spread.KV)
    if s.query_rank:
        yield Weights("query latent", layers * s.hidden * s.query_rank * each, Spread.COPY)
    yield Weights("attention", layers * (queries + outputs) * each, Spread.HEADS)
    if s.state_layers:
        # In: keys and queries (half as wide), values and gate; out: values. Within a fifth for Mamba-2 and DeltaNet.
        yield Weights("state layers", s.state_layers * 4 * s.state_width * s.hidden * each, Spread.HEADS)


def _feed_forward(s: ModelShape) -> Iterator[Weights]:
    each, matrices = number_bytes(s.format, s.group), 2 if s.ungated else 3
    if s.dense_layers > 0:
        yield Weights("dense FFN", s.dense_layers * matrices * s.hidden * s.intermediate * each, Spread.HEADS)
    if not s.experts:
        return
    one = s.sparse_layers * matrices * s.expert_intermediate
    experts = number_bytes(s.expert_format or s.format, s.expert_group or s.group)
    yield Weights("experts", s.experts * one * (s.expert_hidden or s.hidden) * experts, Spread.EXPERTS)
    if s.expert_hidden:
        # The way in and out is not quantized with the experts (NVIDIA's recipe for Nemotron 3 Super keeps it BF16).
        yield Weights("experts' latent", s.sparse_layers * 2 * s.hidden * s.expert_hidden * 2.0, Spread.COPY)
    yield Weights("router", s.sparse_layers * s.hidden * s.experts * 2.0, Spread.COPY)
    if s.shared_experts:
        yield Weights("shared experts", s.shared_experts * one * s.hidden * each, Spread.HEADS)


def _ends(s: ModelShape) -> Iterator[Weights]:
    """Vocabularies: hardly any checkpoint quantizes them; some quantize the output."""
    table = s.vocab * s.hidden * (_BYTES["fp32"] if s.format == "fp32" else _BYTES["bf16"])
    if s.tables:
        yield Weights(
            TABLES if s.table_format else UNKNOWN_TABLES, s.tables * table_size(s), Spread.HEADS, ends=True, idle=True
        )
    if not s.tied:
        yield Weights("embedding", table, Spread.HEADS, ends=True, idle=True)
    if s.output_format in _BYTES:
        table = s.vocab * s.hidden * number_bytes(s.output_format, _OUTPUT_GROUPS.get(s.output_format, 0))
    yield Weights("output", table, Spread.HEADS, ends=True)


def drafts(recipe: Recipe, shape: ModelShape) -> bool:
    """True if the draft layers in the checkpoint are loaded: engines leave them out without speculation."""
    method = recipe.speculation.method.lower()
    own = any(word in method for word in _OWN_DRAFTS)
    return bool(shape.mtp_layers) and "model" not in recipe.speculation.options and own


def drafter(recipe: Recipe, shape: ModelShape) -> bool:
    """True if a separate model drafts, of which only its loading next to this one is known."""
    method = recipe.speculation.method.lower()
    return bool(method) and not drafts(recipe, shape) and not any(word in method for word in _NO_MODEL)


@lru_cache(maxsize=64)
def main(shape: ModelShape) -> tuple[Weights, ...]:
    """The model without its draft layers, each kind of layer by its own dimensions."""
    rest = [part for part in model_parts(shape) if part.name not in ("keys and values", "attention", "state layers")]
    return (*_attention(shape), *_state(shape), *rest, *_indexers(shape), *_streams(shape), *_encoder(shape))


def _attention(s: ModelShape) -> Iterator[Weights]:
    names = ("keys and values", "attention")
    own = s.window_head_dim or s.window_kv_heads or s.window_value_dim or s.window_heads
    if not own or not s.full_layers:
        yield from (part for part in model_parts(s) if part.name in names)
        return
    full = replace(s, layers=s.full_layers, window_layers=0, state_layers=0, experts=0, single_blocks=False)
    window = replace(
        full,
        layers=s.window_layers,
        full_layers=s.window_layers,
        heads=s.window_heads or s.heads,
        head_dim=s.window_head_dim or s.head_dim,
        kv_heads=s.window_kv_heads or s.kv_heads,
        value_dim=s.window_value_dim or s.value_dim,
    )
    yield from (part for each in (full, window) for part in model_parts(each) if part.name in names)


def _gates(s: ModelShape) -> int:
    """Numbers of a state layer's gates. LFM2's convolution has one before it and one after; Kimi Delta Attention has
    two, whose rank is the width of a head (kimi_linear.py and glm5_next.py of SGLang 0.5.23). The second one of Kimi-K3
    is whole, which is less than a hundredth of that model."""
    if s.state_kind == "kda" and s.state_heads:
        return 2 * (s.state_width // s.state_heads) * (s.hidden + s.state_width)
    return (2 if s.state_kind == "sconv" else 1) * s.state_width * s.hidden


def _state(s: ModelShape) -> Iterator[Weights]:
    """The state layers. In: the convolution's input and a gate as wide as the state; out: the state. All linear kinds
    have these."""
    if s.state_layers:
        into = (s.state_conv_width or 3 * s.state_width) * s.hidden
        numbers = s.state_layers * (into + _gates(s) + s.state_width * s.hidden)
        yield Weights("state layers", numbers * number_bytes(s.format, s.group), Spread.HEADS)


def _indexers(s: ModelShape) -> Iterator[Weights]:
    """The lightning indexers (queries, keys, head weights) and what compresses tokens: whole on every rank."""
    layers = s.index_layers or sum(1 for ratio in s.compress if ratio == 4)
    if layers and s.index_dim:
        queries = (s.query_rank or s.hidden) * s.index_heads * s.index_dim * number_bytes(s.format, s.group)
        keys = s.hidden * (s.index_dim * (4 if s.compress else 1) + s.index_heads) * 2.0
        yield Weights("indexers", layers * (queries + keys), Spread.COPY)
    if s.compress:
        # Keys and gates, of two overlapping windows where four tokens become one.
        wide = sum(4 if ratio == 4 else 2 for ratio in s.compress[: s.layers] if ratio > 1)
        yield Weights("compressors", wide * s.hidden * s.head_dim * 2.0, Spread.COPY)


def _streams(s: ModelShape) -> Iterator[Weights]:
    if s.compress:
        yield Weights("hyper-connections", s.layers * 2 * _MIX * STREAMS * s.hidden * 4.0, Spread.COPY)


def _encoder(s: ModelShape) -> Iterator[Weights]:
    if s.senses and s.quantization != "gguf":  # llama.cpp has it in a file of its own (mmproj)
        yield Weights(ENCODER, s.encoder * 2e6 or _ENCODER, Spread.HEADS, ends=True, idle=True)


@lru_cache(maxsize=64)
def draft_layers(s: ModelShape) -> tuple[Weights, ...]:
    """The MTP layers: each a layer with full attention and the model's own FFN, and a way in twice as wide.

    A block of Nemotron-H's is one of the two: a drafted layer has two blocks.
    """
    n = -(-s.mtp_layers // 2) if s.single_blocks else s.mtp_layers
    if not n:
        return ()
    one = replace(s, layers=n, full_layers=n, window_layers=0, state_layers=0, single_blocks=False, ffn_layers=0)
    one = replace(one, moe_layers=n if s.experts else 0, compress=(0,) * n if s.compress else (), mtp_layers=0)
    if {s.format, s.expert_format} & set(_LEFT_OUT):
        one = replace(one, format="bf16", group=0, expert_format="", expert_group=0)
    layers = (replace(part, name=f"draft {part.name}", ends=True) for part in model_parts(one) if not part.ends)
    return (
        *layers,
        Weights("draft input", n * 2 * s.hidden**2 * number_bytes(one.format, one.group), Spread.COPY, ends=True),
    )
