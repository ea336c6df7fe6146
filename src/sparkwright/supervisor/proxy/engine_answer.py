"""An engine's answer, parsed by h11: its status and headers, then its body without framing.

h11 and not httptools, which is faster: this process runs from a bundle that may hold nothing compiled.
"""

from dataclasses import dataclass, field
from functools import lru_cache

import h11

HEAD_LIMIT = 128 * 1024
# Between two neighbours only: our own side of the answer has framing of its own
_HOP_BY_HOP = frozenset({b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding"})
_HOST, _UPGRADE = ("host", "engine"), (("connection", "upgrade"), ("upgrade", "any"))
_SWITCHED = 101


@lru_cache(32)
def _asked(method: str, upgrade: bool) -> h11.Request:
    """The request as far as h11 needs it to read an answer: its method, and whether 101 may answer it."""
    return h11.Request(method=method, target="/", headers=[_HOST, *(_UPGRADE if upgrade else ())])


class MalformedAnswer(ConnectionError):
    """The engine sends something that is no HTTP, or a head without end."""


@dataclass(slots=True)
class EngineAnswer:
    """Feed what the engine sends; read status, headers (names in small letters) and the pieces of the body.

    method: of the request: an answer to HEAD has no body. upgrade: it asked for another protocol. complete: its end has
    come. switched: it became another protocol; what follows is passed on unread.
    """

    method: str
    upgrade: bool = False
    status: int = 0
    reason: bytes = b""
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    complete: bool = False
    switched: bool = False
    _http: h11.Connection | None = field(init=False, repr=False, default=None)
    _overhead: int = 0

    def expect(self) -> h11.Connection:
        """Make ready for its first bytes: while an engine thinks there is time."""
        if self._http:
            return self._http
        http = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_LIMIT)
        http.send(_asked(self.method, self.upgrade))
        http.send(h11.EndOfMessage())
        self._http = http
        return http

    def feed(self, data: bytes) -> bytes:
        """Return what of the body is in `data`; b'' at the engine's end is the end of an answer without a length.

        Raises MalformedAnswer, also for more than 128 KiB in a row that are no body, and for an end too early.
        """
        if self.switched:
            return data
        if self.complete:  # what follows the end is of no interest
            return b""
        self._overhead += len(data)
        http = self._http or self.expect()
        try:
            http.receive_data(data)
            body = self._body(http)
        except h11.RemoteProtocolError as error:
            if not data:
                raise MalformedAnswer("the engine closed the connection before the end of its answer") from error
            raise MalformedAnswer(f"the engine's answer is no HTTP: {error}") from error
        if not data and not self.complete:
            raise MalformedAnswer("the engine closed the connection before the end of its answer")
        if self._overhead > HEAD_LIMIT and not self.complete:
            raise MalformedAnswer(f"the engine sent {HEAD_LIMIT >> 10} KiB of headers and framing in a row")
        return body

    def _body(self, http: h11.Connection) -> bytes:
        pieces: list[bytes] = []
        while not self.complete and not self.switched:
            event = http.next_event()
            if type(event) is h11.Data:
                self._overhead = 0
                pieces.append(event.data)
                # Its own end, and nothing after it. Asked once: the rest is copied each time
                if len(pieces) == 1 and event.chunk_end and http.trailing_data[0] == b"\r\n":
                    break
            elif event is h11.NEED_DATA:
                break
            elif isinstance(event, h11.Response):
                self._begin(event)
            elif isinstance(event, h11.InformationalResponse) and event.status_code == _SWITCHED:
                self._begin(event)
                self.switched = True
                pieces.append(http.trailing_data[0])
            elif isinstance(event, h11.EndOfMessage):
                self.complete = True
            elif not isinstance(event, h11.InformationalResponse):  # it is closed
                break
        return b"".join(pieces)

    def _begin(self, event: h11.Response | h11.InformationalResponse) -> None:
        self.status, self.reason, self.headers = event.status_code, bytes(event.reason), list(event.headers)
        if {b"content-length", b"transfer-encoding"} <= {name for name, _ in self.headers}:
            raise MalformedAnswer("the engine's answer has two lengths")

    @property
    def passed_headers(self) -> list[tuple[bytes, bytes]]:
        """Headers that belong to the answer itself and not to the connection."""
        dropped = _HOP_BY_HOP if self.status != _SWITCHED else frozenset({b"transfer-encoding"})
        return [one for one in self.headers if one[0] not in dropped]

    def header(self, name: bytes) -> bytes:
        """The first of that name (small letters), b'' for none."""
        return next((value for known, value in self.headers if known == name), b"")
