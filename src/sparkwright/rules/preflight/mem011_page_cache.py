"""The page cache fills the memory before a load.

Detects: a recipe loads weights on a GB10, MemFree is below 32 GiB, and the page cache holds more than 30 % of the
  pool.
Why: the cache gives way, but not at once and not to everything: CUDA's own figure of free memory leaves it out, graph
  capture has run short beside it, and loads stall near the end.
Evidence: MemFree and the cache.
Remedy: drop the caches before the start.
References: https://docs.nvidia.com/dgx/dgx-spark/known-issues.html (cudaMemGetInfo and the page cache).
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.units import GIB, gib
from sparkwright.rules.reading import known, simulated, sparks
from sparkwright.rules.rule import Context

CODE = "MEM011"
STATUS = "stable"
SEVERITY = Severity.INFO
TITLE = "the page cache fills the memory before a load"

_FREE, _SHARE = 32 * GIB, 0.3


def check(context: Context) -> Iterator[Finding]:
    for facts in sparks(context) if context.recipe and not simulated(context) else ():
        memory = known(facts.memory)
        if memory and memory.free < _FREE and memory.cached > _SHARE * memory.total:
            yield Finding(
                CODE,
                SEVERITY,
                facts.node,
                f"the page cache holds {gib(memory.cached)}",
                f"MemFree {gib(memory.free)}, page cache {gib(memory.cached)}, available {gib(memory.available)}",
                "files were read or copied; CUDA counts only what is free now",
                "sync; echo 3 | sudo tee /proc/sys/vm/drop_caches   # on each node, right before the start",
            )
