"""The judge that the gate and `--optimize` ask: the ledger of every node, for a recipe that may be changed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from sparkwright.domain.calibration import Calibration
from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.facts import NodeFacts, Unknown
from sparkwright.domain.ledger import (
    ACTIVATIONS,
    GRAPHS,
    KV_POOL,
    LOADER,
    OVERHEAD,
    WEIGHTS,
    Lack,
    LedgerLine,
    MemoryLedger,
    Origin,
)
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import gib
from sparkwright.domain.values import dataclass, field, replace
from sparkwright.domain.verdict import Action, ActionKind, Load, LoaderCost, Speed, Verdict
from sparkwright.planner import kv_cache, limits
from sparkwright.planner.calibrate import holding, loading, source_of
from sparkwright.planner.knobs import context_of
from sparkwright.planner.kv_sglang import token_limit_bytes
from sparkwright.planner.ledger import ledgers, simulated
from sparkwright.planner.on_load import as_loaded, held_share, unknown_method
from sparkwright.planner.parallelism import Checkpoints, known_shape
from sparkwright.planner.speed import UNCACHED, estimate_speed, loader_costs, started
from sparkwright.planner.speed_decode import TEXTS, drafted
from sparkwright.planner.weights import checkpoint_size

T = TypeVar("T")
PROMPT = 8192  # tokens of the prompt that speeds are given for: a coding agent's first request
_CACHED_AT_MOST = 0.25  # of a rank's files, by the size of the page cache: then they come from the disk
BUSY = 4096  # tokens before each of many requests at once, and in its prompt
_WORST = (Lack.CLAIM, Lack.POOL, Lack.NODE, Lack.CONTEXT)


@dataclass(frozen=True, slots=True)
class Ground:
    """The facts found on the nodes, in the order of ranks.

    facts, calibrations: by node name. checkpoints: of the recipe's model. others: other checkpoints by (id or path,
    revision), for recipes that are changed to those.
    """

    nodes: tuple[str, ...]
    deployment: str
    facts: Mapping[str, NodeFacts]
    checkpoints: Checkpoints = field(default_factory=dict)
    calibrations: Mapping[str, Calibration] = field(default_factory=dict)
    others: Mapping[tuple[str, str], Checkpoint] = field(default_factory=dict)

    def of(self, recipe: Recipe) -> Checkpoints:
        """The checkpoints of the recipe's model."""
        other = self.others.get((recipe.model.label, recipe.model.revision))
        return {self.nodes[0]: other} if other else self.checkpoints

    def ledgers(self, recipe: Recipe) -> tuple[MemoryLedger, ...]:
        """One for each node that the recipe wants; what is not there yet is taken to be like the last one there."""
        names = [*self.nodes, *(f"{self.nodes[-1]} +{n}" for n in range(1, recipe.nodes - len(self.nodes) + 1))]
        facts = {name: self.facts.get(name) or replace(self.facts[self.nodes[-1]], node=name) for name in names}
        checkpoints = self.of(recipe)
        counted = ledgers(recipe, facts, checkpoints, names[: recipe.nodes], self.deployment)
        return calibrated(counted, recipe, known_shape(recipe, checkpoints).shape, self.calibrations)

    def shape(self, recipe: Recipe) -> ModelShape | None:
        return known_shape(recipe, self.of(recipe)).shape


@dataclass(frozen=True, slots=True)
class RealJudge:
    """Answers from the ground; `remedies.Judge` has the questions."""

    ground: Ground

    def verdict(self, recipe: Recipe, actions: Sequence[Action] = ()) -> Verdict:
        ground = self.ground
        after = replace(ground, facts=facts_after(ground.facts, actions))
        return verdict(after.ledgers(recipe), recipe.parallelism.dp)

    def speed(self, recipe: Recipe, load: Load) -> Speed | None:
        known = known_shape(recipe, self.ground.of(recipe))
        if known.shape is None:
            return None
        size = checkpoint_size(recipe, known.checkpoint)[0]
        found = estimate_speed(recipe, known.shape, size, load)
        if (kept := held_share(recipe, known.shape)) < 1.0:  # the files are read as they are
            held = estimate_speed(recipe, as_loaded(recipe, known.shape), int(size * kept), load)
            found = replace(held, loading=found.loading, starts=found.starts)
        found = _widened(found) if known.shape.inferred or unknown_method(recipe, known.shape) else found
        if took := loading(holding(self.ground.calibrations.get(self.ground.nodes[0]), recipe)):
            return replace(found, loading=took)
        if not found.starts or not self._uncached(recipe):
            return found
        now = started(recipe, known.shape, checkpoint_size(recipe, known.checkpoint)[0], UNCACHED)
        return replace(found, loading=now, starts=((UNCACHED, now), *found.starts[1:]))

    def _uncached(self, recipe: Recipe) -> bool:
        """True if every rank's files lie on its node, and no page cache is large enough to hold a part that counts."""
        names, checkpoints = self.ground.nodes[: recipe.nodes], self.ground.of(recipe)
        for name in names:
            memory, there = self.ground.facts[name].memory, checkpoints.get(name)
            if not isinstance(there, Checkpoint) or not there.complete or isinstance(memory, Unknown):
                return False
            held = checkpoint_size(recipe, there)[0] / (recipe.parallelism.tp * recipe.parallelism.pp)
            if not 0 < memory.page_cache < _CACHED_AT_MOST * held:  # 0: a stock node, of which nobody asked
                return False
        return len(names) == recipe.nodes

    def loaders(self, recipe: Recipe) -> tuple[LoaderCost, ...]:
        size = checkpoint_size(recipe, known_shape(recipe, self.ground.of(recipe)).checkpoint)[0]
        return () if simulated(recipe) else loader_costs(recipe, size)


