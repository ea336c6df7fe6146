"""Ranges of the tokens that a KV pool holds, for what the rules leave open: another build, and states for drafts."""

from collections.abc import Sequence

from sparkwright.domain.ledger import CacheKind, CacheLayers, KvCapacity
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.values import replace
from sparkwright.engines.catalog import traits
from sparkwright.engines.flag_data import raw_data, versions
from sparkwright.planner.parts import drafts

# Boots of builds that nobody read gave up to 8.5 % more or less than the rules of the releases next to them.
_OTHER_BUILD = 0.05


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
    return found if low == high else replace(found, low=low, high=high, doubts=tuple(doubts))


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
