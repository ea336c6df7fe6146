"""Bytes of weights that the ranks on one node hold. First version: even shards; what TP replicates is not known yet."""

from sparkwright.domain.facts import Checkpoint, Unknown
from sparkwright.domain.ledger import WEIGHTS, LedgerLine, Origin
from sparkwright.domain.model import ModelShape
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import gib
from sparkwright.planner.parameters import missing, parts

Found = Checkpoint | Unknown | None


def checkpoint_size(recipe: Recipe, checkpoint: Found) -> tuple[int, str]:
    """Bytes of the checkpoint that go into memory and where the figure is from; (0, '') when nothing tells it.

    An unfinished copy is smaller than the model: then the published size is better.
    """
    size, source, stays = recipe.model.size, "model.size of the recipe", recipe.model.on_disk
    if isinstance(checkpoint, Checkpoint) and checkpoint.complete and checkpoint.bytes:
        size, source = checkpoint.bytes, f"files at {checkpoint.path}"
    source += f", less {gib(stays)} that stay on disk" if stays else ""
    return (size - stays, source) if size > stays else (0, "")


def counted_size(recipe: Recipe, checkpoint: Found) -> tuple[int, str]:
    """The same from the model's dimensions, as the table of splits has it; (0, '') when one is missing."""
    shape = checkpoint.shape if isinstance(checkpoint, Checkpoint) else None
    shape = shape if isinstance(shape, ModelShape) else recipe.model.shape
    if shape is None or missing(shape):
        return 0, ""
    return int(sum(part.bytes for part in parts(shape))), "no size is given: counted from the model's dimensions"


def weights_line(recipe: Recipe, checkpoint: Found, ranks_here: int = 1) -> LedgerLine:
    """What the ranks on a node hold, the checkpoint split evenly over tp x pp; 0 and ASSUMED when it is not known."""
    size, source = checkpoint_size(recipe, checkpoint)
    origin = Origin.COMPUTED if size else Origin.ASSUMED
    size, source = (size, source) if size else counted_size(recipe, checkpoint)
    if not size:
        why = "size not known: no complete checkpoint on this node, and the recipe gives no model.size or model.shape"
        return LedgerLine(WEIGHTS, 0, Origin.ASSUMED, why, known=False)
    p = recipe.parallelism
    here = f" x {ranks_here} ranks here" if ranks_here > 1 else ""
    why = f"{gib(size)} ({source}) / (tp {p.tp} x pp {p.pp}){here}, split evenly"
    return LedgerLine(WEIGHTS, size * ranks_here // (p.tp * p.pp), origin, why)
