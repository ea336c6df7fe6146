"""The state of a model's files on a node and on the hub, and what is wrong with them."""

from enum import StrEnum

from sparkwright.domain.model import ModelShape
from sparkwright.domain.unknown import Unknown
from sparkwright.domain.values import dataclass


class Defect(StrEnum):
    """absent, empty, broken_link, unfinished, short, pointer, ref: files are missing, an engine cannot load the model.

    The others are about odd files that are all there.
    """

    ABSENT = "absent"
    EMPTY = "empty"
    BROKEN_LINK = "broken link"
    UNFINISHED = "unfinished"
    SHORT = "cut short"
    POINTER = "pointer"
    REF = "refs/main"
    GARBAGE = "no weights"
    PROJECTOR = "no language model"
    NO_INDEX = "no index"
    MANY_INDEXES = "several indexes"
    SUM = "sums differ"
    CONFIG = "config.json"


MISSING = frozenset(
    {
        Defect.ABSENT,
        Defect.EMPTY,
        Defect.BROKEN_LINK,
        Defect.UNFINISHED,
        Defect.SHORT,
        Defect.POINTER,
        Defect.REF,
    }
)


_WEIGHTS = (".safetensors", ".gguf", ".bin")
_DAMAGES = (Defect.SHORT, Defect.POINTER, Defect.GARBAGE, Defect.PROJECTOR)


@dataclass(frozen=True, slots=True)
class Flaw:
    """file: below the model's folder, '' for the folder itself."""

    defect: Defect
    file: str = ""
    said: str = ""  # what was found, and what was expected

    def __str__(self) -> str:
        return f"{self.file} ({self.said})" if self.file else self.said


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
    config: the text of its config.json; shape: from it, or from a GGUF file's header; None without. tensors: from
    the files' own headers, () when they were not read. flaws: what is wrong with it, also what no file misses.
    doubts: what of its config is not understood here; figures about it are a bound then.
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
        return self.complete and not self.damaged

    @property
    def damaged(self) -> bool:
        """True if a file holds no weights or is incomplete: its sizes then show nothing."""
        return any(flaw.defect in _DAMAGES for flaw in self.flaws)

    @property
    def partial(self) -> bool:
        """True if a file of the weights is missing: what is there is then a part of the model's size."""
        return any(text.split(" ")[0].endswith(_WEIGHTS) for text in self.missing)


@dataclass(frozen=True, slots=True)
class Published:
    """config: the text of its config.json, '' without one. weights: bytes of what engines load, 0 when unknown."""

    model: str
    revision: str
    config: str = ""
    weights: int = 0


@dataclass(frozen=True, slots=True)
class Stored:
    """A checkpoint on a node. id: its hub id, '' for a folder or file outside of the hub cache.

    place: a path; of a hub entry a GGUF file below the snapshot, '' for the whole. format: of its weights, as text.
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


class Usability(StrEnum):
    """YES: as the recipe is. COULD: with another model.id, model.path or revision. NO: only seems so."""

    YES = "yes"
    COULD = "could"
    NO = "no"


@dataclass(frozen=True, slots=True)
class Use:
    """The way a recipe uses a checkpoint. change: what to write in the recipe. why: the reason and its cost, as
    text."""

    recipe: str
    how: Usability
    change: tuple[tuple[str, str], ...] = ()
    why: str = ""
