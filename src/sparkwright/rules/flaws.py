"""What rules about a model's files have in common: which nodes have such a flaw."""

from collections.abc import Iterator
from dataclasses import dataclass

from sparkwright.domain.checkpoint import Checkpoint
from sparkwright.domain.flaw import Defect, Flaw
from sparkwright.domain.recipe import Model
from sparkwright.rules.reading import played
from sparkwright.rules.rule import Context

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Flawed:
    """One node's copy with flaws of the kinds asked for. another_whole: some node has all of the model."""

    node: str
    model: Model
    checkpoint: Checkpoint
    flaws: tuple[Flaw, ...]
    another_whole: bool

    @property
    def shown(self) -> str:
        more = f" and {len(self.flaws) - _SHOWN} more" if len(self.flaws) > _SHOWN else ""
        return ", ".join(map(str, self.flaws[:_SHOWN])) + more

    def fetch(self, what: str = "") -> str:
        """The command that gets the model, or one file of it, to where it lies: a folder is not the client's cache."""
        if not self.model.id:
            return "copy it again from where it came"
        folder, _, file = self.checkpoint.path.rpartition("/")
        if not self.checkpoint.path.endswith(".gguf"):
            folder, file = self.checkpoint.path, what
        there = f"--local-dir {folder}" if self.model.path else ""
        return " ".join(filter(None, ("hf download", self.model.id, file, there)))


def flawed(context: Context, *defects: Defect) -> Iterator[Flawed]:
    """Nodes whose copy has one of them; none for a recipe that needs no weights."""
    if context.recipe is None or played(context.recipe):
        return
    copies = {node: c for node, c in context.checkpoints.items() if isinstance(c, Checkpoint)}
    whole = any(checkpoint.complete for checkpoint in copies.values())
    for node, checkpoint in copies.items():
        flaws = tuple(flaw for flaw in checkpoint.flaws if flaw.defect in defects)
        if flaws:
            yield Flawed(node, context.recipe.model, checkpoint, flaws, whole)
