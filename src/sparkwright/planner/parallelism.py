"""The parallelism advisor: every split of a model over the nodes, which are possible, and what each costs."""

from collections.abc import Iterator, Mapping, Sequence
from math import lcm

from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.facts import Unknown
from sparkwright.domain.model import ModelShape
from sparkwright.domain.plan import Advice, Split, SplitCost
from sparkwright.domain.recipe import Parallelism, Recipe
from sparkwright.domain.values import dataclass, replace
from sparkwright.engines.catalog import traits
from sparkwright.planner.on_load import as_loaded, held_share
from sparkwright.planner.parts import missing, settled
from sparkwright.planner.split_cost import split_cost
from sparkwright.planner.stated import disagreements
from sparkwright.planner.weights import checkpoint_size, rank_weights, too_little

_DEFAULT_BATCH = 8
_NEAR = 8  # node counts up to this are looked at for one that works

Checkpoints = Mapping[str, Checkpoint | Unknown]
_PADDED = 64  # vocab_parallel_embedding.DEFAULT_VOCAB_PADDING_SIZE
# Drafts made by layers of the model itself: they need the last hidden state where the first stage is, too.
_OWN_DRAFTS = ("mtp", "nextn")


@dataclass(frozen=True, slots=True)
class Known:
    """A model's shape and its source; shape None: nobody, and why."""

    shape: ModelShape | None
    source: str
    why: str = ""
    checkpoint: Checkpoint | None = None


def known_shape(recipe: Recipe, checkpoints: Checkpoints) -> Known:
    """The shape of the files on a node, whole copies first; without them the recipe's."""
    found = [(node, c) for node, c in checkpoints.items() if isinstance(c, Checkpoint) and c.shape is not None]
    for node, checkpoint in sorted(found, key=lambda pair: not pair[1].complete):
        if isinstance(checkpoint.shape, ModelShape):
            return Known(checkpoint.shape, f"config.json on {node}", checkpoint=checkpoint)
    if recipe.model.shape:
        return Known(recipe.model.shape, "model.shape of the recipe")
    odd = next((c.shape.why for _, c in found if isinstance(c.shape, Unknown)), "")
    return Known(None, "", odd or "no node has its config.json yet, and the recipe gives no model.shape")


def advise(recipe: Recipe, checkpoints: Checkpoints, priced: bool = True) -> Advice:
    """The recipe's own split first, then the others from the fastest for one sequence; impossible ones last.

    priced: False leaves out what each split costs: most of the work, and nothing that decides which are possible.
    """
    known = known_shape(recipe, checkpoints)
    batch = recipe.serving.sequences or _DEFAULT_BATCH
    judged = [_judge(recipe, known, split, batch, priced) for split in splits(recipe.nodes, known.shape)]
    own = recipe.parallelism
    chosen = next((s for s in judged if s.parallelism == own), None) or _judge(recipe, known, own, batch, priced)
    rest = [split for split in judged if split.parallelism != own]
    rest.sort(key=lambda s: (not s.possible, s.cost.step[1] if s.cost else 0.0, -s.parallelism.tp))
    shape = known.shape
    return Advice(
        source=known.source,
        architecture=shape.architecture if shape else "",
        quantization=shape.quantization if shape else "",
        batch=batch,
        splits=(chosen, *rest),
        why=known.why or _uncounted(recipe, known),
        other_nodes=_other_nodes(recipe, shape) if not any(s.possible for s in judged) else (),
        contradictions=tuple(disagreements(recipe.model.stated, shape, recipe.model.size, recipe.model.label)),
        too_small=tuple(
            (node, why)
            for node, c in checkpoints.items()
            if isinstance(c, Checkpoint) and (why := too_little(recipe, c))
        ),
    )