def _widened(found: Speed) -> Speed:
    """Twice as far either way: tensors' sizes hide how much of a model works on a token."""
    names = ("decode", "decode_all", "prefill", "ttft")
    each = {name: getattr(found, name) for name in names}
    return replace(found, **{name: replace(one, low=one.low / 2, high=one.high * 2) for name, one in each.items()})


def verdict(found: Sequence[MemoryLedger], ranks: int = 1) -> Verdict:
    """Judge all nodes together: the worst of them decides. A node of unknown memory makes the verdict unknown.

    ranks: data-parallel ones, each with a KV pool of its own.
    """
    known = [ledger for ledger in found if ledger.pool.bytes]
    lacks = [(ledger, ledger.lack) for ledger in known]  # a search asks for dozens of verdicts: each reason once
    lacking = [(_WORST.index(lack), -ledger.short_of(lack), ledger) for ledger, lack in lacks if lack]
    order, missing, worst = min(lacking, key=lambda one: one[:2], default=(0, 0, None))
    doubtful = [(ledger, doubt) for ledger, lack in lacks if not lack and (doubt := ledger.doubt)]
    pools = [ledger.capacity for ledger in known if ledger.capacity and not ledger.capacity.unknown]
    return Verdict(
        fits=worst is None,
        lack=_WORST[order] if worst else None,
        short=-missing,
        node=next((ledger.node for ledger in (worst, *(one for one, _ in doubtful)) if ledger), ""),
        room=min((ledger.left for ledger in known), default=0),
        kv=min(pools, key=lambda capacity: capacity.tokens, default=None),
        known=len(known) == len(found) and not any(one.unknown or (one.uncounted and not doubtful) for one in known),
        doubt=doubtful[0][1] if doubtful else None,
        missing=tuple(dict.fromkeys(_missing(found))),
        pools=ranks,
    )


def _missing(found: Sequence[MemoryLedger]) -> Iterator[str]:
    for ledger in found:
        if not ledger.pool.bytes:
            yield f"memory of {ledger.node}: {ledger.pool.why}"
        yield from (f"{line.name}: {line.why}" for line in ledger.lines if not line.known)
        if ledger.uncounted:
            yield f"tokens of the {KV_POOL}: {ledger.uncounted}"


def facts_after(facts: Mapping[str, NodeFacts], actions: Sequence[Action]) -> Mapping[str, NodeFacts]:
    """Facts by node name once the actions are done, as far as memory goes."""
    after = dict(facts)
    for action in actions:
        if action.node in after:
            after[action.node] = _done(after[action.node], action)
    return after


def _done(facts: NodeFacts, action: Action) -> NodeFacts:
    memory = facts.memory
    if isinstance(memory, Unknown):
        return facts
    if action.kind is ActionKind.DROP_CACHE:
        return replace(facts, memory=replace(memory, free=max(memory.free, memory.available), cached=memory.shmem))
    # A live process's pages are among those that no counter explains; once it has gone they are plainly free.
    after = replace(
        memory,
        available=min(memory.total, memory.available + action.frees),
        unaccounted=max(0, memory.unaccounted - action.frees),
    )
    return replace(
        facts,
        memory=after,
        gpu_processes=_left(facts.gpu_processes, lambda p: p.pid in action.pids),
        ranks=_left(facts.ranks, lambda r: r.deployment == action.deployment),
    )


def _left(found: tuple[T, ...] | Unknown, ended: Callable[[T], bool]) -> tuple[T, ...] | Unknown:
    return found if isinstance(found, Unknown) else tuple(one for one in found if not ended(one))


def calibrated(
    found: Sequence[MemoryLedger], recipe: Recipe, shape: ModelShape | None, known: Mapping[str, Calibration]
) -> tuple[MemoryLedger, ...]:
    """Each node's ledger with that node's figures, as far as they hold for this recipe.

    Figures are of one rank: where several live in one pool, the count stays.
    """
    if recipe.parallelism.world_size > len(found):
        return tuple(found)
    return tuple(_one(ledger, recipe, shape, holding(known.get(ledger.node), recipe)) for ledger in found)


