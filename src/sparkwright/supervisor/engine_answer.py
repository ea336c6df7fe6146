"""An engine's answer, parsed by httptools: its status and headers, then its body without framing."""

from dataclasses import dataclass, field

import httptools

HEAD_LIMIT = 128 * 1024
# Between two neighbours only: our own side of the answer has framing of its own
_HOP_BY_HOP = frozenset({b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding"})
_NO_BODY = (204, 304)


class MalformedAnswer(ConnectionError):
    """The engine sends something that is no HTTP, or a head without end."""


@dataclass(slots=True)
class EngineAnswer:
    """Feed what the engine sends; read status, headers (names in small letters) and the pieces of the body.

    method: of the request: an answer to HEAD has no body. complete: its end has come. switched: it became another
    protocol; what follows is passed on unread.
    """

    method: str
    status: int = 0
    reason: bytes = b""
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    complete: bool = False
    switched: bool = False
    _parser: httptools.HttpResponseParser = field(init=False, repr=False)
    _pieces: list[bytes] = field(default_factory=list, repr=False)
    _overhead: int = 0
    _framed: bool = False

    def __post_init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)

    def feed(self, data: bytes) -> bytes:
        """Return what of the body is in `data`; b'' at the engine's end is the end of an answer without a length.

        Raises MalformedAnswer, also for more than 128 KiB in a row that are no body, and for an end too early.
        """
        if self.switched:
            return data
        if not data:
            if not self.status or self._framed:
                raise MalformedAnswer("the engine closed the connection before the end of its answer")
            self.complete = True
            return b""
        self._overhead += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self.switched = self.status == 101
            return data[upgrade.args[0] :] if self.switched else self._taken()
        except httptools.HttpParserError as error:
            if not self.complete:  # what follows the end is of no interest
                raise MalformedAnswer(f"the engine's answer is no HTTP: {error}") from error
        if self._overhead > HEAD_LIMIT and not self.complete:
            raise MalformedAnswer(f"the engine sent {HEAD_LIMIT >> 10} KiB of headers and framing in a row")
        return self._taken()

    def _taken(self) -> bytes:
        body = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        return body

    # Called by httptools

    def on_status(self, reason: bytes) -> None:
        if not self.status:
            self.reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.status:
            self.headers.append((name.lower(), value.strip(b" \t")))

    def on_headers_complete(self) -> None:
        if self.status:
            return
        status = self._parser.get_status_code()
        if 100 <= status < 200 and status != 101:
            self.headers.clear()
            self.reason = b""
            return
        self.status = status
        lengths = [value for name, value in self.headers if name in (b"content-length", b"transfer-encoding")]
        self._framed = bool(lengths)
        self.complete = self.method == "HEAD" or status in _NO_BODY

    def on_body(self, data: bytes) -> None:
        if not self.complete:
            self._overhead = 0
            self._pieces.append(data)

    def on_message_complete(self) -> None:
        self.complete = self.complete or bool(self.status)

    @property
    def passed_headers(self) -> list[tuple[bytes, bytes]]:
        """Headers that belong to the answer itself and not to the connection."""
        dropped = _HOP_BY_HOP if self.status != 101 else frozenset({b"transfer-encoding"})
        return [one for one in self.headers if one[0] not in dropped]

    def header(self, name: bytes) -> bytes:
        """The first of that name (small letters), b'' for none."""
        return next((value for known, value in self.headers if known == name), b"")
