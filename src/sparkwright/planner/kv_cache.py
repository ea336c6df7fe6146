"""The KV cache of one rank: what a pool holds and what full contexts need, for every engine.

A figure that cannot be computed is `unknown` with the reason, never a guess.
"""

from collections.abc import Sequence
from dataclasses import replace

from sparkwright.domain.facts import Unknown
from sparkwright.domain.ledger import CacheKind, CacheLayers, KvCapacity
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.engines.catalog import traits
from sparkwright.engines.traits import Cache
from sparkwright.planner import kv_sglang, kv_vllm
from sparkwright.planner.kv_layout import assumed_draft, layers, unknown_draft


def capacity(recipe: Recipe, shape: ModelShape, kv_bytes: int) -> KvCapacity:
    """What `kv_bytes` on one rank hold: tokens as the engine will print them, and as many as really fit.

    SGLang: bytes of keys and values alone, as it prints them (kv_sglang.token_pool counts them).
    """
    kinds = _kinds(recipe, shape)
    # SGLang keeps a draft's rows in a pool of its own.
    unknown = "" if traits(recipe).cache is Cache.TOKENS else unknown_draft(recipe, shape)
    if unknown or isinstance(kinds, Unknown):
        return KvCapacity(kv_bytes, unknown=kinds.why if isinstance(kinds, Unknown) else unknown)
    found, doubt = _ranged(recipe, shape, kinds, kv_bytes), assumed_draft(recipe, shape)
    return replace(found, why=(*found.why, doubt)) if doubt else found


def _held(recipe: Recipe, shape: ModelShape, kinds: tuple[CacheLayers, ...], kv_bytes: int) -> KvCapacity:
    layout = traits(recipe).cache
    if layout is Cache.TOKENS:
        return kv_sglang.capacity(recipe, shape, kv_bytes)
    if layout is Cache.SEQUENCES:
        # TensorRT-LLM and llama.cpp: rows of whole blocks; windows and states are what a sequence takes besides them.
        context, each = recipe.serving.context or shape.positions, _sequence(recipe, shape, kinds)
        block = traits(recipe).block
        fit = max(0, kv_bytes) / each if each else 0.0
        tokens = int(fit * context) // block * block
        why = f"{kv_bytes} B / {each} B for a sequence of {context} tokens, in blocks of {block}"
        return KvCapacity(kv_bytes, tokens, tokens, fit, block, each, why=(why,))
    return kv_vllm.capacity(recipe, shape, kinds, kv_bytes)


def _ranged(recipe: Recipe, shape: ModelShape, kinds: tuple[CacheLayers, ...], kv_bytes: int) -> KvCapacity:
    """With what the neighbouring releases would hold where the version is none that was read, and they differ."""
    found = _held(recipe, shape, kinds, kv_bytes)
    others = () if found.unknown else traits(recipe).neighbours(recipe)
    runs = [replace(recipe, engine=replace(recipe.engine, version=other)) for other in others]
    counts = {one.tokens for run in runs if not (one := _held(run, shape, kinds, kv_bytes)).unknown} | {found.tokens}
    if len(counts) == 1:
        return found
    low, high, name = min(counts), max(counts), recipe.engine.version or "this version"
    why = f"{name} was not read: {low:,} to {high:,} tokens, as the releases {others[0]} to {others[-1]} would hold"
    return replace(found, low=low, high=high, why=(*found.why, why))


def needed(recipe: Recipe, shape: ModelShape, sequences: float = 1) -> int | Unknown:
    """Bytes that one rank needs for so many sequences of the recipe's context, as the engine checks it.

    At least: what a draft model of its own keeps is assumed.
    """
    kinds = _kinds(recipe, shape)
    if isinstance(kinds, Unknown):
        return kinds
    layout = traits(recipe).cache
    if layout is Cache.TOKENS:
        return kv_sglang.needed(recipe, shape, sequences)
    if layout is Cache.SEQUENCES:
        return int(_sequence(recipe, shape, kinds) * sequences)
    return kv_vllm.needed(recipe, shape, kinds, sequences)


def _kinds(recipe: Recipe, shape: ModelShape) -> tuple[CacheLayers, ...] | Unknown:
    if not (recipe.serving.context or shape.positions):
        return Unknown("", "neither the recipe nor the model gives the length of a context")
    if shape.compress and traits(recipe).cache is Cache.TOKENS:
        return Unknown("", "SGLang's pools for compressed KV are not modelled")
    return layers(recipe, shape)


def _sequence(recipe: Recipe, shape: ModelShape, kinds: Sequence[CacheLayers]) -> int:
    """Bytes of one sequence of full length on one rank. llama.cpp takes them for every slot when it starts."""
    context = recipe.serving.context or shape.positions
    return int(sum(kind.layers * _of(kind, context) for kind in kinds))


def _of(kind: CacheLayers, context: int) -> float:
    if kind.kind is CacheKind.STATE:
        return kind.state
    if kind.kind is CacheKind.WINDOW:
        return min(kind.window, context) * kind.row
    return context / kind.ratio * kind.row
