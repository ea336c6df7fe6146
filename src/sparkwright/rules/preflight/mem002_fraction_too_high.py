"""The memory fraction claims more than is free now.

Detects: memory_fraction x MemTotal is more than what the next engine can have: MemTotal less what is in use, where
  pages that the driver kept of ended CUDA processes count as free.
Why: the engine checks this at start and ends (`Free memory on device ... is less than desired GPU memory
  utilization`); where it does not, the machine runs out of memory while it serves.
Evidence: the claim against what is free, and what is in use.
Remedy: a fraction that fits, or stop what holds the memory.
References: https://docs.nvidia.com/dgx/dgx-spark/known-issues.html (what CUDA can have). Free memory after a boot
  was 101-112 GiB, box by box.
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.ledger import IN_USE, MemoryLedger
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import gib
from sparkwright.rules import memory
from sparkwright.rules.reading import simulated
from sparkwright.rules.rule import Context

CODE = "MEM002"
STATUS = "stable"
SEVERITY = Severity.OVERRIDE
TITLE = "the memory fraction claims more than is free now"


def check(context: Context) -> Iterator[Finding]:
    recipe = context.recipe
    if recipe is None or simulated(context):
        return
    for ledger in context.ledgers:
        if ledger.claims_too_much:
            used, fraction = ledger.line(IN_USE), ledger.claim / ledger.pool.bytes
            yield Finding(
                CODE,
                SEVERITY,
                ledger.node,
                f"memory fraction {fraction:.2f} is more than is free",
                f"{fraction:.2f} x {gib(ledger.pool.bytes)} = {gib(ledger.claim)} wanted, "
                f"{gib(ledger.free)} free now" + (f" ({gib(used.bytes)} in use: {used.why})" if used else ""),
                "other processes hold memory of the one pool that CPU and GPU share",
                _remedies(context, recipe, ledger),
            )


def _remedies(context: Context, recipe: Recipe, ledger: MemoryLedger) -> str:
    fits = ledger.free * 100 // ledger.pool.bytes / 100
    enough = fits * ledger.pool.bytes > ledger.engine_bytes + recipe.serving.kv_cache_bytes
    found = [f"serving.memory_fraction: {fits:.2f}"] if enough else []
    process = memory.biggest_process(context.facts.get(ledger.node))
    found += [process or f"stop what holds it (on {ledger.node}: ps aux --sort=-rss | head)"]
    return "; or ".join(found)
