"""The headers of safetensors files: bytes by kind of tensor, and whether each file is as long as it promises.

The node reads the headers and adds them up (remote/staging.sh); a file is 8 bytes of length, JSON, then the numbers.
What it prints comes here as rows of words:

    tensor NAME TYPE BYTES COUNT    tensors of one kind, over all files
    head FILE PROMISED TENSORS      a file that an engine loads, and the size that its header promises (-1: no header)
    shard "FILE"                    a file that the index below names
    index FILE TOTAL ENTRIES        an index with its own sum of bytes, and how many tensors it names
"""

from collections.abc import Iterator, Mapping, Sequence

from sparkwright.domain.checkpoint import Defect, Flaw, TensorGroup
from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.units import gib
from sparkwright.domain.values import dataclass
from sparkwright.facts.fact import whole_number

Rows = Sequence[Sequence[str]]
# Git LFS leaves these 130 bytes in place of a file that was not fetched: `git clone` without `git lfs install`.
_POINTER = range(100, 200)
INDEX = "model.safetensors.index.json"
# Between an index and its shards: writers count a tied or a scale tensor once or twice.
_TOLERANCE = 0.005


def groups(rows: Rows) -> tuple[TensorGroup, ...]:
    """Groups by name and type, sorted; rows of another kind are left out."""
    found = (_group(row) for row in rows if row[0] == "tensor" and len(row) == 5)
    return tuple(sorted(filter(None, found), key=lambda group: (group.name, group.dtype)))


def _group(row: Sequence[str]) -> TensorGroup | None:
    size, count = whole_number(row[3]), whole_number(row[4])
    return TensorGroup(row[1], row[2], size, count) if size and count and size > 0 < count else None


def tensors(rows: Rows) -> int:
    """The number of tensors that the headers describe."""
    return sum(group.count for group in groups(rows))


def loaded(rows: Rows) -> tuple[str, ...]:
    """The files whose headers were read: those that an engine loads."""
    return tuple(row[1] for row in rows if row[0] == "head" and len(row) == 4)


def file_flaws(rows: Rows, files: Mapping[str, int]) -> Iterator[Flaw]:
    """Flaws of the files that exist and are not empty."""
    for row in rows:
        size = files.get(row[1], 0) if row[0] == "head" and len(row) == 4 else 0
        promised = whole_number(row[2]) if size else None
        if promised is None or promised == size:
            continue
        if promised < 0:
            yield _no_header(row[1], size)
        elif size < promised:
            said = f"cut short: {gib(size)} of the {gib(promised)} that its header promises"
            yield Flaw(Defect.SHORT, row[1], said)
        else:
            yield Flaw(Defect.GARBAGE, row[1], f"{size - promised} bytes longer than in its header")


def _no_header(name: str, size: int) -> Flaw:
    if size in _POINTER:
        return Flaw(Defect.POINTER, name, f"{size} bytes: a Git LFS pointer in place of the file")
    return Flaw(Defect.GARBAGE, name, "does not begin with a safetensors header")


@dataclass(frozen=True, slots=True)
class ShardIndex:
    """name: of the file. total: bytes of all tensors by its own figure, entries: how many it names; 0: unknown."""

    name: str
    shards: tuple[str, ...]
    total: int = 0
    entries: int = 0


def indexes(rows: Rows) -> Iterator[ShardIndex]:
    """The indexes in the order of the listing, in which the shards precede their index."""
    shards: list[str] = []
    for row in rows:
        if row[0] == "shard" and len(row) == 2:
            shards.append(_text(row[1]))
        elif row[0] == "index" and len(row) == 4:
            yield ShardIndex(
                row[1],
                tuple(filter(None, shards)),
                max(whole_number(row[2]) or 0, 0),
                max(whole_number(row[3]) or 0, 0),
            )
            shards = []
    if shards:
        yield ShardIndex("", tuple(filter(None, shards)))


def _text(quoted: str) -> str:
    """The quoted text; '' if it is no JSON text."""
    try:
        found = read_json(quoted)
    except ValueError:
        return ""
    return found if isinstance(found, str) else ""


def main_index(found: Sequence[ShardIndex]) -> ShardIndex | None:
    """The one that engines go by: of safetensors rather than of another format, and the usual name first."""
    order = (
        lambda index: index.name == INDEX,
        lambda index: any(name.endswith(".safetensors") for name in index.shards),
        lambda index: True,
    )
    return next((index for wanted in order for index in found if wanted(index)), None)


def index_flaws(index: ShardIndex, groups: Sequence[TensorGroup]) -> Iterator[Flaw]:
    """An index and shards that are not of one release: tensors would be missing, or be those of another model."""
    there, count = sum(group.bytes for group in groups), sum(group.count for group in groups)
    if there and index.entries > count:
        yield Flaw(Defect.SUM, index.name, f"names {index.entries} tensors, the shards hold {count}")
    elif there and index.total and abs(index.total - there) > _TOLERANCE * there:
        yield Flaw(Defect.SUM, index.name, f"total_size {gib(index.total)}, the shards hold {gib(there)}")
