"""Tokens and limits of a key: what an engine's answer counts, made to report it, and when a key has had enough."""

import json
import re
from collections.abc import Iterator
from math import ceil
from typing import Any, Protocol

from sparkwright.domain.values import dataclass
from sparkwright.gateway.decide import Answer
from sparkwright.gateway.keys import Key

MINUTE, DAY = 60.0, 86400.0
STREAMS = ("/v1/chat/completions", "/v1/completions")
ASK = b'"stream_options":{"include_usage":true},'
_KEPT, _SMALL = 64 * 1024, 1024 * 1024
_PLAIN = rb'(?:"[^"\\]*+"|[-+.\w]++)'
_TRUE = rb'"stream"\s*+:\s*+true\s*+'
_FIRST = re.compile(rb'\s*+\{\s*+(?:"[^"\\]*+"\s*+:\s*+' + _PLAIN + rb"\s*+,\s*+)*?" + _TRUE + rb"[,}]")
_LAST = re.compile(rb"[,{]\s*+" + _TRUE + rb'(?:,\s*+"[^"\\]*+"\s*+:\s*+' + _PLAIN + rb"\s*+)*+\}\s*+\Z")
_EDGE = 4096
_USAGE = re.compile(rb'"usage"\s*:\s*\{')
_LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d{1,15})\r\n", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:\s*chunked\r\n", re.IGNORECASE)
_EMPTY = re.compile(rb'"choices"\s*:\s*\[\s*\]')
_CACHED = ("prompt_tokens_details", "input_tokens_details")
_STREAM = re.compile(rb"\r\ncontent-type:\s*text/event-stream", re.IGNORECASE)
_TEXT = re.compile(rb'"(?:content|reasoning|reasoning_content|text|thinking|arguments|partial_json|delta)"\s?:\s?"[^"]')
_WHOLE = re.compile(rb'"finish_reason"\s?:\s?"|"type"\s?:\s?"response\.(?![a-z_.]*delta")')  # text again, or its rest


class Body(Protocol):
    """bytes or a mapped file."""

    def __len__(self) -> int: ...
    def __getitem__(self, place: slice, /) -> bytes: ...
    def find(self, sub: bytes, /) -> int: ...


@dataclass(frozen=True, slots=True)
class Tokens:
    """As the engine's `usage` has them. cached: of the prompt."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0


def asks_nothing(body: Body) -> bool:
    """Whether this is a stream whose client leaves it open if it wants usage: only then it can be asked for.

    `"stream": true` counts at the top level: among the first or the last values, else as JSON has it.
    """
    return streams(body) and body.find(b'"stream_options"') < 0


def streams(body: Body) -> bool:
    if body[:1] != b"{":
        return False
    if _FIRST.match(body[:_EDGE]) or _LAST.search(body[max(len(body) - _EDGE, 0) : len(body)]):
        return True
    return len(body) <= _SMALL and body.find(b'"stream"') >= 0 and _streams(body[: len(body)])


def _streams(body: bytes) -> bool:
    try:
        tree = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(tree, dict) and tree.get("stream") is True


def tokens(*texts: bytes) -> Tokens | None:
    """Of all `usage` objects in them, the later ones first; None without any count."""
    found: dict[str, Any] = {}
    for tree in (tree for text in texts for tree in _trees(text)):
        found |= {name: value for name, value in tree.items() if value is not None}
    prompt, completion = (
        _count(found, "prompt_tokens", "input_tokens"),
        _count(found, "completion_tokens", "output_tokens"),
    )
    if prompt is None and completion is None:
        return None
    details = [found[name] for name in _CACHED if isinstance(found.get(name), dict)]
    cached = _count(details[0], "cached_tokens") if details else _count(found, "cache_read_input_tokens")
    return Tokens(prompt or 0, completion or 0, cached or 0)


def _trees(text: bytes) -> Iterator[dict[str, Any]]:
    for place in _USAGE.finditer(text):
        try:
            tree, _ = json.JSONDecoder().raw_decode(
                text[place.end() - 1 : place.end() + _EDGE].decode("utf-8", "replace")
            )
        except (ValueError, RecursionError):
            continue
        yield tree


def _count(tree: dict[str, Any], *names: str) -> int | None:
    given = (tree.get(name) for name in names)
    return next((one for one in given if type(one) is int and 0 <= one < 1 << 40), None)


@dataclass(frozen=True, slots=True)
class Used:
    """What a key used of a model on a day (UTC). requests: begun; of them finished: with the engine's count of tokens;

    uncounted: without one; cut: one side left before the end; failed: the engine refused them. refused: by a limit,
    not among the requests. prompt, completion, cached: tokens, as far as engines reported them. at_least: tokens that
    passed in streams that were cut, of which the engine reported nothing: events with text, each a token or more.
    """

    day: str
    key: str
    model: str
    requests: int = 0
    finished: int = 0
    uncounted: int = 0
    cut: int = 0
    failed: int = 0
    refused: int = 0
    prompt: int = 0
    completion: int = 0
    cached: int = 0
    at_least: int = 0

    @property
    def open(self) -> int:
        """Under way, or lost when the gateway's process was killed."""
        return self.requests - self.finished - self.uncounted - self.cut - self.failed


