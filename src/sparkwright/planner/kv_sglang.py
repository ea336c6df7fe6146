"""SGLang's token pool: max_total_num_tokens, and its share of the memory next to states of hybrids.

Read in 0.5.10 (model_runner_kv_cache_mixin.py), 0.5.17 and 0.5.23 (pool_configurator.py). The pool is counted as SGLang
prints it: keys and values (or latents) only; rows of an indexer, of a draft and states are pools of their own.
"""

from collections.abc import Sequence
from dataclasses import replace

from sparkwright.domain.facts import Unknown
from sparkwright.domain.ledger import CacheKind, CacheLayers, KvCapacity
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe, Speculation
from sparkwright.engines.catalog import traits
from sparkwright.engines.options import flag_value, number
from sparkwright.engines.traits import Cache
from sparkwright.engines.version import is_since
from sparkwright.planner.kv_layout import drafted, layers
from sparkwright.planner.limits import sequences
from sparkwright.planner.once import compute_once

_WINDOW_SHARE = 0.8  # swa_full_tokens_ratio: tokens of the window pool for each of the whole-context pool
_STATE_SHARE = 0.9  # mamba_full_memory_ratio: bytes of states for each byte of KV
# kv_cache_configurator.py: joint in 0.5.16, not yet in 0.5.12 (handle_max_mamba_cache); spare slots in 0.5.17.
_JOINT, _SPARE = (0, 5, 16), (0, 5, 17)
_EACH = 5  # states of a request where prefixes are cached: three, and two of the buffer that overlap wants
_PRINTED = (CacheKind.FULL, CacheKind.MLA, CacheKind.COMPRESSED)


def capacity(recipe: Recipe, shape: ModelShape, size: int) -> KvCapacity:
    """size: bytes of keys and values on one rank."""
    row = _row(recipe, shape)
    page, context = number(flag_value(recipe, "page-size")) or 1, recipe.serving.context or shape.positions
    tokens = int(max(0, size) / row) // page * page if row else 0
    why = f"{size} B / {row:g} B a token, in pages of {page}"
    fit = tokens / context if context else 0.0
    return KvCapacity(size, tokens, tokens, fit, page, int(row * context), why=(why,))


def token_limit_bytes(recipe: Recipe, shape: ModelShape | None) -> int:
    """Bytes of keys and values that max-total-tokens allows on one rank; 0 without that option."""
    tokens = number(flag_value(recipe, "max-total-tokens")) if traits(recipe).cache is Cache.TOKENS else None
    return int(tokens * _row(recipe, shape)) if tokens and shape else 0


def needed(recipe: Recipe, shape: ModelShape, count: float) -> int:
    """Bytes of keys and values for so many full contexts; SGLang itself starts with less than one."""
    context = recipe.serving.context or shape.positions
    return int(_row(recipe, shape) * context * count)


def token_pool(recipe: Recipe, shape: ModelShape, kinds: Sequence[CacheLayers], rest: int) -> int:
    """Bytes of keys and values out of what weights leave of the static fraction, after states, drafts and indexers."""
    state = sum(kind.layers * kind.state for kind in kinds)
    if state:
        rest -= int((_joint if is_since(recipe, *_JOINT) else _apart)(recipe, state, max(0, rest)))
    row = _row(recipe, shape)
    beside = sum(kind.layers * kind.row / kind.ratio for kind in kinds if kind.kind is CacheKind.INDEX)
    return max(0, int(rest * row / (_token(recipe, shape, kinds) + beside))) if row else 0


def _apart(recipe: Recipe, state: float, rest: int) -> float:
    """Bytes of states: of drafted tokens for as many requests as may run, then a share of what is left."""
    drafts = state * drafted(recipe) * sequences(recipe)
    slots = _slots(recipe)
    return drafts + (slots * state if slots else (rest - drafts) * _portion(recipe))


def _joint(recipe: Recipe, state: float, rest: int) -> float:
    """States of drafted tokens come out of the share, too; more requests than that has states for do not run at once.

    So a recipe without a limit on sequences starts with fewer, where before it did not start.
    """
    drafts, each = drafted(recipe), 1 if _uncached(recipe) else _EACH
    spare = 1 if is_since(recipe, *_SPARE) else 0  # a slot of padding in both pools
    room = rest * _portion(recipe) - spare * state * (1 + drafts)
    slots = _slots(recipe) or int(room / (state * (1 + drafts / each)))
    if slots <= 0:
        return rest
    return state * (slots + spare + (min(sequences(recipe), slots // each) + spare) * drafts)


def _portion(recipe: Recipe) -> float:
    share = _share(recipe, "mamba-full-memory-ratio", _STATE_SHARE)
    return share / (1 + share)


def _slots(recipe: Recipe) -> int:
    """The number of states: the option's; without a prefix cache only requests have one. 0: a share decides."""
    limited = recipe.serving.sequences or (sequences(recipe) if recipe.speculation.method else 0)
    return number(flag_value(recipe, "max-mamba-cache-size")) or (limited if _uncached(recipe) else 0)


def _uncached(recipe: Recipe) -> bool:
    return str(flag_value(recipe, "disable-radix-cache")).lower() == "true"


@compute_once
def _row(recipe: Recipe, shape: ModelShape) -> float:
    """Bytes of a token in the pools of the model itself: drafts, its own layers or another model's, have their own."""
    alone = layers(replace(recipe, speculation=Speculation()), shape)
    return 0.0 if isinstance(alone, Unknown) else _token(recipe, shape, alone)


def _token(recipe: Recipe, shape: ModelShape, kinds: Sequence[CacheLayers]) -> float:
    """Bytes of a token in the whole-context pool, with the share of windows that have a pool of their own."""
    whole = sum(kind.layers * kind.row for kind in kinds if kind.kind in _PRINTED)
    window = sum(kind.layers * kind.row for kind in kinds if kind.kind is CacheKind.WINDOW)
    apart = whole and traits(recipe).windows(recipe, shape.architecture)
    return whole + (_share(recipe, "swa-full-tokens-ratio", _WINDOW_SHARE) if apart else 1.0) * window


def _share(recipe: Recipe, name: str, usual: float) -> float:
    given = flag_value(recipe, name)
    return float(given) if isinstance(given, int | float) and given > 0 else usual
