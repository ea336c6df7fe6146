"""Checkpoints as they lie on the nodes' disks, and which recipes can use them."""

from dataclasses import dataclass
from enum import StrEnum

from sparkwright.domain.checkpoint import Checkpoint


@dataclass(frozen=True, slots=True)
class Stored:
    """A checkpoint on a node. id: its hub id, '' for a folder or file outside of the hub cache.

    place: a path; of a hub entry a GGUF file below the snapshot, '' for the whole. format: of its weights, in words.
    missing: what an engine would not find, () when it is complete.
    """

    node: str
    id: str
    place: str
    format: str
    checkpoint: Checkpoint
    missing: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        return not self.missing

    @property
    def label(self) -> str:
        return " ".join(part for part in (self.id, self.place) if part)

    @property
    def size(self) -> int:
        """Bytes that an engine reads of it; of all files when nobody knows which."""
        return self.checkpoint.weights or self.checkpoint.bytes

    @property
    def same(self) -> tuple[str, str, str]:
        """Equal for copies of one checkpoint on several nodes, whose folders may lie at different places."""
        return self.id, self.checkpoint.revision, self.place if self.id else self.place.rstrip("/").rpartition("/")[2]


class How(StrEnum):
    """YES: as the recipe is. COULD: with another model.id, model.path or revision. NO: only seems so."""

    YES = "yes"
    COULD = "could"
    NO = "no"


@dataclass(frozen=True, slots=True)
class Use:
    """What a recipe does with a checkpoint. change: what to write in the recipe. why: in words, also what it costs."""

    recipe: str
    how: How
    change: tuple[tuple[str, str], ...] = ()
    why: str = ""