def splits(nodes: int, shape: ModelShape | None) -> Iterator[Parallelism]:
    """tp x pp x dp = nodes, with and without ep where there are experts to share."""
    for tp in _divisors(nodes):
        for pp in _divisors(nodes // tp):
            split = Parallelism(tp, pp, nodes // tp // pp)
            yield split
            if shape and shape.experts and pp < nodes:
                yield replace(split, ep=True)


def _judge(recipe: Recipe, known: Known, split: Parallelism, batch: int, priced: bool) -> Split:
    against = refusals(known.shape, recipe, split)
    return Split(split, against, None if against or not priced else _cost(recipe, known, split, batch))


def _cost(recipe: Recipe, known: Known, split: Parallelism, batch: int) -> SplitCost | None:
    if known.shape is None or _uncounted(recipe, known):
        return None
    size, _ = checkpoint_size(recipe, known.checkpoint)
    run = replace(recipe, parallelism=split)
    # As the ledger counts them: with drafts, tables of positions and what kernels pad
    cost = split_cost(run, as_loaded(recipe, known.shape), int(size * held_share(recipe, known.shape)), batch)
    return replace(cost, weights=rank_weights(run, known.shape, known.checkpoint).bytes)


def _uncounted(recipe: Recipe, known: Known) -> str:
    size, _ = checkpoint_size(recipe, known.checkpoint)
    name = missing(settled(known.shape, size, recipe.model.on_disk)) if known.shape else ""
    return f"what a split costs is not known: nothing gives the model's {name}" if name else ""


def _other_nodes(recipe: Recipe, shape: ModelShape | None) -> tuple[int, ...]:
    """Node counts that some split works on, nearest first."""
    counts = [n for n in range(1, _NEAR + 1) if any(not refusals(shape, recipe, s) for s in splits(n, shape))]
    return tuple(sorted(counts, key=lambda n: (abs(n - recipe.nodes), n)))


def _divisors(number: int) -> Sequence[int]:
    return [n for n in range(1, number + 1) if number % n == 0]


def refusals(shape: ModelShape | None, recipe: Recipe, split: Parallelism) -> tuple[str, ...]:
    """All reasons against the split; without a shape only what the engine alone forbids."""
    engine = traits(recipe)
    found = [*engine.refusals(split), *_stages(recipe, split)]
    if shape is not None and not engine.by_layer:
        found += _heads(shape, split)
        found += [f"pp {split.pp} is more than {shape.layers} layers"] if split.pp > shape.layers else []
        found += _experts(shape, engine.even_experts, split)
        if engine.blocks and not found:
            found += [*_vocabulary(shape, split), *_blocks(shape, split)]
    return tuple(found)


def _stages(recipe: Recipe, split: Parallelism) -> Iterator[str]:
    drafts, whose = recipe.speculation.method, traits(recipe).one_stage
    whose = whose or ("the draft layers of the model work" if any(own in drafts for own in _OWN_DRAFTS) else "")
    if split.pp > 1 and drafts and whose:
        yield f"pp {split.pp} with speculation {drafts}: {whose} on one pipeline stage only; expected pp 1"


def _heads(shape: ModelShape, split: Parallelism) -> Iterator[str]:
    tp, kv = split.tp, shape.kv_heads
    if shape.heads % tp:
        yield f"tp {tp} does not divide {shape.heads} query heads"
    if not shape.latent and (kv % tp if kv >= tp else tp % kv):
        yield f"tp {tp} neither divides {kv} KV heads nor is a multiple of them"
    if shape.state_heads > 1 and shape.state_heads % tp:
        yield f"tp {tp} does not divide the {shape.state_heads} heads of the state layers"


def _experts(shape: ModelShape, even: bool, split: Parallelism) -> Iterator[str]:
    ranks = split.tp * split.dp
    if split.ep and not shape.experts:
        yield "ep: the model has no experts"
    # vLLM gives some ranks one expert more (fused_moe/layer.py, determine_expert_map); the others want equal shares.
    elif split.ep and (shape.experts % ranks if even else shape.experts < ranks):
        yield f"ep: {shape.experts} experts cannot be shared evenly by {ranks} ranks"


def _vocabulary(shape: ModelShape, split: Parallelism) -> Iterator[str]:
    padded = -(-shape.vocab // _PADDED) * _PADDED
    if padded % split.tp:
        yield f"tp {split.tp} does not divide the vocabulary of {shape.vocab}, padded to {padded}"


def _blocks(shape: ModelShape, split: Parallelism) -> Iterator[str]:
    """A slice must not cut a group of weights that share a scale. MXFP4 is left out: vLLM pads it."""
    own = 1 if shape.format == "mxfp4" else lcm(shape.rows or 1, shape.group or 1)
    expert = own
    if shape.expert_format:
        expert = 1 if shape.expert_format == "mxfp4" else shape.expert_group or 1
    ranks = split.tp * split.dp
    if shape.experts and not split.ep:
        yield from _cut("experts", shape.expert_intermediate, ranks, expert, "; with ep they stay whole")
    if shape.dense_layers > 0:
        yield from _cut("the dense FFN", shape.intermediate, split.tp, own, "")
    if not shape.latent and not shape.compress:
        yield from _cut("the attention output", shape.heads * (shape.value_dim or shape.head_dim), split.tp, own, "")


def _cut(what: str, width: int, ranks: int, block: int, hint: str) -> Iterator[str]:
    if ranks > 1 and width % (ranks * block):
        blocks = f" is no multiple of the quantization block {block}" if block > 1 else " is no whole number"
        yield f"{what}: {width} / {ranks} = {width / ranks:g}{blocks}{hint}"
