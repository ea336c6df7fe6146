"""What a GB10 does in a second, each figure as fast, likely and slow: an estimate is worked out with all three.

The likely figures and the widths were fitted to published GB10 measurements by mechanism, none to a model: 94 runs of
one stream without drafts (median error 7 %, families left out of the fit too; nine of ten points inside the interval)
and 52 runs of prompts (16 %). docs/reference/planner-accuracy.md has what all of it reaches now.
"""

from dataclasses import dataclass, replace

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


# read: 240e9 of the nominal 273e9 is the most that was measured alone; engines came near it with
# dense models of 27B and more. gemm: the nominal BF16 peak is 125e12; fast is what native FP4 products reach. exchange:
# a bare NCCL all-reduce over RoCE takes 22-28 us, inside engines 30-150; slow is where RDMA may not be in use.
FAST = Rates(
    read=243e9,
    cache=240e9,
    scan=18e12,
    kernel=2.5e-6,
    host=22e-6,
    step=0.0,
    exchange=35e-6,
    link=23.8e9,
    gemm=150e12,
    cold=0.0,
    alike=0.5,
    crowd=0.7,
    unsaid=0.5,
    rest=0.56,
)
LIKELY = Rates(
    read=220e9,
    cache=200e9,
    scan=8.5e12,
    kernel=5e-6,
    host=45e-6,
    step=0.3e-3,
    exchange=85e-6,
    link=18e9,
    gemm=92e12,
    cold=0.0,
    alike=0.8,
    crowd=0.92,
    unsaid=0.75,
    rest=0.0,
)
SLOW = Rates(
    read=190e9,
    cache=110e9,
    scan=5e12,
    kernel=10e-6,
    host=75e-6,
    step=2e-3,
    exchange=300e-6,
    link=12.5e9,
    gemm=58e12,
    cold=0.4,
    alike=1.0,
    crowd=1.0,
    unsaid=1.0,
    rest=2.0,
)
Waits = tuple[float, float, float]
# Seconds of an exchange (fast, likely, slow) between two nodes where the recipe asks for RDMA, and between more: what
# GLM-5.2's and V4.1-Flash's own breakdowns on four nodes give.
_RDMA: Waits = (35e-6, 85e-6, 170e-6)
_MANY: Waits = (50e-6, 115e-6, 400e-6)
# NCCL over TCP: Inkling-Small and Qwen3.6-27B on two nodes (350 and 476 us).
_SOCKETS: Waits = (250e-6, 400e-6, 600e-6)


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
