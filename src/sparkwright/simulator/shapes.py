"""Answers in vLLM 0.21.0's exact key order: chat and completions, whole and in chunks (captures sse*.json)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from sparkwright.simulator.text import Piece

Body = dict[str, Any]
DONE = b"data: [DONE]\n\n"


def sse(body: Body) -> bytes:
    return f"data: {json.dumps(body, separators=(',', ':'), ensure_ascii=False)}\n\n".encode()


def sse_error(message: str) -> bytes:
    """Inside a stream that has begun, an error is a chunk, spaced as `json.dumps` does (capture killed.json)."""
    body = {"error": {"message": message, "type": "InternalServerError", "param": None, "code": 500}}
    return f"data: {json.dumps(body)}\n\n".encode()


@dataclass(frozen=True, slots=True)
class Ident:
    """What every chunk of one answer repeats."""

    name: str
    created: int
    model: str
    fingerprint: str


@dataclass(slots=True)
class Count:
    """Tokens so far. `details` when the server was started with --enable-prompt-tokens-details."""

    prompt: int
    cached: int = 0
    made: int = 0
    details: bool = False

    def usage(self, last: bool = True) -> Body:
        """Chunks in between never have the details; the last one only when something was cached."""
        body: Body = {
            "prompt_tokens": self.prompt,
            "total_tokens": self.prompt + self.made,
            "completion_tokens": self.made,
        }
        if last and self.details and self.cached:
            body["prompt_tokens_details"] = {"cached_tokens": self.cached}
        return body


@dataclass(frozen=True, slots=True)
class End:
    """How an answer ends; an empty reason means that it has not."""

    reason: str = ""
    stop: str | None = None


@cache
def _templates() -> dict[str, Body]:
    found: dict[str, Body] = json.loads((files("sparkwright.simulator") / "texts/bodies.json").read_text())
    return found


def filled(name: str, **values: object) -> Body:
    """A body of texts/bodies.json, in vLLM's order of keys."""
    return {**_templates()[name], **values}


def text_chunk(ident: Ident, text: str, end: End) -> Body:
    choice = filled("text_chunk", text=text, finish_reason=end.reason or None, stop_reason=end.stop)
    return {**_head(ident, "text_completion"), "choices": [choice]}


def role_chunk(ident: Ident, usage: Body | None) -> Body:
    choice = {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
    extra = {"usage": usage} if usage else {}
    head = _head(ident, "chat.completion.chunk")
    return {**head, "choices": [choice], **extra, "prompt_token_ids": None, "prompt_text": None}


def delta_chunk(ident: Ident, delta: Body, end: End) -> Body:
    choice: Body = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": end.reason or None}
    if end.reason:
        choice["stop_reason"] = end.stop
    return {**_head(ident, "chat.completion.chunk"), "choices": [{**choice, "token_ids": None}]}


def usage_chunk(ident: Ident, kind: str, usage: Body) -> Body:
    return {**_head(ident, kind), "choices": [], "usage": usage, "system_fingerprint": ident.fingerprint}


def _head(ident: Ident, kind: str) -> Body:
    return {"id": ident.name, "object": kind, "created": ident.created, "model": ident.model}


@dataclass(slots=True)
class PartialAnswer:
    """An answer as it grows: text, reasoning and calls."""

    content: str = ""
    reasoning: str = ""
    calls: list[Body] = field(default_factory=list)

    def add(self, pieces: list[Piece], name_call: str) -> Body:
        """Takes pieces in; returns them as one delta. A call's first delta has its id (hermes parser, vLLM 0.21.0)."""
        new = {kind: "".join(p.text for p in pieces if p.kind == kind) for kind in ("content", "reasoning")}
        self.content += new["content"]
        self.reasoning += new["reasoning"]
        delta: Body = {kind: text for kind, text in new.items() if text}
        calls = [c for p in pieces for c in self._call(p, name_call)]
        return {**delta, "tool_calls": calls} if calls else delta

    def _call(self, piece: Piece, name: str) -> list[Body]:
        if piece.kind == "call":
            self.calls.append({"id": name, "type": "function", "function": {"name": piece.text, "arguments": ""}})
            return [{"id": name, "type": "function", "index": 0, "function": {"name": piece.text}}]
        if piece.kind == "arguments":
            self.calls[-1]["function"]["arguments"] += piece.text
            return [{"index": 0, "function": {"arguments": piece.text}}]
        return []


def chat_answer(ident: Ident, said: PartialAnswer, end: End, usage: Body) -> Body:
    content = said.content or (None if said.reasoning or said.calls else "")
    message = filled("message", content=content, tool_calls=said.calls, reasoning=said.reasoning or None)
    choice = filled("chat_choice", message=message, finish_reason=end.reason, stop_reason=end.stop)
    return filled("chat_answer", choices=[choice], usage=usage, **_whole(ident))


def text_answer(ident: Ident, text: str, end: End, usage: Body) -> Body:
    choice = filled("text_choice", text=text, finish_reason=end.reason, stop_reason=end.stop)
    return filled("text_answer", choices=[choice], usage=usage, **_whole(ident))


def _whole(ident: Ident) -> Body:
    return {"id": ident.name, "created": ident.created, "model": ident.model, "system_fingerprint": ident.fingerprint}
