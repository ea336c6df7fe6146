"""Server-sent events of an answer, with the time of each network read: which read carried tokens, and how many.

Bytes and times go in, in the order in which they came; nothing here knows a clock, so all of it can be done later.
"""

from typing import Any

import orjson

from sparkwright.domain.event_stream import TOO_LARGE, EventReader, data_of

# What a server may put the text of a token into; reasoning has two names.
_THOUGHTS = ("reasoning", "reasoning_content")
_UNKNOWN = (b"", b"")
_TEXTS = ("content", "text", *_THOUGHTS)
_SHOWN = 300


class TokenStream:
    """Feed it the body, then read what it heard. keep: also collect the text of the answer and its tool calls.

    at, sizes, chunks, counts: one entry for each read that carried tokens: its time, characters of text, chunks with
    tokens, and tokens as far as continuous usage has them. first_content: the first that was no reasoning.
    stopped: the server ended it. finish: why the answer ended.
    around: the bytes before and after the text of the last plain chunk, empty when there was none.
    """

    __slots__ = (
        *("_is_content", "_keep", "_last_known", "_reader", "_several", "around", "at", "calls"),
        *("chunks", "counts", "error", "events", "finish", "finish_at", "first_content", "known", "sizes", "stopped"),
        *("text", "usage"),
    )

    def __init__(self, keep: bool = False) -> None:
        self._keep, self._last_known, self._several = keep, 0, False
        self._reader = EventReader()
        self.around, self._is_content = _UNKNOWN, False
        self.at: list[float] = []
        self.sizes: list[int] = []
        self.chunks: list[int] = []
        self.counts: list[int] = []
        self.text: list[str] = []
        self.calls: dict[tuple[int, int], list[str]] = {}
        self.usage: dict[str, Any] | None = None
        self.events, self.known, self.stopped = 0, True, False
        self.finish, self.error = "", ""
        self.finish_at: float | None = None
        self.first_content: float | None = None

    def feed_all(self, bodies: list[tuple[float, bytes]]) -> None:
        """`feed` for many reads; those that differ from an earlier one by their text alone are not parsed again."""
        for at, body in bodies:
            before, after = self.around
            if not (before and body.startswith(before) and body.endswith(after)) or not self.same(
                at, body[len(before) : -len(after)]
            ):
                self.feed(body, at)

    def feed(self, body: bytes, at: float) -> None:
        """The next bytes of the body and when they were read. An event that is too large is dropped."""
        for event in self._reader.feed(body):
            self._event(event, at)
        if self._reader.too_large:
            self.error = self.error or TOO_LARGE

    def close(self, at: float) -> None:
        """The body has ended: an event without its empty line is taken, too."""
        if rest := self._reader.close():
            self._event(rest, at)

    def same(self, at: float, text: bytes) -> bool:
        """A read of `around` and this text between. False: it has to be fed, as it may hold something else."""
        # Without these a string of JSON ends where it did, and one byte is one character.
        if self._reader.parts or self._reader.held or not text or b'"' in text or b"\\" in text or not text.isascii():
            return False
        self.events += 1
        if at == self.at[-1]:
            self._token(at, len(text), 0)
        else:
            self.at.append(at)
            self.sizes.append(len(text))
            self.chunks.append(1)
            self.counts.append(0)
        if self._is_content:
            if self.first_content is None:
                self.first_content = at
            if self._keep:
                self.text.append(text.decode())
        return True

    def _learn(self, event: bytes, chunk: dict[str, Any]) -> None:
        """Remembers a chunk's bytes around its text, if it holds one text, no usage and no reason for the end."""
        self.around = _UNKNOWN
        (choice,) = chunk["choices"]
        fields = choice.get("delta", choice)
        for name in _TEXTS:
            text = fields.get(name)
            if text and text.isascii() and not choice.get("finish_reason") and not choice.get("index"):
                around = event.split(f'"{text}"'.encode())
                if len(around) == 2 and around[0].rstrip(b" :").endswith(f'"{name}"'.encode()):
                    self.around = b"data: " + around[0] + b'"', b'"' + around[1] + b"\n\n"
                    self._is_content = name not in _THOUGHTS

    def _event(self, event: bytes, at: float) -> None:
        if not event.startswith(b"data: {") or b"\n" in event:
            event = data_of(event) or b""
            if event.strip() == b"[DONE]":
                self.stopped = True
            if not event.startswith(b"{"):
                return
        else:
            event = event[6:]
        self.events += 1
        try:
            chunk = orjson.loads(event)
            self._chunk(chunk, at)
            if not self.known and not self._several and not chunk.get("usage") and len(chunk["choices"]) == 1:
                self._learn(event, chunk)
        except (orjson.JSONDecodeError, AttributeError, TypeError, KeyError, IndexError):
            self.error = self.error or f"no chunk of an answer: {event[:_SHOWN].decode('utf-8', 'replace')}"

    def _chunk(self, chunk: dict[str, Any], at: float) -> None:
        size = -1
        for choice in chunk.get("choices") or ():
            if choice.get("index"):
                self._several = True
            size = max(size, self._choice(choice, at))
            if finish := choice.get("finish_reason"):
                self.finish, self.finish_at = finish, at
        usage = chunk.get("usage")
        if usage and not chunk.get("choices"):
            self.stopped = True  # the total comes last, whether or not [DONE] follows
        tokens = self._new_tokens(usage) if usage else 0
        if size > 0 or (tokens > 0 and size == 0):
            self._token(at, max(size, 0), tokens)
            if not usage:
                self.known = False
        if "error" in chunk:
            self.error = self.error or message(chunk)

    def _choice(self, choice: dict[str, Any], at: float) -> int:
        """Characters of tokens of any kind."""
        delta = choice.get("delta")
        if delta is None:
            content, thought = choice.get("text") or "", 0
        else:
            content = delta.get("content") or ""
            thought = len(delta.get("reasoning_content") or delta.get("reasoning") or "")
            if delta.get("tool_calls"):
                content = content or "."
                self._tool_calls(choice.get("index") or 0, delta["tool_calls"])
        if content:
            if self.first_content is None:
                self.first_content = at
            if self._keep and not choice.get("index") and (delta is None or delta.get("content")):
                self.text.append(content)
        return len(content) + thought

    def _tool_calls(self, choice: int, calls: list[dict[str, Any]]) -> None:
        """Name and arguments come in pieces; kept for the history."""
        for call in calls:
            pieces = self.calls.setdefault((choice, call.get("index") or 0), ["", ""])
            function = call.get("function") or {}
            pieces[0] += function.get("name") or ""
            pieces[1] += function.get("arguments") or ""

    def _new_tokens(self, usage: dict[str, Any]) -> int:
        """Tokens since the last chunk with a count."""
        self.usage = usage
        total = usage.get("completion_tokens") or 0
        new, self._last_known = total - self._last_known, total
        return int(new)

    def _token(self, at: float, size: int, tokens: int) -> None:
        if self.at and self.at[-1] == at:
            self.sizes[-1] += size
            self.chunks[-1] += 1
            self.counts[-1] += tokens
        else:
            self.at.append(at)
            self.sizes.append(size)
            self.chunks.append(1)
            self.counts.append(tokens)

    def answer(self) -> str:
        """The text that joins the history. Where the model only called tools, the calls as text."""
        text = "".join(self.text)
        if text or not self.calls:
            return text
        return orjson.dumps([{"name": name, "arguments": given} for name, given in self.calls.values()]).decode()

    def tokens(self) -> tuple[list[float], list[int], bool]:
        """Times of the reads with tokens, tokens in each, and whether each count is known; () without usage."""
        total = (self.usage or {}).get("completion_tokens")
        if not total or not self.at:
            return [], [], True
        if self.known and not self._several and sum(self.counts) == total and min(self.counts) > 0:
            return self.at, self.counts, True
        at, sizes, chunks = self.at, self.sizes, self.chunks
        if sum(chunks) == total - 1 and self.finish == "stop" and self.finish_at is not None:
            # The token that ends an answer has no text: it came with the reason for the end.
            if at[-1] == self.finish_at:
                chunks = [*chunks[:-1], chunks[-1] + 1]
            else:
                at, sizes, chunks = [*at, self.finish_at], [*sizes, 0], [*chunks, 1]
        if sum(chunks) == total:
            return at, chunks, True
        return (*_shared(at, sizes, chunks, total), False)


