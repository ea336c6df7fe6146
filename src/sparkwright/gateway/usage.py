"""Tokens and limits of a key: what an engine's answer counts, made to report it, and when a key has had enough."""

import json
import re
from collections import deque
from collections.abc import Iterator
from math import ceil
from typing import Any, Protocol

from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.values import dataclass
from sparkwright.gateway.decide import GatewayAnswer
from sparkwright.gateway.keys import Key

MINUTE, DAY = 60.0, 86400.0
STREAMS = ("/v1/chat/completions", "/v1/completions")
ASK = b'"stream_options":{"include_usage":true},'
_KEPT, _SMALL = 64 * 1024, 1024 * 1024
_PLAIN = rb'(?:"[^"\\]*+"|[-+.\w]++)'
_TRUE = rb'"stream"\s*+:\s*+true\s*+'
_FIRST = re.compile(rb'\s*+\{\s*+(?:"[^"\\]*+"\s*+:\s*+' + _PLAIN + rb"\s*+,\s*+)*?" + _TRUE + rb"[,}]")
_LAST = re.compile(rb"[,{]\s*+" + _TRUE + rb'(?:,\s*+"[^"\\]*+"\s*+:\s*+' + _PLAIN + rb"\s*+)*+\}\s*+\Z")
_EDGE, _END = 4096, 256
_OVERLAP = 3  # a blank line may begin in what was searched before
_USAGE = re.compile(rb'"usage"\s*:\s*\{')
_EMPTY = re.compile(rb'"choices"\s*:\s*\[\s*\]')
_CACHED = ("prompt_tokens_details", "input_tokens_details")
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")
_COUNTS = 16  # `usage` objects that are read at each end of an answer
_TEXT = re.compile(rb'"(?:content|reasoning|reasoning_content|text|thinking|arguments|partial_json|delta)"\s?:\s?"[^"]')
_WHOLE = re.compile(rb'"finish_reason"\s?:\s?"|"type"\s?:\s?"response\.(?![a-z_.]*delta")')  # text again, or its rest


class Body(Protocol):
    """bytes or a mapped file."""

    def __len__(self) -> int: ...
    def __getitem__(self, place: slice, /) -> bytes: ...
    def find(self, sub: bytes, /) -> int: ...


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token counts from the engine's `usage`. cached: of the prompt."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0


def asks_nothing(body: Body) -> bool:
    """True if the request is a stream whose client left usage open: only then the gateway can ask for it.

    `"stream": true` counts at the top level: among the first or the last values, else as JSON has it.
    """
    return streams(body) and body.find(b'"stream_options"') < 0


_LIMITS = (b'"max_tokens"', b'"max_completion_tokens"')


# Tokens of a prompt are at most so many: code has three bytes a token, texts without spaces two.
_LEAST_BYTES = 1.5


def answer_limit(body: Body, most: int, context: int) -> bytes:
    """The member that limits a chat's answer whose client names no limit; b'' for one that does, and for no JSON.

    A tool's parameter of that name counts as a limit, too: then the answer is left as it is. So is that of a prompt
    that may leave less than `most` of the context: the engine would refuse what has no room, and ends it anyway.
    """
    if not most or body[:1] != b"{" or len(body) / _LEAST_BYTES + most > context:
        return b""
    return b"" if any(body.find(word) >= 0 for word in _LIMITS) else b'"max_tokens":%d,' % most


def streams(body: Body) -> bool:
    if body[:1] != b"{":
        return False
    if _FIRST.match(body[:_EDGE]):
        return True
    for edge in (_END, _EDGE):
        if _LAST.search(body[max(len(body) - edge, 0) : len(body)]):
            return True
    return len(body) <= _SMALL and body.find(b'"stream"') >= 0 and _streams(body[: len(body)])


def _streams(body: bytes) -> bool:
    try:
        tree = read_json(body)
    except ValueError:
        return False
    return isinstance(tree, dict) and tree.get("stream") is True


def tokens(*texts: bytes) -> Tokens | None:
    """The counts of all `usage` objects, later ones override; None without any count."""
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
    for place in deque(_USAGE.finditer(text), _COUNTS):
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
    """The use of a model by a key on a day (UTC). requests: begun; of them finished: with the engine's count of tokens;
    uncounted: without one; cut: one side left before the end; failed: the engine refused them; looped, reasoned: ended
    here because they repeated themselves or reasoned past the limit. refused: by a limit, not
    among the requests. prompt, completion, cached: tokens, as far as engines reported them. at_least: tokens in cut
    streams without the engine's report: events with text, each a token or more."""

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
    looped: int = 0
    reasoned: int = 0

    @property
    def open(self) -> int:
        """Requests under way, or lost when the gateway's process was killed."""
        return self.requests - self.finished - self.uncounted - self.cut - self.failed - self.looped - self.reasoned


