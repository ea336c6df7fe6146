"""The memory ledger of a node: what is in use, what the engine will take line by line, and what is left.

The pool is what the kernel counts (119.7 or 121.6 GiB on a GB10), never the 128 GB on the box; on a GPU with memory of
its own it is what CUDA counts, 0.3 to 0.7 GiB less than nvidia-smi's total. vLLM's fraction is of the whole pool and
holds weights, activations and, since 0.21.0, graphs; SGLang's is of what is free when it starts, and holds weights and
KV only; TensorRT-LLM's is of what weights leave.
"""

from collections.abc import Mapping, Sequence
from math import hypot

from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.facts import NodeFacts, Unknown
from sparkwright.domain.ledger import (
    KEEPER,
    KV_POOL,
    OVERHEAD,
    STATES,
    TIER,
    WEIGHTS,
    KvCapacity,
    LedgerLine,
    MemoryLedger,
    Origin,
)
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import gib
from sparkwright.domain.values import dataclass, replace
from sparkwright.engines.catalog import simulator, traits
from sparkwright.engines.options import fits_context
from sparkwright.engines.traits import Cache, Claim
from sparkwright.planner import kv_cache
from sparkwright.planner.kv_layout import layers
from sparkwright.planner.kv_sglang import token_limit_bytes, token_pool
from sparkwright.planner.kv_stated import stated_capacity, stated_needed
from sparkwright.planner.limits import batched_tokens
from sparkwright.planner.once import compute_once
from sparkwright.planner.overhead import UNKNOWN_NEEDS, before, load_peak, overhead
from sparkwright.planner.parallelism import known_shape
from sparkwright.planner.pool import POOL, Pool, memory_pool
from sparkwright.planner.weights import Found, rank_weights


def ledgers(
    recipe: Recipe,
    facts: Mapping[str, NodeFacts],
    checkpoints: Mapping[str, Checkpoint | Unknown],
    nodes: Sequence[str],
    deployment: str,
) -> tuple[MemoryLedger, ...]:
    """One for each node of the deployment; a node without the files will get those of a node that has them.

    Nodes of which all that is read is the same are counted once: many are, where a search asks for more than there are.
    """
    known = known_shape(recipe, checkpoints)
    shaped = replace(recipe, model=replace(recipe.model, shape=known.shape))
    made: list[tuple[object, MemoryLedger]] = []
    for name in nodes:
        here, checkpoint = facts[name], _whole(checkpoints.get(name)) or known.checkpoint
        read = here.memory, here.gpus, here.gpu_processes, here.ranks, checkpoint
        alike = next((one for other, one in made if other == read), None)
        one = replace(alike, node=here.node) if alike else ledger(shaped, here, checkpoint, len(nodes), deployment)
        made.append((read, one))
    return tuple(one for _, one in made)


def _whole(found: Found) -> Checkpoint | None:
    return found if isinstance(found, Checkpoint) and found.complete else None


