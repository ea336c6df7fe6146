"""Ends a streamed answer that loops or reasons past its limit: with a finish reason, a note, and the stream's own end.

The events go on as they come. Their texts are read every few kilobytes, so a token costs nothing that is seen.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from sparkwright.domain.values import dataclass
from sparkwright.gateway.loops import LoopFinder

LOOPED, REASONED = "looped", "reasoned"
CHAT, COMPLETIONS, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses"
_BATCH, _LONGEST, _OPENING = 8 * 1024, 64 * 1024, 4096
_REASONING = ("reasoning_content", "reasoning", "thinking")
_TEXT = re.compile(
    rb'"(content|text|arguments|partial_json|delta|' + "|".join(_REASONING).encode() + rb')"\s?:\s?"((?:[^"\\]|\\.)*+)"'
)
_WHOLE = re.compile(rb'"type"\s?:\s?"(?:response\.(?![a-z_.]*delta)|message_start|content_block_start)')
_REASONING_EVENT = re.compile(rb'"type"\s?:\s?"response\.reasoning[a-z_]*\.delta"')
_END_OF_EVENT = re.compile(rb"\r?\n\r?\n")
_BLOCK = re.compile(rb'"index"\s?:\s?([0-9]{1,6})')
_BYTES_OF_A_TOKEN = 16  # of an event that brings several: hardly ever more than there are


@dataclass(frozen=True, slots=True)
class GuardSetting:
    """end_loops: answers that repeat themselves are ended. reasoning_tokens: the most of an answer, 0 for no limit.

    answer_tokens: the most of a chat's answer whose client names no limit, held by the engine; 0 for none. context:
    tokens of a prompt and its answer.
    """

    end_loops: bool = False
    reasoning_tokens: int = 0
    answer_tokens: int = 0
    context: int = 0

    @property
    def on(self) -> bool:
        return self.end_loops or self.reasoning_tokens > 0

    def with_limits(self, end_loops: bool, reasoning_tokens: int) -> "GuardSetting":
        """The stricter of both."""
        limits = [one for one in (self.reasoning_tokens, reasoning_tokens) if one > 0]
        return GuardSetting(self.end_loops or end_loops, min(limits, default=0), self.answer_tokens, self.context)


UNGUARDED = GuardSetting()


class AnswerGuard:
    """One answer. ended: LOOPED or REASONED, '' while it may go on; of an answer that is no stream only LOOPED is seen,
    when it has come in one piece already. over: nothing more is to be sent."""

    def __init__(self, setting: GuardSetting, path: str) -> None:
        self._setting, self._path = setting, path
        self._finder = LoopFinder() if setting.end_loops else None
        self._stream = self._may_end = self.over = False
        self.ended, self._why = "", ""
        self._opening, self._raw = b"", bytearray()
        self._reasoned = dict.fromkeys(_REASONING, 0)
        self._block = 0

    def begins(self, stream: bool, sized: bool) -> None:
        """sized: its length is announced, so that nothing can be put at its end."""
        self._stream, self._may_end = stream, stream and not sized and self._path in _ENDS

    def saw(self, piece: bytes) -> bytes:
        """The bytes for the client: all of them, or those up to the end that is made here."""
        if self.ended:
            return self._closed(piece) if self._may_end else piece
        if not self._stream:
            if self._finder and self._finder.feed(piece):
                self.ended = LOOPED
            return piece
        self._opening = self._opening or piece[:_OPENING]
        self._raw += piece
        if len(self._raw) < _BATCH:
            return piece
        return self._closed(piece, last=True) if self._read() and self._may_end else piece

    def _read(self) -> bool:
        """True if the answer is to end now."""
        whole = self._raw.rfind(b"\n") + 1
        if not whole and len(self._raw) < _LONGEST:
            return False
        events, self._raw = bytes(self._raw[:whole]), self._raw[whole:] if whole else bytearray()
        texts = self._texts(events)
        if self._finder and (loop := self._finder.feed(b"".join(texts))):
            counts = ", only its numbers count on" if loop.counts else ""
            self.ended = LOOPED
            self._why = f"it repeated itself at least {loop.times} times{counts}: {json.dumps(loop.period[:60])}"
        limit = self._setting.reasoning_tokens
        if not self.ended and limit and max(self._reasoned.values()) > limit:
            self.ended, self._why = REASONED, f"it reasoned for more than {limit:,} tokens, the limit here"
        return self.ended != ""

    def _texts(self, events: bytes) -> list[bytes]:
        """The new text of the events, in order; reasoning is counted."""
        if blocks := _BLOCK.findall(events[-_OPENING:]):
            self._block = int(blocks[-1])
        if self._path == RESPONSES or _WHOLE.search(events):
            kept = [line for line in events.split(b"\n") if not _WHOLE.search(line)]
            events = b"\n".join(kept)
            for line in filter(_REASONING_EVENT.search, kept):
                self._reasoned["reasoning"] += sum(_tokens(text) for _, text in _TEXT.findall(line))
        texts = []
        for name, text in _TEXT.findall(events):
            texts.append(text)
            if text and name.decode() in self._reasoned:
                self._reasoned[name.decode()] += _tokens(text)
        return texts

    def _closed(self, piece: bytes, last: bool = False) -> bytes:
        """The rest of the event under way, and the end of the stream. last: the end is that of the last whole event."""
        ends = list(_END_OF_EVENT.finditer(piece))
        if not ends:
            return piece
        self.over = True
        return piece[: ends[-1 if last else 0].end()] + self._end()

    def _end(self) -> bytes:
        note = f"[sparkwright ended this answer: {self._why}]"
        told = {"ended": self.ended, "note": note}
        return _ENDS[self._path](_Stream(_head(self._opening), self._block, note, told))


@dataclass(frozen=True, slots=True)
class _Stream:
    """head: id, model and time of the engine's own events. block: the one under way. told: for programs."""

    head: Mapping[str, Any]
    block: int
    note: str
    told: Mapping[str, str]


