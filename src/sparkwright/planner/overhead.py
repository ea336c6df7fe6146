"""What an engine takes besides weights and KV pool, line by line, and which of it vLLM pays out of its memory fraction.

vLLM takes its snapshot of free memory once its processes and NCCL are up, so these are outside; what it loads and
computes with afterwards is inside, CUDA graphs since 0.21.0 (v1/worker/gpu_worker.py, read in 0.19.0 to 0.33.0). On a
GB10 it measures with MemAvailable, so what its processes take on the CPU's side while it profiles is inside too.
"""

from collections.abc import Iterator

from sparkwright.domain.ledger import (
    ACTIVATIONS,
    COMMUNICATION,
    CONTEXT,
    GRAPHS,
    LOADER,
    LOADING,
    LedgerLine,
    Origin,
)
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import GIB, MIB, gib
from sparkwright.engines.catalog import traits
from sparkwright.engines.options import flag
from sparkwright.engines.traits import Range, Traits
from sparkwright.planner import limits
from sparkwright.planner.activations import peak, spread
from sparkwright.planner.parts import Spread, missing, parts, share

_NCCL = Range(COMMUNICATION, 0.5, 0.2, 1.5, "NCCL's channels and buffers, made before the engine looks what is free")
# On discrete GPUs (our captures): 0.29-0.32 alone, 0.13-0.32 where NCCL loaded most kernels before the snapshot.
_KERNELS = {
    False: Range(CONTEXT, 0.30, 0.25, 0.35, "kernels loaded and libraries' workspaces, on five starts of 0.21.0"),
    True: Range(CONTEXT, 0.17, 0.10, 0.35, "as on one GPU, less what NCCL had loaded, on three starts of 0.21.0"),
}
# On a GB10 the tightest of several ranks sets the pool for all, and they differ by 0.5 to 3.2 GiB.
_UNIFIED = {
    False: Range(CONTEXT, 1.0, 0.0, 4.0, "kernels, and what the processes grow by on the CPU's side of the one pool"),
    True: Range(CONTEXT, 1.7, 0.0, 4.5, "as on one node, on the tightest of the ranks: they differ by up to 3.2 GiB"),
}
# Two pairs of starts that differed in the loader alone: 4.4 and 5.1 GiB less of KV pool (MiaAI GLM-5.3-Flash 204).
_LOADERS = {
    "instanttensor": Range(LOADER, 4.4, 0.0, 5.2, "kept from loading with instanttensor, on two pairs of starts")
}
_GRAPH = (1 * MIB, 0.1 * MIB)  # bytes of a captured graph: at least, and for each layer of the model
# The first capture, with NCCL's buffers where there are ranks. A GB10's own measure of it sees the page cache move too:
# 0.9, 1.4, 2.0, 2.4 and 5.1 GiB in all on five multi-node engines, once nearly all of the budget.
_FIRST = {(False, False): 0.04, (False, True): 0.04, (True, False): 0.24, (True, True): 1.6}
_FIRST_MOST = 4.5


def overhead(recipe: Recipe, shape: ModelShape | None, unified: bool = True) -> tuple[LedgerLine, ...]:
    """The lines of one rank. unified: CPU and GPU share the pool, as on a GB10."""
    whole = traits(recipe).whole
    return (whole.line,) if whole else (*_started(recipe, unified), *_inside(recipe, shape, unified))


def before(unified: bool) -> tuple[int, int, int]:
    """Bytes that an engine's own processes have taken when it looks what is free; the least and the most of it."""
    line = Traits().processes.line
    return (line.bytes, line.low or 0, line.high or 0) if unified else (0, 0, 0)


def _started(recipe: Recipe, unified: bool) -> Iterator[LedgerLine]:
    """What is there before the engine looks what is free."""
    if unified:
        yield traits(recipe).processes.line
    if recipe.parallelism.world_size > 1:
        yield _NCCL.line


def _inside(recipe: Recipe, shape: ModelShape | None, unified: bool) -> Iterator[LedgerLine]:
    engine, several = traits(recipe), recipe.parallelism.world_size > 1
    yield (engine.context or (_UNIFIED if unified else _KERNELS)[several]).line
    loader = _LOADERS.get(str(flag(recipe, "load-format") or "")) if unified and not engine.context else None
    if loader:
        yield loader.line
    yield _activations(recipe, shape, unified)
    if not limits.eager(recipe):
        yield engine.graphs.line if engine.graphs else _graphs(recipe, shape, unified)


def _activations(recipe: Recipe, shape: ModelShape | None, unified: bool) -> LedgerLine:
    tokens = limits.batched_tokens(recipe, unified)
    if shape is None or not shape.hidden or not shape.vocab:
        each = 0.4 * GIB * tokens / 1024
        why = f"{tokens:,} batched tokens; the model's dimensions are not known"
        return LedgerLine(ACTIVATIONS, int(each), Origin.ASSUMED, why, int(each / 3), int(each * 2))
    found = peak(recipe, shape, unified)
    low, high = spread(found)
    rows = limits.sequences(recipe, unified)
    why = f"{tokens:,} batched tokens, {rows:,} sequences, vocabulary {shape.vocab:,}: {found.why}"
    return LedgerLine(ACTIVATIONS, int(found.bytes), Origin.COMPUTED, why, int(low), int(high))


def _graphs(recipe: Recipe, shape: ModelShape | None, unified: bool) -> LedgerLine:
    """Two captures a batch size (whole decoding steps, and pieces between attentions), of the draft model too."""
    sizes, largest = limits.captures(recipe, unified)
    mode = str(limits.compilation(recipe).get("cudagraph_mode", "")).upper()
    kinds = 1 if mode in ("PIECEWISE", "FULL", "FULL_DECODE_ONLY") else 2
    models = 2 if recipe.speculation.method not in ("", "ngram") else 1
    each = max(_GRAPH[0], _GRAPH[1] * (shape.layers if shape else 0))
    several = recipe.parallelism.world_size > 1
    first = _FIRST[several, unified] * GIB
    size = first + sizes * kinds * models * each
    why = f"{sizes} batch sizes up to {largest}, {kinds * models} kinds, {gib(each)} each + {gib(first)} for the first"
    high = size * 2 + (_FIRST_MOST if several and unified else 0.2) * GIB
    return LedgerLine(GRAPHS, int(size), Origin.ASSUMED, why, int(size / 2), int(high))


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
