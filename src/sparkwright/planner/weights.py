"""Bytes of weights that a rank holds: by the checkpoint's own tensors, else by the model's shape, else evenly split."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.facts import Unknown
from sparkwright.domain.ledger import WEIGHTS, LedgerLine, Origin
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import gib
from sparkwright.planner.extra_parts import (
    DRAFT,
    ENCODER,
    beside,
    draft_layers,
    drafts,
    main,
    repacked,
    spread_encoder,
)
from sparkwright.planner.parameters import UNTOLD_TABLES, Spread, Weights, missing, settled
from sparkwright.planner.split_cost import held
from sparkwright.planner.tensor_parts import tensor_parts

Found = Checkpoint | Unknown | None
# How far off each way of counting was, as a share: tensors, shape scaled to the files, shape alone, size / ranks.
_TENSORS = (0.01, 0.01)
_SCALED = (0.03, 0.04)
_SHAPE = (0.05, 0.08)
_EVEN = (0.03, 0.15)
_FAR = 1.7  # a checkpoint this many times smaller than the count is another thing: a folder without weights
_TABLES = 1.25
_MORE_DRAFTS = 4.0
# Tables that a config names and nobody can count: n-grams and Engram are 0.7 to 1.3 times the rest of their models.
_UNTOLD = (0.05, 1.5)
REST = "what the dimensions do not explain"
_LESS, _MORE = 0.8, 0.5  # of a part whose dimensions are not known: how much smaller and larger it may be
_NO_DRAFTS = 0.925  # of model and drafts: so small a checkpoint lacks the draft layers, or has lighter ones


@dataclass(frozen=True, slots=True)
class Fit:
    """Factors of the count of the model and of its draft layers, and bytes that the count does not explain."""

    model: float = 1.0
    draft: float = 1.0
    rest: float = 0.0


@dataclass(frozen=True, slots=True)
class _Counted:
    everything: tuple[Weights, ...]
    source: str
    off: tuple[float, float]


def checkpoint_size(recipe: Recipe, checkpoint: Found) -> tuple[int, str]:
    """Bytes of the checkpoint that go into memory and where the figure is from; (0, '') when nothing tells it.

    An unfinished copy is smaller than the model, and a damaged file tells nothing: then the published size is better.
    """
    size, source, stays = recipe.model.size, "model.size of the recipe", recipe.model.on_disk
    if isinstance(checkpoint, Checkpoint) and checkpoint.sound and checkpoint.bytes:
        size, source = checkpoint.weights or checkpoint.bytes, f"files at {checkpoint.path}"
    source += f", less {gib(stays)} that stay on disk" if stays else ""
    return (size - stays, source) if size > stays else (0, "")


def rank_weights(recipe: Recipe, shape: ModelShape | None, checkpoint: Found, ranks_here: int = 1) -> LedgerLine:
    """What ranks_here of the fullest ranks hold; 0 and ASSUMED when nothing tells it."""
    size, source = checkpoint_size(recipe, checkpoint)
    if recipe.engine.name == "llama-cpp" and size:
        return _even(recipe, size, source, ranks_here)
    counted = _counted(recipe, shape, checkpoint) if shape else None
    if shape is None or counted is None:
        return _even(recipe, size, source, ranks_here)
    p = recipe.parallelism
    loaded = (*repacked(counted.everything, recipe, shape), *beside(recipe, shape))
    each = held(loaded, shape, p)
    below, above = counted.off
    unsure = each - held(
        tuple(part for part in loaded if part.name not in (DRAFT, ENCODER, REST, UNTOLD_TABLES)), shape, p
    )
    copied = each - held(tuple(part for part in loaded if part.spread is not Spread.COPY), shape, p)
    return LedgerLine(
        WEIGHTS,
        int(each * ranks_here),
        Origin.ASSUMED if unsure or counted.off == _UNTOLD else Origin.COMPUTED,
        _why(recipe, each, copied, ranks_here) + counted.source,
        low=int((each * (1 - below) - unsure * _LESS) * ranks_here),
        high=int((each * (1 + above) + unsure * _MORE) * ranks_here),
    )


def _why(recipe: Recipe, each: float, copied: float, ranks_here: int) -> str:
    p = recipe.parallelism
    split = f", of which {gib(copied)} is whole on every rank" if copied and p.tp > 1 else ""
    draft = f", with what {recipe.speculation.method} drafts with" if recipe.speculation.method else ""
    here = f" x {ranks_here} ranks here" if ranks_here > 1 else ""
    return f"{gib(each)} on the fullest rank of tp {p.tp} x pp {p.pp}{split}{draft}{here}: "


def _counted(recipe: Recipe, shape: ModelShape, checkpoint: Found) -> _Counted | None:
    wanted = drafts(recipe, shape)
    whole = isinstance(checkpoint, Checkpoint) and checkpoint.sound
    if isinstance(checkpoint, Checkpoint) and whole and checkpoint.tensors and not recipe.model.on_disk:
        listed = tensor_parts(checkpoint.tensors, shape, wanted, spread_encoder(recipe))
        return _Counted(listed, f"tensors of {checkpoint.path}", _TENSORS)
    if missing(shape):
        return None
    size, source = checkpoint_size(recipe, checkpoint)
    shape = settled(shape, size, recipe.model.on_disk)
    model, draft = main(shape), draft_layers(shape)
    fit = fitted(_sum(model), _sum(draft), size, exact=whole and size > 0)
    everything = (*_times(model, fit.model), *(_times(draft, fit.draft) if wanted else ()))
    rest = (Weights(REST, fit.rest, Spread.HEADS),) if fit.rest else ()
    said = f", {gib(size)} in all ({source})" if size else ""
    if shape.tables_unknown and not size:
        return _Counted(
            everything, "the model's dimensions, without tables that its config names and nobody can count", _UNTOLD
        )
    return _Counted((*everything, *rest), f"the model's dimensions{said}", _SCALED if size else _SHAPE)


def fitted(model: float, draft: float, size: int, exact: bool) -> Fit:
    """How a checkpoint's size changes what its model and its draft layers were counted to take.

    What is beyond the count of a model with draft layers is drafts, up to a few times as many (DSpark has three stages
    where a config says one); else it is parts left unquantized, anywhere; much beyond are tables that no dimension
    tells of (Engram, per-layer embeddings). exact: the size is of files. A published one a little below the count is
    none: sizes are rounded, and GiB are called GB.
    """
    total, beyond = model + draft, size - model
    if not size > total / _FAR:
        return Fit()
    if draft and draft < beyond < _MORE_DRAFTS * draft:
        return Fit(draft=beyond / draft)
    if size > _TABLES * total:
        return Fit(rest=size - total)
    if draft and size < _NO_DRAFTS * total:
        return Fit(size / model if exact else max(1.0, size / model), 0.0)
    times = size / total if exact else max(1.0, size / total)
    return Fit(times, times)


def _sum(parts: Sequence[Weights]) -> float:
    return sum(part.bytes for part in parts)


def _times(parts: Sequence[Weights], factor: float) -> tuple[Weights, ...]:
    return tuple(replace(part, bytes=part.bytes * factor) for part in parts)


def _even(recipe: Recipe, size: int, source: str, ranks_here: int) -> LedgerLine:
    if not size:
        why = "size not known: no complete checkpoint on this node, and the recipe gives no model.size"
        return LedgerLine(WEIGHTS, 0, Origin.ASSUMED, why, known=False)
    p = recipe.parallelism
    here = f" x {ranks_here} ranks here" if ranks_here > 1 else ""
    why = f"{gib(size)} ({source}) / (tp {p.tp} x pp {p.pp}){here}, split evenly: the model's dimensions are not known"
    each = size * ranks_here // (p.tp * p.pp)
    return LedgerLine(
        WEIGHTS, each, Origin.ASSUMED, why, low=int(each * (1 - _EVEN[0])), high=int(each * (1 + _EVEN[1]))
    )
