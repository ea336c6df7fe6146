"""Server-sent events out of a byte stream, however the network cut it."""

import re

_END_OF_LINE = re.compile(rb"\r\n|\n|\r(?!\n|\Z)")


class SseReader:
    """Feed bytes, get the `data` of complete events. One read may hold many events or a part of one."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[str]:
        """The data of every event that this chunk completes. Comments, names, ids and empty events give nothing."""
        events, at, text = [], 0, self._rest + chunk
        for found in _END_OF_LINE.finditer(text):
            line, at = text[at : found.start()], found.end()
            if line:
                self._field(line)
            elif self._data:
                events.append("\n".join(self._data))
                self._data.clear()
        self._rest = text[at:]
        return events

    @property
    def pending(self) -> bool:
        """Whether the stream ended inside an event."""
        return bool(self._rest.strip() or self._data)

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" ").decode("utf-8", "replace"))
