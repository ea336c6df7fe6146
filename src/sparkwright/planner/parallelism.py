"""The parallelism advisor: every split of a model over the nodes, which are possible, and what each costs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sparkwright.domain.advice import Advice, Split, SplitCost
from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.facts import Unknown
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Parallelism, Recipe
from sparkwright.planner.parameters import missing
from sparkwright.planner.split_cost import cost
from sparkwright.planner.split_limits import refusals
from sparkwright.planner.weights import checkpoint_size

_DEFAULT_BATCH = 8
_NEAR = 8  # node counts up to this are looked at for one that works

Checkpoints = Mapping[str, Checkpoint | Unknown]


@dataclass(frozen=True, slots=True)
class Known:
    """A model's shape and who says so; shape None: nobody, and why."""

    shape: ModelShape | None
    source: str
    why: str = ""
    checkpoint: Checkpoint | None = None


def known_shape(recipe: Recipe, checkpoints: Checkpoints) -> Known:
    """The shape of the files on a node, whole copies first; without them what the recipe says."""
    found = [(node, c) for node, c in checkpoints.items() if isinstance(c, Checkpoint) and c.shape is not None]
    for node, checkpoint in sorted(found, key=lambda pair: not pair[1].complete):
        if isinstance(checkpoint.shape, ModelShape):
            return Known(checkpoint.shape, f"config.json on {node}", checkpoint=checkpoint)
    if recipe.model.shape:
        return Known(recipe.model.shape, "model.shape of the recipe")
    odd = next((c.shape.why for _, c in found if isinstance(c.shape, Unknown)), "")
    return Known(None, "", odd or "no node has its config.json yet, and the recipe gives no model.shape")


def advise(recipe: Recipe, checkpoints: Checkpoints) -> Advice:
    """The recipe's own split first, then the others from the fastest for one sequence; impossible ones last."""
    known = known_shape(recipe, checkpoints)
    batch = recipe.serving.sequences or _DEFAULT_BATCH
    judged = [_judge(recipe, known, split, batch) for split in splits(recipe.nodes, known.shape)]
    own = recipe.parallelism
    chosen = next((s for s in judged if s.parallelism == own), None) or _judge(recipe, known, own, batch)
    rest = sorted((s for s in judged if s.parallelism != own), key=_order)
    shape = known.shape
    return Advice(
        source=known.source,
        architecture=shape.architecture if shape else "",
        quantization=shape.quantization if shape else "",
        batch=batch,
        splits=(chosen, *rest),
        why=known.why or _uncounted(shape),
        other_nodes=_other_nodes(recipe, shape) if not any(s.possible for s in judged) else (),
    )


def splits(nodes: int, shape: ModelShape | None) -> Iterator[Parallelism]:
    """tp x pp x dp = nodes, with and without ep where there are experts to share."""
    for tp in _divisors(nodes):
        for pp in _divisors(nodes // tp):
            split = Parallelism(tp, pp, nodes // tp // pp)
            yield split
            if shape and shape.experts and pp < nodes:
                yield replace(split, ep=True)


def _judge(recipe: Recipe, known: Known, split: Parallelism, batch: int) -> Split:
    against = refusals(known.shape, recipe, split)
    return Split(split, against, None if against else _cost(recipe, known, split, batch))


def _cost(recipe: Recipe, known: Known, split: Parallelism, batch: int) -> SplitCost | None:
    if known.shape is None or _uncounted(known.shape):
        return None
    size, _ = checkpoint_size(recipe, known.checkpoint)
    return cost(replace(recipe, parallelism=split), known.shape, size, batch)


def _uncounted(shape: ModelShape | None) -> str:
    name = missing(shape) if shape else ""
    return f"what a split costs is not known: nothing says the model's {name}" if name else ""


def _order(split: Split) -> tuple[bool, float, int]:
    return not split.possible, split.cost.step[1] if split.cost else 0.0, -split.parallelism.tp


def _other_nodes(recipe: Recipe, shape: ModelShape | None) -> tuple[int, ...]:
    """Node counts that some split works on, nearest first."""
    counts = [n for n in range(1, _NEAR + 1) if any(not refusals(shape, recipe, s) for s in splits(n, shape))]
    return tuple(sorted(counts, key=lambda n: (abs(n - recipe.nodes), n)))


def _divisors(number: int) -> Sequence[int]:
    return [n for n in range(1, number + 1) if number % n == 0]
