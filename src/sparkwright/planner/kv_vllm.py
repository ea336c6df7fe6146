"""vLLM's KV cache: how many tokens its log will say that a pool holds, how many it does hold, and what one needs.

The arithmetic of kv_cache_utils.py (0.19.0 to 0.33.0; kv_release.py has the differences): blocks of one size are shared
by groups of layers; a sequence of full length holds so many blocks of each group.
"""

from collections import Counter
from math import ceil

from sparkwright.domain.facts import Unknown
from sparkwright.domain.kv import CacheKind, CacheLayers, KvCapacity
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.planner.kv_compressed import layered
from sparkwright.planner.kv_groups import Pool, grouped
from sparkwright.planner.kv_release import prints_contexts, reserves_null
from sparkwright.planner.limits import flag, number
from sparkwright.planner.once import once


def capacity(recipe: Recipe, shape: ModelShape, kinds: tuple[CacheLayers, ...], size: int) -> KvCapacity:
    """Of a pool of `size` bytes on one rank."""
    made = _pool(recipe, shape, kinds)
    if isinstance(made, Unknown):
        return KvCapacity(size, unknown=made.why)
    blocks, context = max(0, size) // made.block, recipe.serving.context or shape.positions
    # The first block stands for no content: nothing is ever written there.
    fit = max(0, blocks - 1) / made.held
    return KvCapacity(
        bytes=size,
        reported=_reported(recipe, made, blocks, context),
        tokens=int(fit * context),
        sequences=fit,
        block=made.groups[0].tokens,
        per_sequence=made.held * made.block,
        why=_why(made, blocks, context),
    )


def needed(recipe: Recipe, shape: ModelShape, kinds: tuple[CacheLayers, ...], sequences: float) -> int | Unknown:
    """Bytes on one rank for so many sequences of full length, as the engine checks it for one."""
    made = _pool(recipe, shape, kinds)
    if isinstance(made, Unknown):
        return made
    blocks = ceil(made.held * sequences) + reserves_null(recipe)
    return blocks * (made.checked or made.block)


@once
def _pool(recipe: Recipe, shape: ModelShape, kinds: tuple[CacheLayers, ...]) -> Pool | Unknown:
    compressed = any(kind.kind is CacheKind.COMPRESSED for kind in kinds)
    return layered(recipe, shape, kinds) if compressed else grouped(recipe, shape, kinds)


def _reported(recipe: Recipe, made: Pool, blocks: int, context: int) -> int:
    if prints_contexts(recipe):
        return int(blocks / (made.counted or made.held) * context)
    return blocks // len(made.groups) * made.tokens * (number(flag(recipe, "decode-context-parallel-size")) or 1)


def _why(made: Pool, blocks: int, context: int) -> tuple[str, ...]:
    alike = Counter((group.blocks, group.tokens) for group in made.groups)
    parts = [f"{many} x {held:,} blocks of {tokens:,} tokens" for (held, tokens), many in alike.items()]
    return (
        f"{blocks:,} blocks of {made.block:,} B",
        f"a sequence of {context:,} tokens holds {made.held:,}: {', '.join(parts)}",
    )