def ledger(recipe: Recipe, facts: NodeFacts, checkpoint: Found, world: int, deployment: str = "") -> MemoryLedger:
    """One node's ledger; world: how many nodes the ranks are spread over. A pool that is not known has no lines.

    deployment: the name it will have; its running ranks are replaced, so what they hold counts as free. The model's
    dimensions are the checkpoint's, else the recipe's.
    """
    ranks = -(-recipe.parallelism.world_size // max(world, 1))
    here = memory_pool(facts, deployment or recipe.deployment, ranks, traits(recipe).counts(recipe))
    if isinstance(here, Unknown):
        why = f"the node's memory could not be read: {here.why or here.raw}"
        return MemoryLedger(facts.node, LedgerLine(POOL, 0, Origin.ASSUMED, why), ())
    if simulated(recipe):
        real = replace(recipe, engine=replace(recipe.engine, name=traits(recipe).plays or recipe.engine.name))
        # What a real engine would take, as lines of nothing; and what the played one does
        found = _counted(real, facts.node, here, checkpoint)
        lines = [_nothing(line) for line in found.lines if line.name in (WEIGHTS, KV_POOL)]
        own = overhead(recipe, None) if traits(recipe).plays else ()
        lines = [found.lines[0], lines[0], *own, *lines[1:]]
        return replace(found, lines=tuple(lines), claim=0, loading=None, uncounted="")
    return _counted(recipe, facts.node, here, checkpoint)


@dataclass(frozen=True, slots=True)
class _Fixed:
    """The memory that ranks take wherever they are and however large their KV pool is: equal on equal nodes."""

    taken: tuple[LedgerLine, ...]
    kv_needed: tuple[int, int] | None
    loading: LedgerLine | None


# Weights depend on one limit only: V4's buffers are as long as a batch.
_weights = compute_once(rank_weights, limits=batched_tokens)


@compute_once
def _fixed(recipe: Recipe, shape: ModelShape | None, checkpoint: Found, sharing: int, unified: bool) -> _Fixed:
    weights = _weights(recipe, shape, checkpoint, sharing, unified)
    taken = _stated(recipe, sharing, (weights, *(_times(line, sharing) for line in overhead(recipe, shape, unified))))
    return _Fixed(taken, _needed(recipe, shape), load_peak(recipe, shape, weights))


def _stated(recipe: Recipe, ranks: int, taken: tuple[LedgerLine, ...]) -> tuple[LedgerLine, ...]:
    """The lines with engine.memory as their sum, where the recipe states it."""
    if not recipe.engine.memory:
        return taken
    weights, said = taken[0], recipe.engine.memory * ranks
    rest = max(0, said - weights.bytes)
    others = replace(taken[1], name=OVERHEAD, bytes=rest, why="the rest of engine.memory", known=True)
    if weights.known:
        weights = replace(weights, bytes=min(weights.bytes, said), low=None, high=None)
    else:
        weights = replace(weights, known=True, low=None, high=None, why="part of engine.memory")
    return weights, others


def _counted(recipe: Recipe, node: str, here: Pool, checkpoint: Found) -> MemoryLedger:
    own = checkpoint.shape if isinstance(checkpoint, Checkpoint) else None
    shape = own if isinstance(own, ModelShape) else recipe.model.shape
    fixed = _fixed(recipe, shape, checkpoint, here.sharing, here.unified)
    taken, known = fixed.taken, fixed.taken[0].known
    kv = _limited(recipe, shape, here.sharing, _cut(recipe, shape, _kv_line(recipe, shape, here, taken)))
    tier = _tier(recipe, here, kv)
    capacity = _capacity(recipe, shape, kv[0].bytes // here.sharing) if known or traits(recipe).opaque else None
    return MemoryLedger(
        node,
        here.total,
        (here.used, *taken, *kv, *tier),
        claim=_claim(recipe, here),
        outside=(*traits(recipe).outside(recipe), KEEPER, *(line.name for line in tier)),
        capacity=capacity,
        uncounted=_uncounted(recipe, kv[0], capacity),
        kv_needed=fixed.kv_needed and fixed.kv_needed[1],
        kv_least=fixed.kv_needed and fixed.kv_needed[0],
        seen=here.seen,
        loading=fixed.loading,
    )


def _capacity(recipe: Recipe, shape: ModelShape | None, size: int) -> KvCapacity | None:
    if traits(recipe).opaque:
        return KvCapacity(0, unknown=f"{recipe.engine.name} may print it when it starts")
    return kv_cache.capacity(recipe, shape, size) if shape else stated_capacity(recipe, size)


def _uncounted(recipe: Recipe, pool: LedgerLine, capacity: KvCapacity | None) -> str:
    """The reason why nobody knows whether the pool holds one sequence, if the engine asks for that; '' without one."""
    if not (pool.known and pool.bytes and traits(recipe).checks_context) or fits_context(recipe):
        return ""
    return capacity.unknown if capacity else "the model's dimensions are not known"


def simulated(recipe: Recipe) -> bool:
    return recipe.model.simulated or simulator(recipe)


def _times(line: LedgerLine, ranks: int) -> LedgerLine:
    if ranks == 1:
        return line
    low, high = ((None if size is None else size * ranks) for size in (line.low, line.high))
    return replace(line, bytes=line.bytes * ranks, why=f"{line.why}; x {ranks} ranks here", low=low, high=high)


def memory_fraction(recipe: Recipe) -> float:
    """The recipe's, else what the engine takes without one."""
    return recipe.serving.memory_fraction or traits(recipe).fraction


def _claim(recipe: Recipe, here: Pool) -> int:
    """The bytes that the engine claims for its fraction; 0 for engines that take only their need."""
    claim = traits(recipe).claim
    return 0 if claim in (Claim.NONE, Claim.REST) else int(memory_fraction(recipe) * _of(recipe, here)[0])


def _of(recipe: Recipe, here: Pool) -> tuple[int, int, int]:
    """Bytes of which the engine takes its fraction: likely, least, most."""
    if traits(recipe).claim is Claim.FREE:
        return _found(recipe, here)
    total = here.total
    return total.bytes, total.low or total.bytes, total.high or total.bytes


def _found(recipe: Recipe, here: Pool) -> tuple[int, int, int]:
    """Free bytes that SGLang sees once its processes run (0.5.10 to 0.5.23: MemAvailable on a GB10): likely, least,
    most."""
    taken, least, most = before(here.unified, recipe.parallelism.world_size > 1)
    above, below = _unsure(here)
    low, high = here.free - taken - hypot(most - taken, above), here.free - taken + hypot(taken - least, below)
    return max(0, here.free - taken), max(0, int(low)), max(0, int(high))


def _unsure(here: Pool) -> tuple[float, float]:
    """Bytes by which less and more may be free: where others hold more or less, and the GPU is smaller or larger."""
    used, total = here.used, here.total
    less = (used.high or used.bytes) - used.bytes, total.bytes - (total.low or total.bytes)
    more = used.bytes - (used.bytes if used.low is None else used.low), (total.high or total.bytes) - total.bytes
    return hypot(*less), hypot(*more)


def _kv_line(recipe: Recipe, shape: ModelShape | None, here: Pool, taken: Sequence[LedgerLine]) -> LedgerLine:
    s = recipe.serving
    if s.kv_cache_bytes:
        return _times(
            LedgerLine(KV_POOL, s.kv_cache_bytes, Origin.COMPUTED, "pinned by serving.kv_cache_bytes"), here.sharing
        )
    engine = traits(recipe)
    if engine.opaque:
        said = recipe.engine.memory
        why = "part of engine.memory" if said else f"{KV_POOL} {UNKNOWN_NEEDS}"
        return LedgerLine(KV_POOL, 0, Origin.ASSUMED, why, known=bool(said))
    if engine.claim is Claim.NONE:
        # llama.cpp takes the cache of every slot when it starts.
        slots = recipe.serving.sequences or 1
        size = kv_cache.needed(recipe, shape, slots) if shape else Unknown("", "the model's dimensions are not known")
        if isinstance(size, Unknown):
            why = f"not known: {size.why}; taken at start for every slot"
            return LedgerLine(KV_POOL, 0, Origin.ASSUMED, why, known=False)
        return LedgerLine(KV_POOL, size, Origin.COMPUTED, f"{slots} slots of full length, taken at start")
    if engine.claim is Claim.REST:
        return _rest(memory_fraction(recipe), here, taken)
    apart = (*engine.outside(recipe), KEEPER)
    return _within(recipe, here, [line for line in taken if line.name not in apart])


def _rest(fraction: float, here: Pool, taken: Sequence[LedgerLine]) -> LedgerLine:
    """TensorRT-LLM's fraction is of what weights and others leave, not of the pool."""
    if not all(line.known for line in taken):
        why = f"not known: {fraction:.2f} of what the weights leave"
        return LedgerLine(KV_POOL, 0, Origin.ASSUMED, why, known=False)
    left = here.free - sum(line.bytes for line in taken)
    why = f"{fraction:.2f} x {gib(max(0, left))}, what weights, overhead and others leave"
    size, below = int(fraction * left), _unsure(here)[0]
    low = max(0, int(fraction * (left - below))) if below else None
    return LedgerLine(KV_POOL, max(0, size), Origin.ASSUMED, why, low, max(0, size) if below else None)


def _within(recipe: Recipe, here: Pool, inside: Sequence[LedgerLine]) -> LedgerLine:
    """The rest of the fraction after its other lines, with their uncertainty."""
    fraction, free = memory_fraction(recipe), traits(recipe).claim is Claim.FREE
    claims = [int(fraction * size) for size in _of(recipe, here)]
    whose = "" if recipe.serving.memory_fraction else " (the engine's default)"
    of = f"{gib(_of(recipe, here)[0])} free" if free else gib(here.total.bytes)
    why = f"{fraction:.2f}{whose} x {of}" + "".join(f" - {gib(line.bytes)} {line.name}" for line in inside)
    middle = claims[0] - sum(line.bytes for line in inside)
    # Lines err independently of each other: their widths add as squares.
    below = hypot(claims[0] - claims[1], *((line.high or line.bytes) - line.bytes for line in inside))
    above = hypot(claims[2] - claims[0], *(0 if line.low is None else line.bytes - line.low for line in inside))
    size, low, high = (max(0, int(end)) for end in (middle, middle - below, middle + above))
    if not all(line.known for line in inside):
        unread = " and ".join(line.name for line in inside if not line.known)
        return LedgerLine(KV_POOL, 0, Origin.ASSUMED, f"what the {unread} leave of {gib(max(0, middle))}", known=False)
    origin = Origin.COMPUTED if recipe.serving.memory_fraction else Origin.ASSUMED
    return LedgerLine(KV_POOL, size, origin, why, low, high)


def _cut(recipe: Recipe, shape: ModelShape | None, kv: LedgerLine) -> tuple[LedgerLine, ...]:
    """SGLang keeps states of sequences and others' rows apart from keys and values, and prints these alone."""
    if traits(recipe).cache is not Cache.TOKENS or shape is None:
        return (kv,)
    kinds = layers(recipe, shape)
    if isinstance(kinds, Unknown) or (keys := token_pool(recipe, shape, kinds, kv.bytes)) >= kv.bytes:
        return (kv,)
    apart = LedgerLine(STATES, kv.bytes - keys, kv.origin, "SGLang's pools of states, drafts and index rows")
    low, high = (None if size is None else token_pool(recipe, shape, kinds, size) for size in (kv.low, kv.high))
    return replace(kv, bytes=keys, why=f"{kv.why} - {gib(apart.bytes)} {STATES}", low=low, high=high), apart


def _limited(
    recipe: Recipe, shape: ModelShape | None, ranks: int, kv: tuple[LedgerLine, ...]
) -> tuple[LedgerLine, ...]:
    """The KV lines capped by SGLang's max-total-tokens; the rest of the fraction stays free."""
    size = token_limit_bytes(recipe, shape) * ranks
    pool, *others = kv
    if not size or (pool.high or pool.bytes) <= size:
        return kv
    low, high = (None if end is None else min(end, size) for end in (pool.low, pool.high))
    why = f"{pool.why}; no more than max-total-tokens take"
    return replace(pool, bytes=min(pool.bytes, size), why=why, low=low, high=high), *others


def _tier(recipe: Recipe, here: Pool, kv: Sequence[LedgerLine]) -> tuple[LedgerLine, ...]:
    """An external tier of the KV cache: on a GB10 host memory is the same pool."""
    pool = kv[0]
    size, why = traits(recipe).tier(recipe, pool.bytes // here.sharing)
    if not here.unified or not size:
        return ()
    low, high = (traits(recipe).tier(recipe, (end or 0) // here.sharing)[0] for end in (pool.low, pool.high))
    ranged = pool.low is not None and pool.high is not None and low != high
    ends = (int(low), int(high)) if ranged else (None, None)
    return (_times(LedgerLine(TIER, int(size), Origin.COMPUTED, why, *ends), here.sharing),)


def _needed(recipe: Recipe, shape: ModelShape | None) -> tuple[int, int] | None:
    """The KV bytes that vLLM checks before it starts, unless it shortens the context to what fits. SGLang starts with
    less than one full context, and refuses long requests."""
    if not traits(recipe).checks_context or fits_context(recipe):
        return None
    return kv_cache.start(recipe, shape) if shape else stated_needed(recipe)


def _nothing(line: LedgerLine) -> LedgerLine:
    why = f"simulated: allocates nothing; a real engine would take {gib(line.bytes)}: {line.why}"
    return LedgerLine(line.name, 0, Origin.COMPUTED, why)
