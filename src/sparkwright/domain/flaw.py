"""What can be wrong with a model's files. Each has a remedy of its own, so each has a rule."""

from dataclasses import dataclass
from enum import StrEnum


class Defect(StrEnum):
    """absent, empty, broken_link, unfinished, short, pointer, ref: files are missing, an engine cannot load the model.

    The others say what is odd about files that are all there.
    """

    ABSENT = "absent"
    EMPTY = "empty"
    BROKEN_LINK = "broken link"
    UNFINISHED = "unfinished"
    SHORT = "cut short"
    POINTER = "pointer"
    REF = "refs/main"
    GARBAGE = "no weights"
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


@dataclass(frozen=True, slots=True)
class Flaw:
    """file: below the model's folder, '' for the folder itself. said: what was found, against what was wanted."""

    defect: Defect
    file: str = ""
    said: str = ""

    def __str__(self) -> str:
        return f"{self.file} ({self.said})" if self.file else self.said
