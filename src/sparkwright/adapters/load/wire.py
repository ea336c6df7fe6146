"""The protocol between the client and its worker processes: frames of marshalled plain values.

marshal, because it is the fastest of the standard library and both sides are the same Python. A frame is the length
in four bytes, then the values. To the worker: the job, then when to begin. From it: `ready`, rows, and the lag.
"""

import marshal
from collections.abc import Iterator, Sequence
from typing import Any

READY, ROW, LAG, FAILED = 0, 1, 2, 3
_HEAD = 4


def pack_frame(value: Any) -> bytes:
    body = marshal.dumps(value)
    return len(body).to_bytes(_HEAD, "little") + body


class FrameReader:
    """Feed bytes, get whole values."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[Any]:
        self._rest += data
        at, rest = 0, self._rest
        while len(rest) - at >= _HEAD:
            end = at + _HEAD + int.from_bytes(rest[at : at + _HEAD], "little")
            if len(rest) < end:
                break
            yield marshal.loads(memoryview(rest)[at + _HEAD : end])
            at = end
        del rest[:at]


def read_frame(read: Any) -> Any:
    """The next value of a blocking reader; None at its end."""
    head = read(_HEAD)
    return marshal.loads(read(int.from_bytes(head, "little"))) if len(head) == _HEAD else None


def share_of(items: Sequence[Any], part: int, parts: int) -> Sequence[Any]:
    """One process's share."""
    return items[part::parts]
