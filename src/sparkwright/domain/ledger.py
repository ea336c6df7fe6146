"""One node's memory pool, line by line."""

from dataclasses import dataclass
from enum import StrEnum


class Origin(StrEnum):
    """Where a line comes from."""

    MEASURED = "measured"
    COMPUTED = "computed"
    CALIBRATED = "calibrated"
    ASSUMED = "assumed"


# Names of lines that more than one reader looks for.
IN_USE = "in use now"
WEIGHTS = "weights"
OVERHEAD = "engine overhead"
KV_POOL = "KV pool"


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """bytes: what is taken (or, for the pool, what there is). why: the arithmetic or the source in one sentence.

    known: False when nothing tells how much it is; bytes is 0 then, which is no figure.
    """

    name: str
    bytes: int
    origin: Origin
    why: str = ""
    known: bool = True


@dataclass(frozen=True, slots=True)
class MemoryLedger:
    """pool: the node's MemTotal. lines: what takes from it. left = pool - sum(lines); below 0 it does not fit.

    claim: bytes of the pool that the engine wants to find free at start (its memory fraction); 0: it has no such check.
    """

    node: str
    pool: LedgerLine
    lines: tuple[LedgerLine, ...]
    kv_tokens: int | None = None
    claim: int = 0

    def line(self, name: str) -> LedgerLine | None:
        """The first line of that name."""
        return next((line for line in self.lines if line.name == name), None)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names of the lines of which nobody knows how much they take: `fits` is said without them."""
        return tuple(line.name for line in self.lines if not line.known)

    @property
    def left(self) -> int:
        return self.pool.bytes - sum(line.bytes for line in self.lines)

    @property
    def fits(self) -> bool:
        return self.left >= 0
