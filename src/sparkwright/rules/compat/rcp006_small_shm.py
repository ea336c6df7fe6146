"""Less shared memory than several ranks need.

Detects: `shm` of a recipe for several nodes in containers, below 32g.
Why: NCCL and the engines' queues live there; with Docker's own 64m, and a memlock limit, the ranks ended with
`unhandled system error` when they met.
Evidence: the recipe's `shm`. The launcher gives 64g and unlimited memlock where the recipe says nothing.
Remedy: leave `shm` out.
References: https://forums.developer.nvidia.com/t/372268 (shm_size 64gb); field guide A4 (32g to 64g)
"""

from collections.abc import Iterator

from sparkwright.domain.finding import Finding, Severity
from sparkwright.domain.recipe import Runtime
from sparkwright.domain.units import GIB, gib
from sparkwright.rules.compat.reading import served_on_gb10
from sparkwright.rules.rule import Context

CODE = "RCP006"
STATUS = "stable"
SEVERITY = Severity.WARN
TITLE = "less shared memory than several ranks need"
_LEAST = 32_000_000_000  # `32g` in either way of counting


def check(context: Context) -> Iterator[Finding]:
    recipe = served_on_gb10(context)
    if recipe is None or recipe.nodes == 1 or recipe.engine.runtime is not Runtime.DOCKER:
        return
    if 0 < recipe.shm_bytes < _LEAST:
        yield Finding(
            CODE,
            SEVERITY,
            "shm",
            f"{gib(recipe.shm_bytes)} of shared memory for ranks on {recipe.nodes} nodes",
            f"shm: {recipe.shm_bytes / GIB:g}GiB; 32g to 64g are proven",
            "NCCL ends with `unhandled system error` when its shared memory is full",
            "leave `shm` out: 64g are given",
        )
