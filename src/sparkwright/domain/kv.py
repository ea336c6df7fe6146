"""What a model keeps for each token and each sequence, and how many tokens a pool of such pages holds."""

from dataclasses import dataclass
from enum import StrEnum


class CacheKind(StrEnum):
    """full: a row a token. window: the last tokens only. mla: one latent row a token, whole on every rank of tp.

    index: the lightning indexer's row. compressed: one row for `ratio` tokens. state: a fixed block a sequence.
    """

    FULL = "full"
    WINDOW = "window"
    MLA = "mla"
    INDEX = "index"
    COMPRESSED = "compressed"
    STATE = "state"


@dataclass(frozen=True, slots=True)
class CacheLayers:
    """Layers of one rank that keep the same. row: bytes an entry and layer on this rank; ratio: tokens an entry.

    window: tokens, 0 for the whole context. state: bytes a sequence and layer (kind state). why: the arithmetic.
    block: tokens a page where the engine's code fixes them, 0: the engine's block size.
    """

    kind: CacheKind
    layers: int
    row: float = 0.0
    ratio: int = 1
    window: int = 0
    state: int = 0
    why: str = ""
    block: int = 0


@dataclass(frozen=True, slots=True)
class KvCapacity:
    """What a pool of `bytes` on one rank holds.

    reported: tokens as the engine's own line prints them. tokens: what really fits, in sequences of full length.
    sequences: how many of full length fit at once. block: tokens a page. per_sequence: bytes that one takes.
    unknown: why nothing could be counted, '' when it could. why: the arithmetic, line by line. low, high: `tokens` as
    the releases around the engine's version would hold them, where it is none whose code was read and they differ.
    """

    bytes: int
    reported: int = 0
    tokens: int = 0
    sequences: float = 0.0
    block: int = 0
    per_sequence: int = 0
    unknown: str = ""
    why: tuple[str, ...] = ()
    low: int | None = None
    high: int | None = None