def _tokens(text: bytes) -> int:
    return max(1, len(text) // _BYTES_OF_A_TOKEN)


def _head(opening: bytes) -> dict[str, Any]:
    found = {}
    for name in ("id", "model"):
        if match := re.search(rb'"%s"\s?:\s?"([^"\\]{1,200})"' % name.encode(), opening):
            found[name] = match[1].decode("utf-8", "replace")
    if match := re.search(rb'"created(?:_at)?"\s?:\s?([0-9]{1,12})', opening):
        found["created"] = int(match[1])
    return found


def _data(tree: Mapping[str, Any], named: bool = False) -> bytes:
    event = f"event: {tree['type']}\n" if named else ""
    return f"{event}data: {json.dumps(tree)}\n\n".encode()


def _chat(one: _Stream) -> bytes:
    base = {**one.head, "object": "chat.completion.chunk"}
    noted = {"index": 0, "delta": {"content": f"\n\n{one.note}"}, "finish_reason": None}
    last = {"index": 0, "delta": {}, "finish_reason": "length"}
    events = _data({**base, "choices": [noted]}) + _data({**base, "choices": [last], "sparkwright": one.told})
    return events + b"data: [DONE]\n\n"


def _completions(one: _Stream) -> bytes:
    last = {"index": 0, "text": f"\n\n{one.note}", "logprobs": None, "finish_reason": "length"}
    base = {**one.head, "object": "text_completion"}
    return _data({**base, "choices": [last], "sparkwright": one.told}) + b"data: [DONE]\n\n"


def _messages(one: _Stream) -> bytes:
    after = one.block + 1
    trees: tuple[Mapping[str, Any], ...] = (
        {"type": "content_block_stop", "index": one.block},
        {"type": "content_block_start", "index": after, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": after, "delta": {"type": "text_delta", "text": one.note}},
        {"type": "content_block_stop", "index": after},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "max_tokens", "stop_sequence": None},
            "usage": {"output_tokens": 0},
            "sparkwright": one.told,
        },
        {"type": "message_stop"},
    )
    return b"".join(_data(tree, named=True) for tree in trees)


def _responses(one: _Stream) -> bytes:
    response = {
        **{name: value for name, value in one.head.items() if name != "created"},
        "object": "response",
        "created_at": one.head.get("created", 0),
        "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
        "output": [],
        "error": None,
        "sparkwright": one.told,
    }
    return _data({"type": "response.incomplete", "response": response}, named=True)


_ENDS: Mapping[str, Callable[[_Stream], bytes]] = {
    CHAT: _chat,
    COMPLETIONS: _completions,
    MESSAGES: _messages,
    RESPONSES: _responses,
}
