"""Server-sent events out of a byte stream, however the network cut it."""

import re

from sparkwright.adapters.completion import Broken

_END_OF_LINE = re.compile(rb"\r\n|\n|\r")
LARGEST = 16 << 20  # bytes of one event: far more than an answer in one piece


class SseReader:
    """Feed bytes, get the `data` of complete events. One read may hold many events or a part of one."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []  # of the line that has no end yet
        self._held = b""
        self._data: list[str] = []
        self._size = 0  # bytes since the last event

    def feed(self, chunk: bytes) -> list[str]:
        """The data of every event that this chunk completes. Comments, names, ids and empty events give nothing.

        What came before is not searched again. Raises Broken for an event of more than LARGEST bytes.
        """
        text, events, at = self._held + chunk, [], 0
        self._held = b"\r" if text.endswith(b"\r") else b""
        end = len(text) - len(self._held)
        for found in _END_OF_LINE.finditer(text, 0, end):
            line, at = b"".join((*self._parts, text[at : found.start()])), found.end()
            self._parts.clear()
            if line:
                self._field(line)
            else:
                events += ["\n".join(self._data)] if self._data else []
                self._data.clear()
                self._size = -at
        self._parts.append(text[at:end])
        self._size += end
        if self._size > LARGEST:
            raise Broken(f"an event of more than {LARGEST >> 20} MiB")
        return events

    @property
    def pending(self) -> bool:
        """Whether the stream ended inside an event."""
        return bool(b"".join(self._parts).strip() or self._data)

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" ").decode("utf-8", "replace"))
