"""One request and what came back: reads with their times first, parsed when there is time for it."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import httptools
import orjson

from sparkwright.loadgen.stream import TokenStream, message

END = b"0\r\n\r\n"  # of a chunked body; a hint only: text may end so, too
BATCH = 16  # unparsed reads after which it is worth the while to parse some
_SHOWN = 300
_UNFINISHED = ("abort", "error")  # how vLLM and SGLang end what they give up, on their way down or out of memory


class Exchange:
    """Reads go into `times` and `parts` as they come; `frame` takes HTTP off them, `digest` looks into the events.

    intended, sent (when its last byte was given to the kernel), last (read): by the process's clock.
    mark: with so many unparsed reads it is looked into. again: it was sent a second time, on a fresh connection.
    """

    __slots__ = (
        *("_around", "_between", "_bodies", "_heads", "_keep", "_now", "_parser", "_tail", "again", "bytes"),
        *("complete", "failed", "head_at", "headers", "intended", "last", "mark", "owner", "parts", "request", "sent"),
        *("status", "stream", "times"),
    )

    def __init__(self, owner: Callable[["Exchange"], None], request: bytes, intended: float, keep: bool) -> None:
        self.owner, self.request, self.intended, self._keep = owner, request, intended, keep
        self.sent = self.last = self.head_at = self._now = 0.0
        self.times: list[float] = []
        self.parts: list[bytes] = []
        self.status, self.bytes, self.mark, self.again, self.complete = 0, 0, 1, False, False
        self.headers: dict[bytes, bytes] = {}
        self.failed = ("", "")
        self.stream: TokenStream | None = None
        self._bodies: list[tuple[float, bytes]] = []
        # Between two HTTP chunks; what a chunk like the one before begins (by its size) and ends with.
        self._between, self._around, self._tail = False, (b"", b""), b""
        self._heads: dict[int, bytes] = {}
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)

    def frame(self) -> None:
        """Takes HTTP off what was read. `complete` when the whole answer is there."""
        if not self.times or not self._parser:
            return
        self.head_at, self.last = self.head_at or self.times[0], self.times[-1]
        feed = self._parser.feed_data
        try:
            for at, part in zip(self.times, self.parts, strict=True):
                self.bytes += len(part)
                if self._between and self._same(at, part):
                    continue
                self._now, self._between = at, False
                feed(part)
                self._between = self._between and part.endswith(b"\r\n")
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.fail("bad-http", f"no HTTP/1.1 answer ({type(error).__name__}: {error}): {self.parts[0][:80]!r}")
        self.times.clear()
        self.parts.clear()
        if b"transfer-encoding" in self.headers:
            self.mark = BATCH

    def _same(self, at: float, part: bytes) -> bool:
        """Takes the bytes if they are one HTTP chunk like the one before but for its text; True if so."""
        stream, size = self.stream, len(part)
        if stream is None or self._bodies or not stream.around[0]:
            return False
        if stream.around is not self._around:
            self._around, self._tail = stream.around, stream.around[1] + b"\r\n"
            self._heads.clear()
        head = self._heads.get(size)
        if head is None:
            head = self._heads[size] = _chunk_head(size) + self._around[0]
        if not (part.startswith(head) and part.endswith(self._tail)):
            return False
        return stream.same(at, part[len(head) : -len(self._tail)])

    def digest(self) -> None:
        """Looks into the events that came with 200; everything else waits for the end."""
        if self._bodies and self.streams:
            if self.stream is None:
                self.stream = TokenStream(self._keep)
            self.stream.feed_all(self._bodies)
            self._bodies.clear()

    def fail(self, kind: str, error: str) -> None:
        """The first trouble counts."""
        if not self.failed[0]:
            self.failed = (kind, error)
            self.complete = True

    def end(self) -> None:
        """All is there, or will not come. Lets go of the parser, which holds this object: nobody collects circles."""
        self.frame()
        self._parser = None
        self.digest()
        if self.stream:
            self.stream.close(self.last)

    @property
    def started(self) -> bool:
        return bool(self.times or self.head_at)

    @property
    def heard(self) -> float:
        """The time of the last bytes, or of sending."""
        return self.times[-1] if self.times else self.last or self.sent

    @property
    def streams(self) -> bool:
        return self.status == 200 and self.headers.get(b"content-type", b"").startswith(b"text/event-stream")

    @property
    def whole_body(self) -> bytes:
        return b"".join(body for _, body in self._bodies)

    @property
    def until_closed(self) -> bool:
        """The end of the connection is the end of the body: it has neither length nor chunks."""
        return bool(self.status) and not self.headers.keys() & {b"content-length", b"transfer-encoding"}

    def keeps_alive(self) -> bool:
        return b"close" not in self.headers.get(b"connection", b"").lower() and not self.failed[0]

    # What httptools calls.
    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        if self._parser:
            self.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        self._bodies.append((self._now, body))

    def on_chunk_header(self) -> None:
        self._between = False

    def on_chunk_complete(self) -> None:
        self._between = True

    def on_message_complete(self) -> None:
        if self.status >= 200:
            self.complete = True


def _chunk_head(size: int) -> bytes:
    """The line before an HTTP chunk that is so long with its line and its end; nothing is that long: a \\0."""
    for digits in range(1, 6):
        body = size - digits - 4
        if body > 0 and len(b"%x" % body) == digits:
            return b"%x\r\n" % body
    return b"\0"


def outcome(exchange: Exchange, zero: float) -> dict[str, Any]:
    """The exchange's values for Row.from_wire."""
    kind, error, retry = _trouble(exchange)
    stream, sent = exchange.stream, exchange.sent
    times, counts, exact = stream.tokens() if stream else ([], [], True)
    first = stream.at[0] if stream and stream.at else None
    simulated = exchange.headers.get(b"x-sparkwright-simulated", b"").lower()
    return {
        "intended": exchange.intended - zero,
        "sent": (sent or perf_counter()) - zero,
        "headers": _since(exchange.head_at or None, sent),
        "first": _since(first, sent),
        "first_content": _since(stream.first_content if stream else None, sent),
        "end": _since(exchange.last or None, sent),
        "status": exchange.status,
        "reads": ([at - sent for at in times], counts, exact),
        "chunks": stream.events if stream else 0,
        "bytes": exchange.bytes,
        **_usage((stream.usage if stream else None) or {}),
        "finish": stream.finish if stream else "",
        "kind": kind,
        "error": error,
        "retry_after": retry,
        "simulated": simulated not in (b"", b"0", b"false", b"no"),
    }


