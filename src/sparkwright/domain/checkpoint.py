"""What is known of a model's files on a node."""

from dataclasses import dataclass

from sparkwright.domain.flaw import Defect, Flaw
from sparkwright.domain.model import ModelShape
from sparkwright.domain.unknown import Unknown


@dataclass(frozen=True, slots=True)
class TensorGroup:
    """Tensors of a checkpoint whose names differ in the numbers between their dots: `layers.#.experts.#.w1.weight`.

    dtype: as the file names it (BF16, F8_E4M3, U8, ...; GGUF: Q4_K, ...). bytes, count: of all of them together.
    """

    name: str
    dtype: str
    bytes: int
    count: int = 1


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model folder on a node. missing: files that the index names and the folder lacks, or that are incomplete.

    path: the folder to give to the engine (a snapshot folder for hub models), '' when nothing is there.
    bytes: what is there, symlinks followed. root: the folder to copy (whole hub entry, or the path itself).
    weights: bytes of the files that an engine loads of it (a second copy in another format is not read), 0: not known.
    config: the text of its config.json; shape: what that says, or a GGUF file's header, None without one. tensors: from
    the files' own headers, () when they were not read. flaws: what is wrong with it, also what no file misses.
    doubts: what its config says that is not understood here; figures about it are a bound then.
    """

    path: str
    root: str
    revision: str
    bytes: int
    files: int
    missing: tuple[str, ...] = ()
    config: str = ""
    shape: ModelShape | Unknown | None = None
    tensors: tuple[TensorGroup, ...] = ()
    weights: int = 0
    flaws: tuple[Flaw, ...] = ()
    doubts: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        return bool(self.path) and not self.missing and self.files > 0

    @property
    def sound(self) -> bool:
        """All there, and each file of the weights is one: its size is the model's."""
        return self.complete and not any(flaw.defect is Defect.GARBAGE for flaw in self.flaws)
