"""Bytes of weights that the ranks on one node hold. First version: even shards; what TP replicates is not known yet."""

from sparkwright.domain.facts import Checkpoint, Unknown
from sparkwright.domain.ledger import WEIGHTS, LedgerLine, Origin
from sparkwright.domain.recipe import Recipe
from sparkwright.domain.units import gib

Found = Checkpoint | Unknown | None


def checkpoint_size(recipe: Recipe, checkpoint: Found) -> tuple[int, str]:
    """Bytes of the whole checkpoint and where the figure is from; (0, '') when nothing tells it.

    An unfinished copy is smaller than the model: then the published size is better.
    """
    if isinstance(checkpoint, Checkpoint) and checkpoint.complete and checkpoint.bytes:
        return checkpoint.bytes, f"files at {checkpoint.path}"
    return (recipe.model.size, "model.size of the recipe") if recipe.model.size else (0, "")


def weights_line(recipe: Recipe, checkpoint: Found, ranks_here: int = 1) -> LedgerLine:
    """What the ranks on a node hold, the checkpoint split evenly over tp x pp; 0 and ASSUMED when it is not known."""
    size, source = checkpoint_size(recipe, checkpoint)
    if not size:
        why = "size not known: no complete checkpoint on this node, and the recipe gives no model.size"
        return LedgerLine(WEIGHTS, 0, Origin.ASSUMED, why, known=False)
    p = recipe.parallelism
    here = f" x {ranks_here} ranks here" if ranks_here > 1 else ""
    why = f"{gib(size)} ({source}) / (tp {p.tp} x pp {p.pp}){here}, split evenly"
    return LedgerLine(WEIGHTS, size * ranks_here // (p.tp * p.pp), Origin.COMPUTED, why)
