"""The most memory that is taken while weights are read: it matters for minutes, and has frozen machines.

Weights, one layer's experts once more while they are repacked for Marlin (vLLM 0.21.0, quantization/utils/marlin_utils;
fused_moe/oracle), and what the loader holds of the files. Files read through the page cache are reclaimable and do not
count; a loader that reads past it has buffers of its own.
"""

from sparkwright.domain.ledger import LOADING, LedgerLine, Origin
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import GIB, gib
from sparkwright.planner.limits import flag
from sparkwright.planner.parameters import Spread, missing, parts, share

_REPACKED = ("nvfp4", "mxfp4", "int4", "int8", "fp8")
# GiB that a loader holds beside the page cache: one tensor at a time, or several files at once.
_BUFFERS = {"instanttensor": (4.0, 1.0, 8.0), "fastsafetensors": (8.0, 4.0, 20.0), "runai_streamer": (5.0, 1.0, 20.0)}
_PLAIN = (1.0, 0.3, 3.0)


def load_peak(recipe: Recipe, shape: ModelShape | None, weights: LedgerLine) -> LedgerLine | None:
    """Of the ranks that the line of weights is about; None where none are read or their size is not known."""
    if not weights.bytes:
        return None
    loader = str(flag(recipe, "load-format") or "")
    if loader == "dummy":
        return None
    buffers, least, most = (int(size * GIB) for size in _BUFFERS.get(loader, _PLAIN))
    again = _repacking(recipe, shape)
    why = f"{gib(weights.bytes)} weights + {gib(buffers)} of the loader" + (
        f" + {gib(again)} repacked" if again else ""
    )
    low = (weights.low or weights.bytes) + least
    high = (weights.high or weights.bytes) + most + 2 * again
    return LedgerLine(LOADING, weights.bytes + buffers + again, Origin.ASSUMED, why, low, high)


def _repacking(recipe: Recipe, shape: ModelShape | None) -> int:
    """One layer's share of what kernels want in another order, held twice for a moment."""
    if shape is None or missing(shape) or (shape.expert_format or shape.format) not in _REPACKED:
        return 0
    inner = (part for part in parts(shape) if not part.ends and part.spread is not Spread.COPY)
    return int(sum(part.bytes * share(part, shape, recipe.parallelism) for part in inner) / shape.layers)
