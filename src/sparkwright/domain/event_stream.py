"""Server-sent events: bytes of a stream in, whole events out, cut anywhere and with any of the three line ends."""

_EVENT_END = b"\n\n"
MOST_EVENT_BYTES = 16 << 20  # far more than an answer in one piece
TOO_LARGE = f"an event of more than {MOST_EVENT_BYTES >> 20} MiB"


class EventReader:
    r"""Feed it the reads in order, get the events that each one completes, their lines divided by \n.

    parts: of the event that has no end yet. held: a \r whose \n may come with the next read. too_large: the event
    that has no end yet is over MOST_EVENT_BYTES, and was dropped.
    """

    __slots__ = ("_size", "held", "parts", "too_large")

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.held = b""
        self.too_large = False
        self._size = 0

    def feed(self, body: bytes) -> list[bytes]:
        """The events that these bytes complete. What came before is not searched again."""
        if self.held or b"\r" in body:
            body, self.held = _plain_lines(self.held + body)
        events: list[bytes] = []
        cut = body.startswith(b"\n") and self.parts and self.parts[-1].endswith(b"\n")
        if cut or _EVENT_END in body:
            whole, _, body = b"".join((*self.parts, body)).rpartition(_EVENT_END)
            events = whole.split(_EVENT_END)
            self.parts, self._size, self.too_large = [], 0, False
        if body:
            self.parts.append(body)
            self._size += len(body)
        if self._size > MOST_EVENT_BYTES:
            self.parts.clear()
            self.too_large = True
        return events

    def close(self) -> bytes:
        """The event that the end of the stream left without its empty line."""
        rest = b"".join(self.parts).strip(b"\n")
        self.parts.clear()
        return rest


def data_of(event: bytes) -> bytes | None:
    """The data of an event: its lines joined. None if it has only comments, names or ids."""
    fields = (line.partition(b":") for line in event.split(b"\n"))
    lines = [value.removeprefix(b" ") for name, _, value in fields if name == b"data"]
    return b"\n".join(lines) if lines else None


def _plain_lines(body: bytes) -> tuple[bytes, bytes]:
    r"""Lines that end with \n, and a \r at the end that waits for the next read, which may have its \n."""
    held = b"\r" if body.endswith(b"\r") else b""
    return body[: len(body) - len(held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n"), held