def _one(found: MemoryLedger, recipe: Recipe, shape: ModelShape | None, said: Calibration | None) -> MemoryLedger:
    if said is None or said.is_empty:
        return found
    if said.whole:
        return _of_whole(found, said, said.whole)
    figures = {
        WEIGHTS: said.weights,
        KV_POOL: said.kv,
        GRAPHS: said.graphs,
        ACTIVATIONS: said.activations,
        LOADER: said.kept,
    }
    lines = tuple(_line(line, figures.get(line.name), said) for line in found.lines)
    made = replace(found, lines=lines)
    pool = made.line(KV_POOL)
    if said.kv is None or pool is None:
        return _pool_follows(made, found, recipe, shape)
    made = replace(made, uncounted="")  # it has started with that pool
    capacity = kv_cache.capacity(recipe, shape, pool.bytes) if shape else None
    if capacity and said.kv_tokens:
        capacity = replace(capacity, reported=said.kv_tokens, low=None, high=None, doubts=())
    made = replace(made, capacity=capacity)
    return made if _given(recipe, shape) else _balanced(made)


def _of_whole(found: MemoryLedger, said: Calibration, whole: int) -> MemoryLedger:
    """The ledger of an engine that tells only what it takes in all: what is not weights is its overhead."""
    weights = found.line(WEIGHTS)
    rest = max(0, whole - (weights.bytes if weights and weights.known else 0))
    part = LedgerLine(KV_POOL, 0, Origin.CALIBRATED, f"part of the engine's {gib(whole)}")
    parts = {OVERHEAD: _line(LedgerLine(OVERHEAD, 0, Origin.CALIBRATED), rest, said), KV_POOL: part}
    if weights and not weights.known:
        parts[WEIGHTS] = replace(part, name=WEIGHTS)
    return replace(found, lines=tuple(parts.get(line.name, line) for line in found.lines))


def _given(recipe: Recipe, shape: ModelShape | None) -> bool:
    """True if the recipe gives the size of the KV pool, so that the claim does not."""
    return bool(recipe.serving.kv_cache_bytes or token_limit_bytes(recipe, shape))


def _line(line: LedgerLine, size: int | None, said: Calibration) -> LedgerLine:
    if size is None:
        return line
    low, high = said.around(size, line.name == KV_POOL)
    return LedgerLine(line.name, size, Origin.CALIBRATED, source_of(said), low, high)


def _pool_follows(made: MemoryLedger, before: MemoryLedger, recipe: Recipe, shape: ModelShape | None) -> MemoryLedger:
    """The ledger of which only other lines were measured: the KV pool gets what they leave of the claim, unless it is
    pinned."""
    pool, freed = made.line(KV_POOL), before.engine_bytes - made.engine_bytes
    if pool is None or not made.claim or not freed or _given(recipe, shape):
        return made
    moved = replace(
        pool,
        bytes=max(0, pool.bytes + freed),
        why=f"{pool.why}; {WEIGHTS} and graphs as measured",
        low=None if pool.low is None else max(0, pool.low + freed),
        high=None if pool.high is None else max(0, pool.high + freed),
    )
    capacity = kv_cache.capacity(recipe, shape, moved.bytes) if shape else None
    return replace(made, lines=_with(made, moved), capacity=capacity)


def _balanced(made: MemoryLedger) -> MemoryLedger:
    """The ledger with unnamed memory in its activations: the claim minus all lines that the engine did name."""
    old, pool = made.line(ACTIVATIONS), made.line(KV_POOL)
    if old is None or pool is None or not made.claim or old.origin is Origin.CALIBRATED:
        return made
    rest = made.claim - made.engine_bytes + old.bytes - pool.bytes
    if rest < 0:
        return made
    why = "what the claim leaves besides the measured lines"
    return replace(made, lines=_with(made, LedgerLine(ACTIVATIONS, rest, Origin.CALIBRATED, why)))


def _with(ledger: MemoryLedger, new: LedgerLine) -> tuple[LedgerLine, ...]:
    return tuple(new if line.name == new.name else line for line in ledger.lines)


def speeds(recipe: Recipe, judge: RealJudge, found: Verdict) -> tuple[Speed, ...]:
    """Speeds of one stream after a short prompt, of one at full depth, and of as many as the limits and the KV pool
    allow."""
    depth = context_of(recipe, judge.ground.shape(recipe))
    prompt = min(PROMPT, max(1, depth // 2)) if depth else PROMPT  # the answer is in the context, too
    half = min(BUSY, prompt)
    held = found.tokens // (2 * half) if found.kv else 1
    loads = [Load(prompt=prompt)]
    # What is written decides how many drafts are accepted: three times as fast for a list than for a story.
    loads += [Load(prompt=prompt, text=text) for text in TEXTS] if drafted(recipe.speculation) else []
    loads += [Load(depth=depth)] if depth > 2 * PROMPT else []
    loads += (
        [Load(depth=half, prompt=half, concurrency=busy)] if (busy := min(limits.sequences(recipe), held)) > 1 else []
    )
    return tuple(speed for load in loads if (speed := judge.speed(recipe, load)) is not None)
