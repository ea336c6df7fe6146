"""Ranges of the tokens that a KV pool holds, for what the rules leave open: another build, and states for drafts."""

from collections.abc import Sequence

from sparkwright.domain.ledger import CacheKind, CacheLayers, KvCapacity
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.values import replace
from sparkwright.engines.catalog import traits
from sparkwright.engines.flag_data import raw_data, versions
from sparkwright.engines.traits import Cache
from sparkwright.planner.parts import drafts

# Boots of builds that nobody read gave up to 8.5 % more or less than the rules of the releases next to them.
_OTHER_BUILD = 0.05
_DSPARK = (0.88, 1.05)  # seven of eight boots of DeepSeek V4 with it held 0.9 to 1.03 of what the rules give
_WHOLE_BLOCKS = 0.998  # what is left of tokens that are no whole number of blocks


def doubted(recipe: Recipe, shape: ModelShape, kinds: Sequence[CacheLayers], found: KvCapacity) -> KvCapacity:
    """The capacity with a range of no width only where version, options and layout are all known."""
    if found.unknown or not found.tokens:
        return found
    low, high = found.low or found.tokens, found.high or found.tokens
    doubts = list(found.doubts)
    if found.low is None and (build := _build(recipe)):  # else the releases next to it give the range
        low, high = _share(found, 1 - _OTHER_BUILD), _share(found, 1 + _OTHER_BUILD)
        doubts.append(f"{build}: {low:,} to {high:,} tokens")
    slot = sum(int(kind.layers * kind.state) for kind in kinds if kind.kind is CacheKind.STATE)
    if slot and found.per_sequence and drafts(recipe, shape):
        # Four boots of hybrid models with MTP held about one state less for each request than the rules give.
        low = min(low, _share(found, found.per_sequence / (found.per_sequence + slot)))
        doubts.append(f"drafts may keep a second state for each request: {low:,} tokens then")
    if more := _wider_eagle(recipe, shape, kinds):
        low = min(low, _share(found, _WHOLE_BLOCKS / (1 + more)))
        doubts.append(f"EAGLE's layer may keep {shape.heads} heads, not {shape.kv_heads}: {low:,} tokens then")
    if "dspark" in recipe.speculation.method.lower() and traits(recipe).cache is Cache.BLOCKS:
        low, high = min(low, _share(found, _DSPARK[0])), max(high, _share(found, _DSPARK[1]))
        doubts.append(f"what DSpark's layers keep differs from build to build: {low:,} to {high:,} tokens")
    return found if low == high else replace(found, low=low, high=high, doubts=tuple(doubts))


def _wider_eagle(recipe: Recipe, shape: ModelShape, kinds: Sequence[CacheLayers]) -> float:
    """Share of the cached bytes that come on top where EAGLE's layer keeps keys and values of all heads; 0 where its
    dimensions are known or it has none.

    MiniMax-M3's EAGLE-3 does: 37,044,092,928 B were 1,087,872 tokens on each of four ranks (scripts/planner/fresh/
    sixteenth.yaml), as with 64 heads of a layer next to 57 with 4.
    """
    asked = recipe.speculation
    if not asked.method.lower().startswith("eagle") or asked.draft or shape.latent or not shape.kv_heads:
        return 0.0
    rows = [kind for kind in kinds if kind.kind is CacheKind.FULL and not kind.foreign]
    every = sum(kind.row * kind.layers for kind in kinds)
    alone = traits(recipe).cache is not Cache.BLOCKS or traits(recipe).eagle_inside
    if not rows or not every or alone or shape.window_layers:
        return 0.0
    return max(kind.row for kind in rows) * (shape.heads / shape.kv_heads - 1) / every


def _build(recipe: Recipe) -> str:
    """The reason why the engine's rules are not known for certain; '' if they are."""
    engine = recipe.engine
    if engine.extra_env or engine.extra_flags or engine.variant:
        return f"{engine.name} of this image has options of its own"
    if engine.version in versions(engine.name):
        kept = recipe.serving.kv_dtype
        row = raw_data(engine.name, engine.version)["options"].get(traits(recipe).kv_option, {})
        foreign = kept and row.get("choices") and kept not in row["choices"]
        # One boot of such a build, to the release with its rules, held 0.6 % more: its pages are its own.
        return f"{engine.name} {engine.version} has no KV type {kept}: another build" if foreign else ""
    return f"{engine.name} {engine.version or 'of no stated version'} was not read"


def _share(found: KvCapacity, share: float) -> int:
    return int(found.tokens * share)
