"""The first, simple memory ledger of a node: what is in use, what the engine will take, what is left.

The pool is what the kernel counts (119.7 or 121.6 GiB on a GB10), never the 128 GB on the box.
"""

from dataclasses import dataclass

from sparkwright.domain.facts import Memory, NodeFacts, Unknown
from sparkwright.domain.ledger import IN_USE, KV_POOL, OVERHEAD, LedgerLine, MemoryLedger, Origin
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import GIB, gib
from sparkwright.planner.weights import Found, weights_line

POOL = "pool"
# vLLM 0.21.0's own default when the recipe gives no memory_fraction (engines/data/vllm-0.21.0.json).
VLLM_FRACTION = 0.92
# SGLang reckons its fraction from the GPU's memory at start (0.5.23, arg_groups/memory_hook.py); near this on a GB10.
SGLANG_FRACTION = 0.85
# trtllm-serve's default, of what is free once the weights are loaded (engines/data/trtllm-1.3.0rc.json).
TRTLLM_FRACTION = 0.9
# A freshly booted GB10 has 5.4-7.6 GiB that no counter explains (firmware, carve-outs; fixtures of field guide A1).
# Only what exceeds them can be pages that the driver kept of an engine that has gone.
UNEXPLAINED_AT_BOOT = 8 * GIB


@dataclass(frozen=True, slots=True)
class _Overhead:
    """What an engine takes beside weights and KV pool: GiB, its range, what the range is, and of what it consists."""

    gib: float
    low: float
    high: float
    source: str
    basis: str = "seen"

    @property
    def bytes(self) -> int:
        return int(self.gib * GIB)


_GUESS = "estimated"
_VLLM = _Overhead(4.5, 3.4, 8.3, "context, graphs, activations up to 8192 batched tokens; more tokens take more")
_OVERHEADS = {
    "vllm": _VLLM,
    "vllm-ray": _Overhead(6.5, 4.4, 10.3, "as vLLM, and Ray: 1 GiB of object store and its processes", _GUESS),
    "sglang": _Overhead(10.0, 5.0, 14.0, "graphs, activations, runtime; beside its fraction", _GUESS),
    "trtllm": _Overhead(10.0, 4.0, 10.0, "one project's reserve for TensorRT-LLM", _GUESS),
    "llama-cpp": _Overhead(1.0, 0.3, 2.0, "compute buffers of llama.cpp's server", _GUESS),
    "twin": _Overhead(0.2, 0.1, 0.3, "the twin's own processes"),
}


