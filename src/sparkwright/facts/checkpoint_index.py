"""The index files of a checkpoint in several shards: what they name, and whether it adds up."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sparkwright.domain.checkpoint import TensorGroup
from sparkwright.domain.flaw import Defect, Flaw
from sparkwright.domain.units import gib
from sparkwright.facts.fact import whole

INDEX = "model.safetensors.index.json"
# Between an index and its shards: writers count a tied or a scale tensor once or twice.
_TOLERANCE = 0.005
Rows = Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Index:
    """name: of the file. total: bytes of all tensors as it says, entries: how many it names; 0: not said."""

    name: str
    shards: tuple[str, ...]
    total: int = 0
    entries: int = 0


def indexes(rows: Rows) -> Iterator[Index]:
    """In the order of the listing, where the shards of an index stand before it."""
    shards: list[str] = []
    for row in rows:
        if row[0] == "shard" and len(row) == 2:
            shards.append(_text(row[1]))
        elif row[0] == "index" and len(row) == 4:
            yield Index(row[1], tuple(filter(None, shards)), max(whole(row[2]) or 0, 0), max(whole(row[3]) or 0, 0))
            shards = []
    if shards:
        yield Index("", tuple(filter(None, shards)))


def _text(quoted: str) -> str:
    """'' for what is no JSON text."""
    try:
        found = json.loads(quoted)
    except ValueError:
        return ""
    return found if isinstance(found, str) else ""


def main_index(found: Sequence[Index]) -> Index | None:
    """The one that engines go by: of safetensors rather than of another format, and the usual name first."""
    order = (
        lambda index: index.name == INDEX,
        lambda index: any(name.endswith(".safetensors") for name in index.shards),
        lambda index: True,
    )
    return next((index for wanted in order for index in found if wanted(index)), None)


def sums(index: Index, groups: Sequence[TensorGroup]) -> Iterator[Flaw]:
    """An index and shards that are not of one release: tensors would be missing, or be those of another model."""
    there, count = sum(group.bytes for group in groups), sum(group.count for group in groups)
    if there and index.entries > count:
        yield Flaw(Defect.SUM, index.name, f"names {index.entries} tensors, the shards hold {count}")
    elif there and index.total and abs(index.total - there) > _TOLERANCE * there:
        yield Flaw(Defect.SUM, index.name, f"total_size {gib(index.total)}, the shards hold {gib(there)}")
