"""What a rank holds beside the parts that a split's cost counts: indexers, drafts, encoders, tables of the engine.

Dimensions as vLLM 0.21.0 makes the layers: models/deepseek_v4.py, layers/deepseek_compressor.py, models/deepseek_v2.py,
layers/rotary_embedding. Encoders and drafts outside the checkpoint have no dimensions here: assumed, and said so.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import GIB
from sparkwright.planner.limits import VLLM, batched_tokens, flag
from sparkwright.planner.parameters import Spread, Weights, parts, size

ENCODER = "encoder"
DRAFT = "draft model"
# Bytes of an encoder of images: 0.4 to 0.6 billion BF16 numbers in the families that models.jsonl has.
_ENCODER = 0.9e9
_STREAMS = 4  # residual streams of compressed attention's models (hc_mult of DeepSeek-V4's config.json)
_MIX = (2 + _STREAMS) * _STREAMS
# What a tool that quantizes afterwards leaves as it is: the MTP layers (Qwen3.5-122B: 4.7 GiB more with them).
_LEFT_OUT = ("nvfp4", "int4", "int8")
# Tiles of MXFP4 experts, of hidden and of intermediate width (0.21.0, fused_moe/oracle/mxfp4.py).
_MARLIN, _CUTLASS = (256, 128), (128, 128)
# SGLang calls weights what free memory fell by while it loaded them: 0.35-0.44 GiB more on ten of eleven GB10 logs.
_SGLANG_MORE = 0.38 * GIB
_OWN_DRAFTS = ("mtp", "nextn", "dspark")
# A draft model of its own, in layers of the target's width: DFlash and plain drafts have several, EAGLE one.
_DRAFT_LAYERS = {"eagle": 1.5, "medusa": 1.0}
_DRAFT_OTHERS = 6.0
_NO_MODEL = ("ngram", "suffix", "custom")


def drafts(recipe: Recipe, shape: ModelShape) -> bool:
    """Whether the draft layers in the checkpoint are loaded: engines leave them out without speculation."""
    method = recipe.speculation.method.lower()
    return bool(shape.mtp_layers) and "model" not in recipe.speculation.options and _own(method)


def drafter(recipe: Recipe, shape: ModelShape) -> bool:
    """Whether another model drafts, of which nothing is known here but that it is loaded beside this one."""
    method = recipe.speculation.method.lower()
    return bool(method) and not drafts(recipe, shape) and not any(word in method for word in _NO_MODEL)


def _own(method: str) -> bool:
    return any(word in method for word in _OWN_DRAFTS)


@lru_cache(maxsize=64)
def main(shape: ModelShape) -> tuple[Weights, ...]:
    """The model without its draft layers, each kind of layer by its own dimensions."""
    rest = [part for part in parts(shape) if part.name not in ("keys and values", "attention", "state layers")]
    return (*_attention(shape), *_state(shape), *rest, *_indexers(shape), *_streams(shape), *_encoder(shape))


def _attention(s: ModelShape) -> Iterator[Weights]:
    names = ("keys and values", "attention")
    own = s.window_head_dim or s.window_kv_heads or s.window_value_dim
    if not own or not s.full_layers:
        yield from (part for part in parts(s) if part.name in names)
        return
    full = replace(s, layers=s.full_layers, window_layers=0, state_layers=0, experts=0, single_blocks=False)
    window = replace(
        full,
        layers=s.window_layers,
        full_layers=s.window_layers,
        head_dim=s.window_head_dim or s.head_dim,
        kv_heads=s.window_kv_heads or s.kv_heads,
        value_dim=s.window_value_dim or s.value_dim,
    )
    yield from (part for each in (full, window) for part in parts(each) if part.name in names)


def _state(s: ModelShape) -> Iterator[Weights]:
    """In: what the convolution sees and a gate as wide as the state; out: the state. All linear kinds have these."""
    if s.state_layers:
        into = (s.state_conv_width or 3 * s.state_width) + s.state_width
        numbers = s.state_layers * (into + s.state_width) * s.hidden
        yield Weights("state layers", numbers * size(s.format, s.group), Spread.HEADS)


def _indexers(s: ModelShape) -> Iterator[Weights]:
    """The lightning indexers (queries, keys, head weights) and what compresses tokens: whole on every rank."""
    layers = s.index_layers or sum(1 for ratio in s.compress if ratio == 4)
    if layers and s.index_dim:
        queries = (s.query_rank or s.hidden) * s.index_heads * s.index_dim * size(s.format, s.group)
        keys = s.hidden * (s.index_dim * (4 if s.compress else 1) + s.index_heads) * 2.0
        yield Weights("indexers", layers * (queries + keys), Spread.COPY)
    if s.compress:
        # Keys and gates, of two overlapping windows where four tokens become one.
        wide = sum(4 if ratio == 4 else 2 for ratio in s.compress[: s.layers] if ratio > 1)
        yield Weights("compressors", wide * s.hidden * s.head_dim * 2.0, Spread.COPY)


def _streams(s: ModelShape) -> Iterator[Weights]:
    if s.compress:
        yield Weights("hyper-connections", s.layers * 2 * _MIX * _STREAMS * s.hidden * 4.0, Spread.COPY)


def _encoder(s: ModelShape) -> Iterator[Weights]:
    if s.senses:
        yield Weights(ENCODER, _ENCODER, Spread.HEADS, ends=True, idle=True)


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
    layers = (replace(part, name=f"draft {part.name}", ends=True) for part in parts(one) if not part.ends)
    return (*layers, Weights("draft input", n * 2 * s.hidden**2 * size(one.format, one.group), Spread.COPY, ends=True))


def beside(recipe: Recipe, shape: ModelShape) -> tuple[Weights, ...]:
    """What no checkpoint holds and the engine counts as weights: positions' tables, buffers, another model's drafts."""
    found = []
    if recipe.engine.name in VLLM:
        found.append(Weights("tables of positions", _positions(shape), Spread.COPY, ends=True))
        if shape.compress:
            rows = batched_tokens(recipe) * (_STREAMS * shape.hidden * 2 + shape.index_topk * 4)
            found.append(Weights("buffers of the streams", rows, Spread.COPY, ends=True))
    if recipe.engine.name == "sglang":
        found.append(Weights("kernels loaded meanwhile", _SGLANG_MORE, Spread.COPY, ends=True))
    if drafter(recipe, shape):
        # Split like the target unless draft_tensor_parallel_size says otherwise (0.21.0, config/speculative.py).
        found.append(Weights(DRAFT, _drafter(recipe.speculation.method.lower(), shape), Spread.HEADS, ends=True))
    return tuple(found)


def _positions(s: ModelShape) -> float:
    """cos and sin of every position: FP32 where YaRN makes them, twice where two bases are in use."""
    width = s.rope_dim or min(s.head_dim, 128)
    return s.positions * width * (4.0 if s.latent or s.compress else 2.0) * (2 if s.compress else 1)


def _drafter(method: str, s: ModelShape) -> float:
    layers = next((n for word, n in _DRAFT_LAYERS.items() if word in method), _DRAFT_OTHERS)
    return layers * 16 * s.hidden**2 * 2.0


def repacked(everything: tuple[Weights, ...], recipe: Recipe, shape: ModelShape) -> tuple[Weights, ...]:
    """As the engine's kernels hold them: MXFP4 experts are padded to whole tiles, of each rank's slice."""
    if recipe.engine.name not in VLLM or "mxfp4" not in (shape.expert_format or shape.format):
        return everything
    ranks = 1 if recipe.parallelism.ep else recipe.parallelism.tp * recipe.parallelism.dp
    slice_ = max(1, shape.expert_intermediate // ranks)
    hidden, inner = _CUTLASS if _asks_cutlass(recipe) else _MARLIN
    more = _up(shape.hidden, hidden) / shape.hidden * _up(slice_, inner) / slice_
    return tuple(replace(p, bytes=p.bytes * more) if p.spread is Spread.EXPERTS else p for p in everything)


def _asks_cutlass(recipe: Recipe) -> bool:
    """By the option, or by one of vLLM's variables for it, such as VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8_CUTLASS."""
    told = (name for name, value in recipe.env.items() if str(value).lower() in ("1", "true"))
    return "cutlass" in " ".join((str(flag(recipe, "moe-backend")), *told)).lower()


def _up(width: int, tile: int) -> int:
    return -(-width // tile) * tile


def spread_encoder(recipe: Recipe) -> Spread:
    """vLLM splits an encoder like the rest unless told to give every rank the whole and a part of the images."""
    return Spread.COPY if flag(recipe, "mm-encoder-tp-mode") == "data" else Spread.HEADS