def message(body: dict[str, Any]) -> str:
    """The message of an error object, in any of the usual forms."""
    error = body.get("error") or body.get("detail") or body.get("message") or body
    if isinstance(error, dict):
        error = error.get("message") or error
    return (error if isinstance(error, str) else orjson.dumps(error).decode())[:_SHOWN]


def _shared(at: list[float], sizes: list[int], chunks: list[int], total: int) -> tuple[list[float], list[int]]:
    """One token for each chunk, the others by length of text; where chunks are more than tokens, by chunks alone."""
    over = total - sum(chunks)
    by_length = over >= 0 and sum(sizes) > 0
    base, weights = (chunks, sizes) if by_length else ([0] * len(chunks), chunks)
    left, weight = total - sum(base), sum(weights)
    counts, seen, given = [], 0, 0
    for least, part in zip(base, weights, strict=True):
        seen += part
        upto = (2 * left * seen + weight) // (2 * weight)
        counts.append(least + upto - given)
        given = upto
    if not counts[0]:
        counts[0] = 1
        counts[next(number for number in range(len(counts) - 1, -1, -1) if counts[number] > (number == 0))] -= 1
    kept = [(time, count) for time, count in zip(at, counts, strict=True) if count]
    return [time for time, _ in kept], [count for _, count in kept]
