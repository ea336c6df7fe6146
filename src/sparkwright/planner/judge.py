"""The judge that the gate and `--optimize` ask: the ledger of every node, for a recipe that may be changed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from sparkwright.domain.calibration import Calibration
from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.facts import Memory, NodeFacts, Unknown
from sparkwright.domain.ledger import Lack, MemoryLedger
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.speed import Load, Speed
from sparkwright.domain.verdict import Action, ActionKind, Verdict
from sparkwright.planner.calibrate import holding, loading
from sparkwright.planner.calibrated import calibrated
from sparkwright.planner.ledger import ledgers
from sparkwright.planner.parallelism import Checkpoints, known_shape
from sparkwright.planner.speed import speed
from sparkwright.planner.weights import checkpoint_size

T = TypeVar("T")
_WORST = (Lack.CLAIM, Lack.POOL, Lack.NODE, Lack.CONTEXT)


@dataclass(frozen=True, slots=True)
class Ground:
    """What was found on the nodes, in the order of ranks. facts and calibrations: by node name; checkpoints: of the

    recipe's model. others: other checkpoints by (id or path, revision), for recipes that are changed to those.
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
    """Answers from the ground; `search.Judge` says what is asked."""

    ground: Ground

    def verdict(self, recipe: Recipe, actions: Sequence[Action] = ()) -> Verdict:
        ground = self.ground
        for action in actions:
            if action.node in ground.facts:
                after = _done(ground.facts[action.node], action)
                ground = replace(ground, facts={**ground.facts, action.node: after})
        return verdict(ground.ledgers(recipe))

    def speed(self, recipe: Recipe, load: Load) -> Speed | None:
        known = known_shape(recipe, self.ground.of(recipe))
        if known.shape is None:
            return None
        found = speed(recipe, known.shape, checkpoint_size(recipe, known.checkpoint)[0], load)
        took = loading(holding(self.ground.calibrations.get(self.ground.nodes[0]), recipe))
        return replace(found, loading=took) if took else found


def verdict(found: Sequence[MemoryLedger]) -> Verdict:
    """Of all nodes together: the worst of them decides. Nodes whose memory nobody knows are taken to fit."""
    known = [ledger for ledger in found if ledger.pool.bytes]
    lacking = [ledger for ledger in known if ledger.lack]
    worst = min(lacking, key=lambda ledger: (_WORST.index(ledger.lack), -ledger.short), default=None)
    pools = [ledger.capacity for ledger in known if ledger.capacity and not ledger.capacity.unknown]
    return Verdict(
        fits=worst is None,
        lack=worst.lack if worst else None,
        short=worst.short if worst else 0,
        node=worst.node if worst else "",
        room=min((ledger.left for ledger in known), default=0),
        kv=min(pools, key=lambda capacity: capacity.tokens, default=None),
        known=len(known) == len(found) and not any(ledger.unknown for ledger in known),
    )


def _done(facts: NodeFacts, action: Action) -> NodeFacts:
    """The node's facts once the action is done, as far as memory goes."""
    memory = facts.memory
    if isinstance(memory, Unknown):
        return facts
    if action.kind is ActionKind.DROP_CACHE:
        return replace(facts, memory=_dropped(memory))
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


def _dropped(memory: Memory) -> Memory:
    return replace(memory, free=max(memory.free, memory.available), cached=0)
