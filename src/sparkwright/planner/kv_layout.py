"""The cache of one rank by kind of layer: rows a token, windows, states, layers of drafts.

Read in vLLM 0.19.0 to 0.33.0 (kv_cache_interface.py, mamba_utils.py, the models' own cache specs) and SGLang 0.5.10 to
0.5.23 (memory_pool.py). A shape that lacks a dimension gives no figure instead of a wrong one: shapes in recipes are
written by hand, and what a config.json leaves out is known when it is read.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

from sparkwright.domain.facts import Unknown
from sparkwright.domain.ledger import CacheKind, CacheLayers
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe, Speculation
from sparkwright.engines.catalog import traits
from sparkwright.engines.options import flag_value
from sparkwright.engines.traits import Cache
from sparkwright.planner.kv_numbers import (
    V4_OVERLAP,
    V4_ROW,
    V4_STATE_PAGE,
    heads_row,
    index_row,
    is_known_dtype,
    mla_row,
    plain_layers,
)
from sparkwright.planner.once import OneObject, compute_once

# What all models of a class have (the classes' own configs in vLLM 0.33.0): without it something was left out.
_CLASSES = {
    "compress": ("DeepseekV4",),
    "index_layers": ("DeepseekV32", "GlmMoeDsa", "Glm5Next", "MiniMaxM3Sparse", "Qwen4Exp"),
    "state_layers": ("Glm5Next", "KimiLinear", "NemotronH", "Qwen3Next", "Qwen3_5", "Qwen4Exp"),
}
_MISSING = {
    "compress": "how many tokens share an entry of compressed KV",
    "index_layers": "how many layers keep rows of an indexer",
    "state_layers": "how many layers keep a state instead of KV",
}
# Drafts that are made without a model have no cache.
_MODELLESS = ("", "ngram", "ngram_gpu", "suffix", "prompt_lookup", "medusa", "mlp_speculator")
# A draft model of its own, whose config the recipe does not hold.
_ITS_OWN = ("dflash", "dflash2", "draft_model", "standalone")
_KEPT_WHOLE = "dflash"  # the method whose layers keep the whole context beside latent rows
# Published DFlash drafts for GQA models of 26-36 B have 8 layers (5 for small ones), those for MLA models 5 with plain
# attention of their own; DFlash2 for MLA models keeps a window of 2048 tokens. Their cache is in the model's own type.
# A draft for GLM-5.2 on four ranks keeps four times as much.
_OWN_LAYERS = 8
_OWN_WINDOW = 2048
_LATENT_LAYERS, _LATENT_HEADS, _LATENT_WIDTH = 5, 8, 128
AT_MOST = 4
# vLLM computes these drafts' layers in a window and keeps the whole context for them (laguna_dflash.py; two boots of
# 0.25.1 with six such layers held within 0.1 % of that).
_WHOLE_DRAFTS = ("DFlashLaguna",)
_DSPARK_LAYERS = 3  # DeepSeek V4's DSpark reads layers 40 to 42 and keeps a window for each of its own three
_FP32, _BF16 = 4, 2
_V4_PAGE = 64  # tokens a page of DeepSeek V4's windows of 128
_STATE_BYTES = {"fp32": _FP32, "float32": _FP32, "bf16": _BF16, "bfloat16": _BF16, "fp16": _BF16, "float16": _BF16}
# Kinds of state that vLLM keeps in FP32 unless told otherwise; the rest follow the model's own type.
_EXACT = ("kda", "lightning")
_FP4_INDEX = ("indexer_kv_dtype", "use_fp4_indexer_cache")


def missing_value(shape: ModelShape) -> str:
    """The first thing that is missing to count what is kept; '' when nothing is."""
    return next(_gaps(shape), "")


def _gaps(shape: ModelShape) -> Iterator[str]:
    odd = sorted(set(shape.compress) - {0, *V4_STATE_PAGE})
    if odd:
        yield f"compressed KV of {odd} tokens an entry: its pages are not known"
    if (shape.index_layers or V4_OVERLAP in shape.compress) and not shape.index_dim:
        yield "the width of the indexer's rows is not known"
    if shape.state_layers and not (shape.state_matrix or shape.state_conv):
        yield "the size of the state layers' states is not known"
    if shape.window_layers and not shape.window:
        yield "the window of the sliding-window layers is not known"
    if not (shape.compress or shape.latent or shape.head_dim):
        yield "the width of an attention head is not known"
    # A positional part of its own is that of latent or compressed rows.
    if shape.rope_dim and not (shape.latent or shape.compress):
        yield "neither the width of a latent row nor how KV is compressed is known"
    for name, classes in _CLASSES.items():
        if shape.architecture.startswith(classes) and not getattr(shape, name):
            yield f"{_MISSING[name]} is not known; all {shape.architecture} have such"


def drafted(recipe: Recipe) -> int:
    """Tokens drafted a step: hybrids keep a state for each of them."""
    return recipe.speculation.tokens if recipe.speculation.method else 0


def own_layers(recipe: Recipe, shape: ModelShape) -> int:
    """Drafted layers that cache like the model's: MTP inside the checkpoint, one of EAGLE, three of DSpark."""
    method = recipe.speculation.method.lower()
    if method in _MODELLESS or method in _ITS_OWN:
        return 0
    if method == "dspark":
        return _DSPARK_LAYERS
    if method.startswith("eagle") and not traits(recipe).eagle_inside:
        return 0 if _beside_windows(recipe, shape) else 1
    # A block of such models is attention or FFN: a drafted layer is one of each.
    return max(1, -(-shape.mtp_layers // 2) if shape.single_blocks else shape.mtp_layers)


def _beside_windows(recipe: Recipe, shape: ModelShape) -> bool:
    """True for EAGLE's layer next to sliding windows in vLLM's groups: it keeps the whole context, in heads of its own.

    (One boot of Gemma-4-26B-A4B with EAGLE3 held to the token what 31 groups of one layer hold.)
    """
    drafts = recipe.speculation.method.lower().startswith("eagle") and not traits(recipe).eagle_inside
    return drafts and shape.window_layers > 0 and traits(recipe).cache is Cache.BLOCKS


def assumed_layer(recipe: Recipe, shape: ModelShape) -> str:
    """The assumption about a layer of EAGLE in a group of its own; '' without one."""
    known = f"one layer of its own, not known; assumed as wide as the model's widest, up to {AT_MOST} times as much"
    return f"{recipe.speculation.method}: {known}" if _beside_windows(recipe, shape) else ""


def assumed_draft(recipe: Recipe, shape: ModelShape) -> str:
    """The assumption about a separate draft model; '' without one, or if its dimensions are known."""
    method = recipe.speculation.method.lower()
    if method not in _ITS_OWN or recipe.speculation.draft:
        return ""
    if _drafts_in_a_window(recipe, shape):
        what = f"a window of {_OWN_WINDOW} tokens"
    elif shape.latent:
        what = f"{_LATENT_LAYERS} layers of {_LATENT_HEADS} KV heads"
    else:
        what = f"{_OWN_LAYERS} layers as wide as the model's"
    return f"{method}: a draft model of its own, not known; assumed {what}, up to {AT_MOST} times as much"


def _drafts_in_a_window(recipe: Recipe, shape: ModelShape) -> bool:
    """True for DFlash2 with an MLA model. Builds of vLLM call the method `dflash`, too: then the draft's name tells."""
    names = (recipe.speculation.method, str(recipe.speculation.options.get("model", "")))
    return bool(shape.latent) and any("dflash2" in name.lower() for name in names)


def kept_whole(recipe: Recipe, shape: ModelShape) -> Recipe | None:
    """The recipe as if an unknown draft model kept the whole context instead of the assumed window; None for others.

    Builds that cannot share blocks between its rows and the model's keep it whole: epappas/gx10-cluster needed 16.4 GiB
    for 800,000 tokens of GLM-5.3-Flash, and another kit 13.5 for 850,000, where its window takes 6
    (scripts/planner/fresh/fourteenth.yaml, planner-accuracy.md).
    """
    if not assumed_draft(recipe, shape) or not _drafts_in_a_window(recipe, shape):
        return None
    return replace(recipe, speculation=_drafting(OneObject(recipe.speculation), _KEPT_WHOLE, False))


def without_draft(recipe: Recipe) -> Recipe:
    """The recipe as if a draft model of its own kept nothing."""
    return replace(recipe, speculation=_drafting(OneObject(recipe.speculation), "ngram", True))


@lru_cache(maxsize=64)
def _drafting(one: OneObject[Speculation], method: str, options: bool) -> Speculation:
    """The same object for the same one: what compute_once keeps is known by it."""
    return replace(one.value, method=method, options=one.value.options if options else {})


def foreign(recipe: Recipe, shape: ModelShape, row: float) -> Iterator[CacheLayers]:
    """Layers of a draft model of its own: as its config has them, else assumed. row: of the model's full attention."""
    method, draft = recipe.speculation.method.lower(), recipe.speculation.draft
    if alone := assumed_layer(recipe, shape):
        yield CacheLayers(CacheKind.FULL, 1, max(row, _window(recipe, shape).row), why=alone, foreign=True)
    if method not in _ITS_OWN:
        return
    why = assumed_draft(recipe, shape)
    if draft:
        whole = draft.architecture.startswith(_WHOLE_DRAFTS)
        for kind in _attention(without_draft(recipe), draft):
            yield replace(kind, kind=CacheKind.FULL, window=0) if whole and kind.kind is CacheKind.WINDOW else kind
    elif _drafts_in_a_window(recipe, shape):
        yield CacheLayers(CacheKind.WINDOW, 1, row, window=_OWN_WINDOW, why=why)
    elif shape.latent:
        heads = kv_heads(_LATENT_HEADS, recipe.parallelism.tp)
        yield CacheLayers(CacheKind.FULL, _LATENT_LAYERS, heads_row("", heads, 2 * _LATENT_WIDTH), why=why)
    else:
        yield CacheLayers(CacheKind.FULL, _OWN_LAYERS, row, why=why)


@compute_once
def layers(recipe: Recipe, shape: ModelShape) -> tuple[CacheLayers, ...] | Unknown:
    """Every kind of cached layer on the fullest rank; Unknown when the shape or the cache's type does not show it."""
    dtype = cache_type(recipe, shape)
    unknown = missing_value(shape) if is_known_dtype(dtype) else f"nobody here knows the width of KV type {dtype}"
    if unknown:
        return Unknown(recipe.model.label, unknown)
    if shape.compress:
        found = tuple(_compressed(recipe, shape))
    else:
        found = (*_attention(recipe, shape), *_index(recipe, shape), *_states(recipe, shape))
    kept = tuple(kind for kind in found if kind.layers > 0 and (kind.row or kind.state))
    return kept or Unknown(recipe.model.label, "no layer is known to keep anything")


def cache_type(recipe: Recipe, shape: ModelShape) -> str:
    """The number format of the cache: the recipe's, else the one the checkpoint was made for; '': the model's own
    type."""
    asked = recipe.serving.kv_dtype
    if asked not in ("", "auto"):
        return asked
    return shape.kv_format if traits(recipe).follows_checkpoint(recipe) else ""


def kv_heads(heads: int, tp: int) -> int:
    """KV heads of one rank: with fewer heads than ranks each has a copy of one."""
    return max(1, -(-heads // tp))


def _here(count: int, recipe: Recipe) -> int:
    """Layers of the fullest pipeline stage."""
    return -(-count // recipe.parallelism.pp)


def _attention(recipe: Recipe, shape: ModelShape) -> Iterator[CacheLayers]:
    tp, dtype = recipe.parallelism.tp, cache_type(recipe, shape)
    full = _here(shape.growing_layers - _without_rows(recipe, shape)[0], recipe)
    full += 0 if shape.window_layers else own_layers(recipe, shape)
    if shape.latent and shape.architecture in traits(recipe).expands:
        heads, width = kv_heads(shape.heads, tp), 2 * shape.head_dim
        row = wide = heads_row(dtype, heads, width)
        yield CacheLayers(CacheKind.FULL, full, row, why=f"{heads} heads x {width} keys and values, no latent row")
    elif shape.latent:
        row, why = mla_row(dtype, shape), f"a latent row of {shape.latent}, whole on every rank"
        yield CacheLayers(CacheKind.MLA, full, row, why=why)
        wide = heads_row(dtype, kv_heads(shape.kv_heads, tp), 2 * shape.head_dim)
    else:
        heads, width = kv_heads(shape.kv_heads, tp), shape.head_dim + (shape.value_dim or shape.head_dim)
        row = wide = heads_row(dtype, heads, width)
        plain = min(full, plain_layers(dtype, shape, recipe.parallelism.pp))
        yield CacheLayers(CacheKind.FULL, full - plain, row, why=f"{heads} KV heads x {width} keys and values")
        why = f"{heads} KV heads x {width} keys and values in the model's own type"
        yield CacheLayers(CacheKind.FULL, plain, heads_row("", heads, width), why=why)
    yield _window(recipe, shape)
    yield from foreign(recipe, shape, wide)


def _without_rows(recipe: Recipe, shape: ModelShape) -> tuple[int, int]:
    """Layers of the whole context, and of windows, that keep nothing, as they read what another layer keeps."""
    if traits(recipe).rows_for_all:
        return 0, 0
    return shape.shared_full_layers, shape.shared_kv_layers - shape.shared_full_layers


def _window(recipe: Recipe, shape: ModelShape) -> CacheLayers:
    """Layers of a sliding window, the drafted ones among them (MiMo-V2.5, Step-3.5, Inkling).

    An option of vLLM keeps the whole context for them, too.
    """
    key = shape.window_head_dim or shape.head_dim
    width = key + (shape.window_value_dim or (shape.window_head_dim or shape.value_dim or shape.head_dim))
    heads = kv_heads(shape.window_kv_heads or shape.kv_heads, recipe.parallelism.tp)
    row = heads_row(cache_type(recipe, shape), heads, width)
    own = _here(shape.window_layers - _without_rows(recipe, shape)[1], recipe)
    own += own_layers(recipe, shape) if shape.window_layers else 0
    why = f"{heads} KV heads x {width} keys and values, {shape.window} tokens"
    if str(flag_value(recipe, "disable-hybrid-kv-cache-manager")).lower() == "true":
        return CacheLayers(CacheKind.FULL, own, row, why=f"{why}, whole context by option")
    return CacheLayers(CacheKind.WINDOW, own, row, window=shape.window, why=why)


def _index(recipe: Recipe, shape: ModelShape) -> Iterator[CacheLayers]:
    """The lightning indexer's rows."""
    if not shape.index_layers:
        return
    row, ratio = index_row(shape, _fp4_index(recipe)), shape.index_ratio or 1
    # Drafted layers that are like the model's own: they have rows of its indexer, too
    method = recipe.speculation.method.lower()
    inside = "mtp" in method or method == "nextn" or (method == "eagle" and traits(recipe).eagle_inside)
    count = _here(shape.index_layers, recipe) + (own_layers(recipe, shape) if inside else 0)
    why = f"the indexer's row of {shape.index_dim} for {ratio} tokens"
    yield CacheLayers(CacheKind.INDEX, count, row, ratio=ratio, why=why)


def _fp4_index(recipe: Recipe) -> bool:
    """True if vLLM's attention-config, as a mapping or with dots, asks for rows of MXFP4."""
    given = flag_value(recipe, "attention-config")
    told = [given.get(name) for name in _FP4_INDEX] if isinstance(given, Mapping) else []
    told += [flag_value(recipe, f"attention-config.{name}".replace("_", "-")) for name in _FP4_INDEX]
    return any(str(value).lower() in ("mxfp4", "true") for value in told)


def _states(recipe: Recipe, shape: ModelShape) -> Iterator[CacheLayers]:
    """A convolution's last inputs (and those of drafted tokens) in the model's type, and a matrix, both over tp."""
    beside = shape.state_kind == "sconv" and not shape.state_layers
    if beside and not traits(recipe).convolutions:
        # Convolutions next to each attention (Inkling): vLLM keeps them as windows, in pages of as many tokens. A
        # head's numbers are rounded up to a power of two. Windows count the tokens in flight, too: they take most of
        # it.
        each = -(-shape.state_conv_width // max(1, shape.kv_heads))
        row = kv_heads(shape.kv_heads, recipe.parallelism.tp) * (1 << max(0, each - 1).bit_length()) * _BF16
        layers, few = _here(shape.attention_layers, recipe), shape.state_conv
        yield CacheLayers(CacheKind.WINDOW, layers, row, window=few, why=f"convolutions over {few} tokens", block=few)
        return
    count = shape.attention_layers if beside else shape.state_layers
    inputs = max(0, shape.state_conv - 1) + drafted(recipe) if shape.state_conv else 0
    tp = recipe.parallelism.tp
    conv = inputs * -(-shape.state_conv_width // tp) * _BF16
    asked = flag_value(recipe, "mamba-ssm-cache-dtype") or flag_value(recipe, "mamba-ssm-dtype")
    exact = shape.state_kind in _EXACT or shape.single_blocks or traits(recipe).exact_states
    usual = _STATE_BYTES.get(shape.state_format, _FP32 if exact else _BF16)
    matrix = -(-shape.state_matrix // tp) * _STATE_BYTES.get(str(asked), usual)
    name = shape.state_kind or "state"
    why = f"{name}: {inputs} x {shape.state_conv_width} and {shape.state_matrix} numbers / tp {tp}"
    yield CacheLayers(CacheKind.STATE, _here(count, recipe), state=conv + matrix, why=why)


def _compressed(recipe: Recipe, shape: ModelShape) -> Iterator[CacheLayers]:
    """DeepSeek V4: entries for 4 or 128 tokens, the indexer's rows next to the former, and windows of all layers.

    A compressor keeps keys and scores of the tokens that its open groups need in FP32, 2 numbers for each of a head's;
    where groups overlap (4:1) it keeps two groups, and twice as much of each token.
    """
    counts = Counter(shape.compress)
    for ratio in V4_STATE_PAGE:
        count = _here(counts[ratio], recipe)
        yield CacheLayers(CacheKind.COMPRESSED, count, V4_ROW, ratio=ratio, why=f"an entry for {ratio} tokens")
        yield _compressor(count, ratio, shape.head_dim)
        if ratio == V4_OVERLAP:
            row = index_row(shape, _fp4_index(recipe))
            yield CacheLayers(CacheKind.INDEX, count, row, ratio=ratio, why=f"the indexer's row for {ratio} tokens")
            yield _compressor(count, ratio, shape.index_dim)
    own = _here(shape.layers, recipe) + own_layers(recipe, shape)
    why = f"every layer's last {shape.window} tokens"
    yield CacheLayers(CacheKind.WINDOW, own, V4_ROW, window=shape.window, block=_V4_PAGE, why=why)


def _compressor(layers: int, ratio: int, width: int) -> CacheLayers:
    twice = 2 if ratio == V4_OVERLAP else 1
    row, why = 2 * twice * width * _FP32, f"what the {ratio}:1 compressor still needs"
    return CacheLayers(CacheKind.WINDOW, layers, row, window=twice * ratio, block=V4_STATE_PAGE[ratio], why=why)
