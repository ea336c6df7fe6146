"""The KV pool is smaller than one sequence of full length.

Detects: memory for KV is left, and it is less than one request of serving.context tokens takes in the engine's own
  arithmetic (blocks, groups of layers, tokens in flight).
Why: vLLM ends after minutes of loading with `To serve at least one request with the models's max seq len`. Engines that
  start all the same, and refuse or cut long requests, are not held to it.
Evidence: what the pool has, what one sequence needs, and the range that the pool is believed to be in.
Remedy: the context that does fit, a narrower KV type, more memory for the engine, more nodes.
References: vLLM 0.21.0 v1/core/kv_cache_utils.py (_check_enough_kv_cache_memory).
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.ledger import KV_POOL, MemoryLedger
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import gib
from sparkwright.rules.reading import simulated
from sparkwright.rules.rule import Context

CODE = "MEM003"
STATUS = "stable"
SEVERITY = Severity.OVERRIDE
TITLE = "the KV pool is smaller than one sequence of full length"
_STEP = 4096


def check(context: Context) -> Iterator[Finding]:
    recipe = context.recipe
    if recipe is None or simulated(context):
        return
    for ledger in context.ledgers:
        pool, needed = ledger.line(KV_POOL), ledger.kv_needed
        if pool is not None and needed is not None and ledger.too_short:
            known = f" ({gib(pool.low)} to {gib(pool.high)})" if pool.low is not None and pool.high is not None else ""
            length = f" of {recipe.serving.context:,} tokens" if recipe.serving.context else " of full length"
            yield Finding(
                CODE,
                SEVERITY,
                ledger.node,
                f"the KV pool is too small for one sequence{length}",
                f"{gib(needed)} wanted, {gib(pool.bytes)} in the pool{known}: {pool.why}",
                "weights and the engine's own needs leave too little for so long a context",
                _remedies(recipe, ledger, pool.bytes / needed),
            )


def _remedies(recipe: Recipe, ledger: MemoryLedger, share: float) -> str:
    """share: of one sequence that fits; a tenth less, for what does not shrink with it (tokens in flight)."""
    fits = int(recipe.serving.context * share * 0.9) // _STEP * _STEP
    found = [f"serving.context: {fits} or less"] if fits else []
    narrow = recipe.serving.kv_dtype in ("", "auto", "bf16", "bfloat16")
    found += ["serving.kv_dtype: fp8"] if narrow else []
    wanted = ledger.claim + ledger.short
    more = -(-100 * wanted // ledger.pool.bytes) / 100
    found += (
        [f"serving.memory_fraction: {more:.2f}"] if ledger.claim and more * ledger.pool.bytes <= ledger.free else []
    )
    return "; or ".join([*found, f"more nodes than {recipe.nodes}"][:3])