def ledger(recipe: Recipe, facts: NodeFacts, checkpoint: Found, world: int, deployment: str = "") -> MemoryLedger:
    """One node's ledger; world: how many nodes the ranks are spread over. A pool that is not known has no lines.

    deployment: the name it will have; its running ranks are replaced, so what they hold counts as free.
    """
    memory = facts.memory
    if isinstance(memory, Unknown):
        why = f"the node's memory could not be read: {memory.why or memory.raw}"
        return MemoryLedger(facts.node, LedgerLine(POOL, 0, Origin.ASSUMED, why), ())
    used = _in_use(facts, memory, deployment or recipe.deployment)
    ranks_here = -(-recipe.parallelism.world_size // max(world, 1))
    lines = _engine_lines(recipe, memory.total, checkpoint, ranks_here, used.bytes)
    pool = LedgerLine(POOL, memory.total, Origin.MEASURED, "MemTotal of this node")
    return MemoryLedger(facts.node, pool, (used, *lines), claim=int(_fraction(recipe) * memory.total))


def simulated(recipe: Recipe) -> bool:
    return recipe.model.simulated or recipe.engine.name == "twin"


def driver_retained(facts: NodeFacts) -> int:
    """Bytes that the driver kept of CUDA processes that have gone; the next CUDA process gets them (field guide A1).

    0 while a GPU process lives or when it is not known whether one does: its pages look just the same.
    """
    if isinstance(facts.memory, Unknown) or isinstance(facts.gpu_processes, Unknown) or facts.gpu_processes:
        return 0
    return max(0, facts.memory.unaccounted - UNEXPLAINED_AT_BOOT)


def _fraction(recipe: Recipe) -> float:
    """What the engine claims of the pool at start; 0 for engines that take only what they need."""
    if simulated(recipe) or recipe.engine.name in ("llama-cpp", "trtllm"):
        return 0.0
    return recipe.serving.memory_fraction or _default_fraction(recipe)


def _default_fraction(recipe: Recipe) -> float:
    return SGLANG_FRACTION if recipe.engine.name == "sglang" else VLLM_FRACTION


def _in_use(facts: NodeFacts, memory: Memory, deployment: str) -> LedgerLine:
    taken = memory.total - memory.available
    why = f"{gib(memory.total)} total - {gib(memory.available)} available"
    retained, replaced = driver_retained(facts), _replaced(facts, deployment)
    if retained:
        why += f" - {gib(retained)} kept by the driver (no GPU process lives; the next one gets them)"
    if replaced:
        why += f" - {gib(replaced)} of the running {deployment}, which is replaced"
    return LedgerLine(IN_USE, max(0, taken - retained - replaced), Origin.MEASURED, why)


def _replaced(facts: NodeFacts, deployment: str) -> int:
    """GPU memory of our own running ranks of that name, when they are the only ones of ours on the node."""
    if isinstance(facts.ranks, Unknown) or isinstance(facts.gpu_processes, Unknown):
        return 0
    names = {rank.deployment for rank in facts.ranks if rank.running and not rank.simulated}
    sizes = [p.used for p in facts.gpu_processes if isinstance(p.used, int)]
    return sum(sizes) if names == {deployment} else 0


def _engine_lines(recipe: Recipe, total: int, checkpoint: Found, ranks_here: int, used: int) -> tuple[LedgerLine, ...]:
    overhead = _overhead_line(recipe, ranks_here)
    weights = weights_line(recipe, checkpoint, ranks_here)
    if simulated(recipe):
        return (_imagined(weights), overhead, _imagined(_kv_line(recipe, total, weights, _overhead_of(_VLLM), used)))
    return weights, overhead, _kv_line(recipe, total, weights, overhead, used)


def _imagined(line: LedgerLine) -> LedgerLine:
    why = f"simulated: the twin allocates nothing; a real engine would take {gib(line.bytes)}: {line.why}"
    return LedgerLine(line.name, 0, Origin.COMPUTED, why)


def _overhead_line(recipe: Recipe, ranks_here: int) -> LedgerLine:
    return _overhead_of(_OVERHEADS.get(recipe.engine.name, _VLLM), ranks_here)


def _overhead_of(known: _Overhead, ranks_here: int = 1) -> LedgerLine:
    why = f"{known.gib:g} GiB a rank, {known.low:g}-{known.high:g} {known.basis}: {known.source}"
    return LedgerLine(OVERHEAD, known.bytes * ranks_here, Origin.ASSUMED, why)


def _kv_line(recipe: Recipe, total: int, weights: LedgerLine, overhead: LedgerLine, used: int) -> LedgerLine:
    s = recipe.serving
    if s.kv_cache_bytes:
        return LedgerLine(KV_POOL, s.kv_cache_bytes, Origin.COMPUTED, "pinned by serving.kv_cache_bytes")
    if recipe.engine.name == "llama-cpp":
        why = "not known: it grows with context x sequences and the model's layers, and is taken at start"
        return LedgerLine(KV_POOL, 0, Origin.ASSUMED, why, known=False)
    if recipe.engine.name == "trtllm":
        rest = total - used - weights.bytes - overhead.bytes
        return _share_of_the_rest(s.memory_fraction or TRTLLM_FRACTION, rest, weights)
    fraction = s.memory_fraction or _default_fraction(recipe)
    whose = "" if s.memory_fraction else " (the engine's default)"
    # SGLang's fraction holds weights and KV pool only: graphs and activations come on top (--mem-fraction-static).
    inside = 0 if recipe.engine.name == "sglang" else overhead.bytes
    why = f"{fraction:.2f}{whose} x {gib(total)} - {gib(weights.bytes)} weights - {gib(inside)} overhead"
    why += "" if weights.known else "; the weights are a part of it"
    size = int(fraction * total) - weights.bytes - inside
    assumed = not s.memory_fraction or weights.origin is Origin.ASSUMED
    return LedgerLine(KV_POOL, max(0, size), Origin.ASSUMED if assumed else Origin.COMPUTED, why)


def _share_of_the_rest(fraction: float, rest: int, weights: LedgerLine) -> LedgerLine:
    """TensorRT-LLM's fraction is of what is free once the weights are loaded, not of the pool."""
    if not weights.known:
        why = f"not known: {fraction:.2f} of what the weights leave"
        return LedgerLine(KV_POOL, 0, Origin.ASSUMED, why, known=False)
    why = f"{fraction:.2f} x {gib(max(0, rest))}, what is free beside weights and overhead"
    return LedgerLine(KV_POOL, max(0, int(fraction * rest)), Origin.ASSUMED, why)