class Counting:
    """An engine's answer as it flows by. asked: its usage was asked for here, and is taken out again."""

    def __init__(self, asked: bool = False) -> None:
        self.status = 0
        self._asked, self._opening, self._tail = asked, b"", bytearray()
        self._texts: _Texts | None = None
        self._filter: _EventFilter | None = None

    def begins(self, status: int, stream: bool, sized: bool) -> None:
        """stream: its body has events. sized: its length is announced, so that nothing can be taken out."""
        self.status = status
        self._texts = _Texts() if stream else None
        self._filter = _EventFilter() if self._asked and stream and not sized else None

    def saw(self, piece: bytes) -> bytes:
        """Counts a piece and returns the bytes to send on to the client; call `begins` before."""
        if self._texts:
            self._texts.passed(piece)
        self._opening = self._opening or piece[:_EDGE]
        self._tail += piece
        if len(self._tail) > 2 * _KEPT:
            del self._tail[:-_KEPT]
        return self._filter.passed(piece) if self._filter else piece

    def rest(self) -> bytes:
        """The bytes still held back of an answer that has ended."""
        return self._filter.rest() if self._filter else b""

    @property
    def tokens(self) -> Tokens | None:
        return tokens(self._opening, bytes(self._tail))

    @property
    def at_least(self) -> int:
        """Tokens that passed, a token each event with text; 0 of an answer that is no stream."""
        return self._texts.count() if self._texts else 0


class _EventFilter:
    """Takes the event that only counts tokens out of a stream. Holds back the event that is not whole yet, and no more

    than 64 KiB of it: a longer one is another one and flows on as it comes.
    """

    def __init__(self) -> None:
        self._held = bytearray()
        self._searched, self._flowing = 0, False

    def passed(self, piece: bytes) -> bytes:
        """The part of a stream that may go on. Looks at what is new only."""
        if not self._held and piece.endswith(b"\n\n") and b'"usage"' not in piece:
            return piece
        self._held += piece
        out, at = [], 0
        for end in _BLANK_LINE.finditer(self._held, max(self._searched - _OVERLAP, 0)):
            out.append(self._event(bytes(self._held[at : end.end()])))
            at, self._flowing = end.end(), False
        del self._held[:at]
        if self._flowing or len(self._held) > _KEPT:
            self._flowing = True
            out.append(bytes(self._held[:-_OVERLAP]))
            del self._held[:-_OVERLAP]
        self._searched = len(self._held)
        return b"".join(out)

    def _event(self, event: bytes) -> bytes:
        return b"" if not self._flowing and _extra(event) else event

    def rest(self) -> bytes:
        rest = self._event(bytes(self._held))
        self._held.clear()
        return rest


class _Texts:
    """Events of a stream that carry text: kept as they pass, and counted in one go."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._found = 0

    def passed(self, piece: bytes) -> None:
        self._kept += piece
        if len(self._kept) > _KEPT:
            self.count()

    def count(self) -> int:
        *lines, rest = bytes(self._kept).split(b"\n")
        self._found += sum(
            line.startswith(b"data:") and bool(_TEXT.search(line)) and not _WHOLE.search(line) for line in lines
        )
        self._kept = bytearray(rest if len(rest) < _EDGE else b"")  # whatever has no lines is no stream
        return self._found


def _extra(event: bytes) -> bool:
    return bool(_USAGE.search(event) and _EMPTY.search(event))


@dataclass(frozen=True, slots=True)
class KeyLoad:
    """The load of a key. free_in: seconds until it has fewer than its requests a minute. tokens: of today."""

    free_in: float = 0.0
    at_once: int = 0
    tokens: int = 0


def enough(key: Key, load: KeyLoad, now: float) -> GatewayAnswer | None:
    """The refusal of a key over its limits; None if it has none to wait for. now: seconds since the epoch."""
    if load.free_in > 0:
        return _wait(key, f"{key.per_minute} requests a minute", "requests", ceil(load.free_in))
    if key.at_once and load.at_once >= key.at_once:
        return _wait(key, f"{key.at_once} requests at once", "requests", 1)
    if key.tokens_a_day and load.tokens >= key.tokens_a_day:
        return _wait(key, f"{key.tokens_a_day:,} tokens a day (UTC)", "tokens", ceil(DAY - now % DAY))
    return None


def _wait(key: Key, limit: str, kind: str, seconds: int) -> GatewayAnswer:
    message = f"Key {key.name} has its limit of {limit}; try again in {max(seconds, 1)} s."
    return GatewayAnswer(429, kind, "rate_limit_exceeded", message, max(seconds, 1))
