"""The reads of a stream as bytes: microseconds between them and tokens in each, about five bytes a read.

Little-endian: flags (1: exact, 2: gaps of 8 bytes, 4: tokens of 4 bytes, 8: one token each), count as uint32, the
gaps, and the tokens unless there is one in each.
"""

import struct
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, pairwise

from sparkwright.domain.run import Reads

_EXACT, _WIDE, _MANY, _ONES = 1, 2, 4, 8
_HEAD = struct.Struct("<BI")
_MICRO = 1e6
_GAP, _TOKENS = 2**32, 2**16


def pack(reads: Reads) -> bytes | None:
    """None of no reads at all."""
    if reads == Reads():
        return None
    places = [round(at * _MICRO) for at in reads.at]
    gaps = [max(0, after - before) for before, after in pairwise((0, *places))]
    wide, many = any(gap >= _GAP for gap in gaps), any(count >= _TOKENS for count in reads.tokens)
    ones = all(count == 1 for count in reads.tokens)
    flags = reads.exact * _EXACT | wide * _WIDE | many * _MANY | ones * _ONES
    tokens = b"" if ones else _packed(reads.tokens, "I" if many else "H")
    return _HEAD.pack(flags, len(gaps)) + _packed(gaps, "Q" if wide else "I") + tokens


def _packed(numbers: Sequence[int], kind: str) -> bytes:
    return struct.pack(f"<{len(numbers)}{kind}", *numbers)


def unpack(blob: bytes | None) -> Reads:
    """Raises struct.error where the bytes are not what `pack` made."""
    if blob is None:
        return Reads()
    flags, count = _HEAD.unpack_from(blob)
    gaps = struct.Struct(f"<{count}{'Q' if flags & _WIDE else 'I'}")
    at = [place / _MICRO for place in accumulate(gaps.unpack_from(blob, _HEAD.size))]
    if flags & _ONES:
        return Reads(at, _ones(count), bool(flags & _EXACT))
    tokens = struct.unpack_from(f"<{count}{'I' if flags & _MANY else 'H'}", blob, _HEAD.size + gaps.size)
    return Reads(at, tokens, bool(flags & _EXACT))


@lru_cache(256)
def _ones(count: int) -> tuple[int, ...]:
    return (1,) * count
