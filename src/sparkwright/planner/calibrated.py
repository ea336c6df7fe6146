"""A ledger with what the engine itself said at an earlier start in place of what was counted."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sparkwright.domain.calibration import Calibration
from sparkwright.domain.ledger import ACTIVATIONS, GRAPHS, KV_POOL, WEIGHTS, LedgerLine, MemoryLedger, Origin
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.planner import kv_cache
from sparkwright.planner.calibrate import holding, told


def calibrated(
    found: Sequence[MemoryLedger], recipe: Recipe, shape: ModelShape | None, known: Mapping[str, Calibration]
) -> tuple[MemoryLedger, ...]:
    """Each node's ledger with that node's figures, as far as they hold for this recipe.

    Figures are of one rank: where several live in one pool, the count stays.
    """
    if recipe.parallelism.world_size > len(found):
        return tuple(found)
    return tuple(_one(ledger, recipe, shape, holding(known.get(ledger.node), recipe)) for ledger in found)


def _one(found: MemoryLedger, recipe: Recipe, shape: ModelShape | None, said: Calibration | None) -> MemoryLedger:
    if said is None or said.says_nothing:
        return found
    figures = {WEIGHTS: said.weights, KV_POOL: said.kv, GRAPHS: said.graphs, ACTIVATIONS: said.activations}
    lines = tuple(_line(line, figures.get(line.name), said) for line in found.lines)
    made = replace(found, lines=lines)
    pool = made.line(KV_POOL)
    if said.kv is None or pool is None:
        return _pool_follows(made, found, recipe, shape)
    capacity = kv_cache.capacity(recipe, shape, pool.bytes) if shape else None
    if capacity and said.kv_tokens:
        capacity = replace(capacity, reported=said.kv_tokens, low=None, high=None)
    return _balanced(replace(made, capacity=capacity))


def _line(line: LedgerLine, size: int | None, said: Calibration) -> LedgerLine:
    if size is None:
        return line
    low, high = said.around(size, line.name == KV_POOL)
    return LedgerLine(line.name, size, Origin.CALIBRATED, told(said), low, high)


def _pool_follows(made: MemoryLedger, before: MemoryLedger, recipe: Recipe, shape: ModelShape | None) -> MemoryLedger:
    """Only other lines were measured: the KV pool gets what they leave of the claim, unless it is pinned."""
    pool, freed = made.line(KV_POOL), before.engine_bytes - made.engine_bytes
    if pool is None or not made.claim or not freed or recipe.serving.kv_cache_bytes:
        return made
    moved = replace(
        pool,
        bytes=max(0, pool.bytes + freed),
        why=f"{pool.why}; {WEIGHTS} and graphs as measured",
        low=None if pool.low is None else max(0, pool.low + freed),
        high=None if pool.high is None else max(0, pool.high + freed),
    )
    capacity = kv_cache.capacity(recipe, shape, moved.bytes) if shape else None
    return replace(made, lines=_with(made, moved), capacity=capacity)


def _balanced(made: MemoryLedger) -> MemoryLedger:
    """What the engine did not name is what its claim leaves beside the lines that it did: the activations take it."""
    old, pool = made.line(ACTIVATIONS), made.line(KV_POOL)
    if old is None or pool is None or not made.claim or old.origin is Origin.CALIBRATED:
        return made
    rest = made.claim - made.engine_bytes + old.bytes - pool.bytes
    if rest < 0:
        return made
    why = "what the claim leaves beside the measured lines"
    return replace(made, lines=_with(made, LedgerLine(ACTIVATIONS, rest, Origin.CALIBRATED, why)))


def _with(ledger: MemoryLedger, new: LedgerLine) -> tuple[LedgerLine, ...]:
    return tuple(new if line.name == new.name else line for line in ledger.lines)
