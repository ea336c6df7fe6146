"""What a GB10 does in a second, each figure as fast, likely and slow: an estimate is worked out with all three."""

import tomllib
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import cast

from sparkwright.domain.recipe import Recipe
from sparkwright.engines.catalog import traits


@dataclass(frozen=True, slots=True)
class Rates:
    """read: bytes/s of weights that a decoding step reads. cache: bytes/s of KV. scan: FLOP/s of a lightning indexer.

    kernel: seconds that one kernel of a CUDA graph costs besides its bytes (start, end, small shapes); host: seconds of
    CPU work that launches one without a graph. step: seconds of a step that wait for sampling and the scheduler.
    exchange: seconds of one small all-reduce. link: bytes/s over the cable. gemm: FLOP/s of a large BF16 product.
    cold: seconds that the first prompts of their size wait for kernels to be compiled.
    alike: n neighbouring tokens of one text need as many experts as n**alike tokens drawn by chance. crowd: so do n
    sequences (benchmarks that send one prompt many times share more).
    unsaid: share of the cache's bytes where a quantized checkpoint may come with FP8 KV and the recipe gives no type.
    rest: bytes of a number outside the experts of a 4-bit checkpoint whose size is not known; 0: as the shape has it.
    """

    read: float
    cache: float
    scan: float
    kernel: float
    host: float
    step: float
    exchange: float
    link: float
    gemm: float
    cold: float
    alike: float
    crowd: float
    unsaid: float
    rest: float


Waits = tuple[float, float, float]
_DATA = tomllib.loads((files("sparkwright.planner") / "rates.toml").read_text(encoding="utf-8"))
FAST, LIKELY, SLOW = (Rates(**{name: row[n] for name, row in _DATA["rates"].items()}) for n in range(3))
_RDMA, _MANY, _SOCKETS = (cast(Waits, tuple(_DATA["exchange"][name])) for name in ("rdma", "many", "sockets"))


def rates(recipe: Recipe) -> tuple[Rates, Rates, Rates]:
    """(fast, likely, slow) for the links that this recipe has."""
    fast, likely, slow = _waits(recipe)
    return replace(FAST, exchange=fast), replace(LIKELY, exchange=likely), replace(SLOW, exchange=slow)


def _waits(recipe: Recipe) -> Waits:
    hop = traits(recipe).hop
    if hop:
        return hop
    if sockets(recipe):
        return _SOCKETS
    if recipe.parallelism.world_size > 2:
        return _MANY
    asked = recipe.env.get("NCCL_NET") == "IB" or recipe.env.get("NCCL_IB_DISABLE") == "0"
    return _RDMA if asked else (FAST.exchange, LIKELY.exchange, SLOW.exchange)


def sockets(recipe: Recipe) -> bool:
    """Whether NCCL is configured without RDMA."""
    env = recipe.env
    return env.get("NCCL_IB_DISABLE") == "1" or env.get("NCCL_NET", "").lower() == "socket"