def _since(at: float | None, sent: float) -> float | None:
    return None if at is None else at - sent


def _usage(usage: dict[str, Any]) -> dict[str, int | None]:
    prompt, output = usage.get("prompt_tokens_details") or {}, usage.get("completion_tokens_details") or {}
    reasoning = output.get("reasoning_tokens", usage.get("reasoning_tokens"))
    return {
        "prompt_tokens": usage.get("prompt_tokens"),
        "output_tokens": usage.get("completion_tokens"),
        "cached_tokens": prompt.get("cached_tokens"),
        "reasoning_tokens": reasoning,
    }


def _trouble(exchange: Exchange) -> tuple[str, str, float | None]:
    """kind, error, seconds to wait before the next try. A row without `usage` has a kind and no error."""
    if exchange.failed[0]:
        return (*exchange.failed, None)
    if exchange.status != 200:
        retry = _seconds(exchange.headers.get(b"retry-after"))
        return f"http-{exchange.status}", _told(exchange), retry
    if exchange.stream is None:
        kind = exchange.headers.get(b"content-type", b"").decode("latin-1") or "no content type"
        return "no-stream", f"the answer is no event stream but {kind}: {_told(exchange)}", None
    return (*_stream_trouble(exchange.stream), None)


def _stream_trouble(stream: TokenStream) -> tuple[str, str]:
    if stream.error:
        return "error-in-stream", stream.error
    if stream.finish in _UNFINISHED:
        return "aborted", f"the server ended the answer early: finish_reason {stream.finish}"
    if not (stream.stopped or stream.finish):
        return "cut", "the stream ended before its last chunk"
    if not stream.at or (stream.usage and not stream.usage.get("completion_tokens")):
        return "no-tokens", "the answer ended without a token"
    return ("" if stream.usage else "no-usage"), ""


def _told(exchange: Exchange) -> str:
    """A body that is no stream, in short."""
    body = exchange.whole_body
    try:
        told = orjson.loads(body)
    except orjson.JSONDecodeError:
        told = body.decode("utf-8", "replace").strip()[:_SHOWN]
    said = message(told) if isinstance(told, dict) else str(told)[:_SHOWN]
    where = exchange.headers.get(b"location", b"").decode("latin-1")
    return (said or "(empty body)") + (f" -> {where}" if where else "")


def _seconds(value: bytes | None) -> float | None:
    """Retry-After: seconds, or a date (RFC 9110, 10.2.3), of which only the first can be used without a clock."""
    try:
        return max(0.0, float(value)) if value else None
    except ValueError:
        return None