class Counting:
    """An engine's answer as it flows by. asked: its usage was asked for here, and is taken out again."""

    def __init__(self, asked: bool = False) -> None:
        self.status = 0
        self._asked, self._opening = asked, b""
        self._texts: _Texts | None = None
        self._parts: list[bytes] = []
        self._size = self._came = 0
        self._length: int | None = None
        self._chunks: _Chunks | None = None
        self._held = b""

    def saw(self, raw: bytes) -> bytes:
        """What the client is to get of it. The first piece is the answer's head."""
        if not self.status:
            self.status = int(raw[9:12]) if raw[9:12].isdigit() else 599
            length = _LENGTH.search(raw)
            self._length = int(length[1]) if length else None
            self._texts = _Texts() if _STREAM.search(raw) else None
            if self._asked and _CHUNKED.search(raw):
                self._chunks = _Chunks()
            return raw
        self._came += len(raw)
        if self._texts:
            self._texts.passed(raw)
        return self._without(raw, self._chunks) if self._chunks else self._noted(raw)

    @property
    def complete(self) -> bool:
        """Whether its end has come: it is whole whichever side closes first."""
        if self._chunks:
            return self._chunks.ended
        if self._length is not None:
            return self._came >= self._length
        return b"".join(self._parts[-5:]).endswith(b"\r\n0\r\n\r\n")

    @property
    def tokens(self) -> Tokens | None:
        return tokens(self._opening, b"".join(self._parts))

    @property
    def at_least(self) -> int:
        """Tokens that passed, a token each event with text; 0 of an answer that is no stream."""
        return self._texts.count() if self._texts else 0

    def _noted(self, raw: bytes) -> bytes:
        self._opening = self._opening or raw[:_EDGE]
        self._parts.append(raw)
        self._size += len(raw)
        if self._size > 2 * _KEPT:
            self._parts = [b"".join(self._parts)[-_KEPT:]]
            self._size = _KEPT
        return raw

    def _without(self, raw: bytes, chunks: "_Chunks") -> bytes:
        """Whole events pass; of those that count tokens, the one that nobody asked for does not."""
        plain = chunks.whole and not self._held
        payload = chunks.feed(raw)
        if plain and chunks.whole and payload.endswith(b"\n\n") and b'"usage"' not in payload and not chunks.ended:
            return raw
        data = self._held + payload
        cut = len(data) if chunks.ended else data.rfind(b"\n\n") + 2
        cut = 0 if cut == 1 else cut
        events, self._held = data[:cut], data[cut:]
        if b'"usage"' in events:
            self._noted(events)
            events = b"".join(event for event in re.split(rb"(?<=\n\n)", events) if not _extra(event))
        return (b"%x\r\n%b\r\n" % (len(events), events) if events else b"") + (b"0\r\n\r\n" if chunks.last() else b"")


class _Texts:
    """Events of a stream that carry text: kept as they pass, and counted in one go."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = self._found = 0

    def passed(self, raw: bytes) -> None:
        self._parts.append(raw)
        self._size += len(raw)
        if self._size > _KEPT:
            self.count()

    def count(self) -> int:
        *lines, rest = b"".join(self._parts).split(b"\n")
        self._found += sum(
            line.startswith(b"data:") and bool(_TEXT.search(line)) and not _WHOLE.search(line) for line in lines
        )
        rest = rest if len(rest) < _EDGE else b""  # whatever has no lines is no stream
        self._parts, self._size = [rest], len(rest)
        return self._found


def _extra(event: bytes) -> bool:
    return bool(_USAGE.search(event) and _EMPTY.search(event))


class _Chunks:
    """Chunked transfer encoding taken off. whole: nothing of a chunk is missing. ended: the last one has come."""

    def __init__(self) -> None:
        self._carry, self._left, self.ended, self._reported = b"", 0, False, False

    @property
    def whole(self) -> bool:
        return not self._carry and not self._left

    def last(self) -> bool:
        """True once, at the end."""
        first, self._reported = self.ended and not self._reported, self.ended
        return first

    def feed(self, raw: bytes) -> bytes:
        """Raises ValueError for what is no such encoding."""
        data, at, found = self._carry + raw, 0, []
        self._carry = b""
        while at < len(data) and not self.ended:
            if self._left:  # with the line break after it
                found.append(data[at : at + max(self._left - 2, 0)])
                step = min(self._left, len(data) - at)
                at, self._left = at + step, self._left - step
                continue
            end = data.find(b"\r\n", at)
            if end < 0:
                self._carry = data[at:]
                break
            size = int(data[at:end].partition(b";")[0], 16)
            at, self._left, self.ended = end + 2, size + 2 if size else 0, not size
        return b"".join(found)


@dataclass(frozen=True, slots=True)
class Load:
    """What a key has asked for. free_in: seconds until it has fewer than its requests a minute. tokens: of today."""

    free_in: float = 0.0
    at_once: int = 0
    tokens: int = 0


def enough(key: Key, load: Load, now: float) -> Answer | None:
    """Why a request of this key has to wait; None where it has not. now: seconds since the epoch."""
    if load.free_in > 0:
        return _wait(key, f"{key.per_minute} requests a minute", "requests", ceil(load.free_in))
    if key.at_once and load.at_once >= key.at_once:
        return _wait(key, f"{key.at_once} requests at once", "requests", 1)
    if key.tokens_a_day and load.tokens >= key.tokens_a_day:
        return _wait(key, f"{key.tokens_a_day:,} tokens a day (UTC)", "tokens", ceil(DAY - now % DAY))
    return None


def _wait(key: Key, limit: str, kind: str, seconds: int) -> Answer:
    message = f"Key {key.name} has its limit of {limit}; try again in {max(seconds, 1)} s."
    return Answer(429, kind, "rate_limit_exceeded", message, max(seconds, 1))
