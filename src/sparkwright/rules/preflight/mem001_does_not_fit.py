"""The model does not fit into the node's memory.

Detects: nothing is left for the KV pool after weights and the engine's own needs, all lines of the node's ledger
  together exceed the pool, or reading the weights takes more than is free. A memory fraction that is merely too high
  for what is free now is MEM002.
Why: the engine would read all weights, for minutes, and then end with `No available memory for the cache blocks`, or
  the machine would freeze: CPU and GPU share the one pool.
Evidence: the ledger as one sum.
Remedy: the cheapest that help: another memory fraction, a smaller pinned KV pool, a process to stop, more nodes.
References: https://docs.nvidia.com/dgx/dgx-spark/known-issues.html;
  https://al-engr.com/minimax-sglang-debug.html (115 GB of weights a node left 5 GB).
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.ledger import MemoryLedger
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import GIB
from sparkwright.rules import memory
from sparkwright.rules.reading import simulated
from sparkwright.rules.rule import Context

CODE = "MEM001"
STATUS = "stable"
SEVERITY = Severity.OVERRIDE
TITLE = "the model does not fit into the node's memory"


def check(context: Context) -> Iterator[Finding]:
    recipe = context.recipe
    if recipe is None or simulated(context):
        return
    for ledger in context.ledgers:
        no_kv = ledger.has_no_kv
        if no_kv or (not ledger.fits and not ledger.claims_too_much):
            yield Finding(
                CODE,
                SEVERITY,
                ledger.node,
                "no memory is left for the KV pool" if no_kv else "does not fit",
                memory.arithmetic(ledger),
                "weights and the engine's own needs take all that it may take"
                if no_kv
                else "the lines exceed the pool",
                _remedies(context, recipe, ledger, no_kv),
            )


def _remedies(context: Context, recipe: Recipe, ledger: MemoryLedger, no_kv: bool) -> str:
    process = memory.biggest_process(context.facts.get(ledger.node))
    fraction = _enough(ledger) if no_kv else 0.0
    found = [f"serving.memory_fraction: {fraction:.2f} or more"] if fraction else []
    found += [process] if process and not fraction else []
    found += ["a smaller serving.kv_cache_bytes"] if recipe.serving.kv_cache_bytes else []
    alone = recipe.engine.name == "llama-cpp"
    found += ["fewer sequences or a smaller context" if alone else f"more nodes than {recipe.nodes}"]
    return "; or ".join([*found, "a smaller checkpoint of the model"][:3])


def _enough(ledger: MemoryLedger) -> float:
    """The fraction that leaves 1 GiB for the KV pool, rounded up; 0 when so much is not free now."""
    needed = GIB + ledger.engine_bytes
    if not ledger.pool.bytes or needed > ledger.free:
        return 0.0
    return min(0.99, -(-100 * needed // ledger.pool.bytes) / 100)
