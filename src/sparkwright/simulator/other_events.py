"""An answer as the blocks of /v1/messages or the items of /v1/responses: whole, or as the events of a stream.

Formats: https://docs.anthropic.com/en/docs/build-with-claude/streaming and
https://platform.openai.com/docs/api-reference/responses-streaming
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from sparkwright.domain.values import dataclass, field

Body = dict[str, Any]
_STOPS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
_NEW = {"content": ("text", "text"), "reasoning": ("thinking", "thinking")}
_DELTAS = {
    "content": ("text_delta", "text"),
    "reasoning": ("thinking_delta", "thinking"),
    "call": ("input_json_delta", "partial_json"),
}


@dataclass(slots=True)
class Block:
    """kind: content, reasoning or call. text: so far; a call's arguments."""

    kind: str
    place: int = 0
    name: str = ""
    call: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class StreamStep:
    """A step of a stream. what: begin, open, more, close, end or error. text: the new text; the reason of the end; the
    error."""

    what: str
    block: Block = field(default_factory=lambda: Block(""))
    text: str = ""
    usage: Body = field(default_factory=dict)


def blocks_of(message: Body) -> list[Block]:
    """The blocks of a whole chat answer."""
    texts = [Block(kind, text=message.get(kind) or "") for kind in ("reasoning", "content")]
    calls = [
        Block("call", name=call["function"]["name"], call=call["id"], text=call["function"]["arguments"])
        for call in message.get("tool_calls") or ()
    ]
    found = [block for block in texts if block.text] + calls
    for place, block in enumerate(found):
        block.place = place
    return found


async def stream_steps(chunks: AsyncIterator[Any]) -> AsyncIterator[StreamStep]:
    """The steps of a streamed chat. Text of another kind, and each call, is a block of its own."""
    block, count, finish, usage = None, 0, "", Body()
    async for chunk in chunks:
        tree = json.loads(chunk.removeprefix(b"data: ")) if chunk.startswith(b"data: {") else {}
        if "error" in tree:
            yield StreamStep("error", text=tree["error"]["message"])
            return
        usage = tree.get("usage") or usage
        for choice in tree.get("choices") or ():
            if "role" in choice["delta"]:
                yield StreamStep("begin", usage=usage)
            for kind, text, call in _pieces(choice["delta"]):
                if block is None or block.kind != kind or call.get("id"):
                    if block:
                        yield StreamStep("close", block)
                    block = Block(kind, count, call.get("function", {}).get("name", ""), call.get("id", ""))
                    count += 1
                    yield StreamStep("open", block)
                if text:
                    block.text += text
                    yield StreamStep("more", block, text)
            finish = choice.get("finish_reason") or finish
    if block:
        yield StreamStep("close", block)
    yield StreamStep("end", text=finish, usage=usage)


def _pieces(delta: Body) -> Iterator[tuple[str, str, Body]]:
    yield from ((kind, delta[kind], {}) for kind in ("reasoning", "content") if delta.get(kind))
    for call in delta.get("tool_calls") or ():
        yield "call", call["function"].get("arguments", ""), call


def _event(kind: str, **values: Any) -> bytes:
    text = json.dumps({"type": kind, **values}, separators=(",", ":"), ensure_ascii=False)
    return f"event: {kind}\ndata: {text}\n\n".encode()


@dataclass(slots=True)
class Messages:
    """Anthropic's events, with vLLM's [DONE] after the last."""

    model: str
    id: str = field(default_factory=lambda: f"msg_{uuid.uuid4().hex[:24]}")

    def whole(self, blocks: list[Block], finish: str, usage: Body) -> Body:
        content = [self._content(block) for block in blocks]
        return self._message(content, usage) | {"stop_reason": _STOPS.get(finish, "end_turn")}

    def events(self, step: StreamStep) -> Iterator[bytes]:
        place, block = {"index": step.block.place}, step.block
        if step.what == "begin":
            yield _event("message_start", message=self._message([], step.usage))
        elif step.what == "open":
            yield _event("content_block_start", **place, content_block=self._content(block))
        elif step.what == "more":
            kind, name = _DELTAS[block.kind]
            yield _event("content_block_delta", **place, delta={"type": kind, name: step.text})
        elif step.what == "close":
            yield _event("content_block_stop", **place)
        elif step.what == "end":
            ended = {"stop_reason": _STOPS.get(step.text, "end_turn"), "stop_sequence": None}
            yield _event("message_delta", delta=ended, usage=_counted(step.usage))
            yield _event("message_stop")
            yield b"data: [DONE]\n\n"
        else:
            yield _event("error", error={"type": "api_error", "message": step.text})

    def _message(self, content: list[Body], usage: Body) -> Body:
        head = {"id": self.id, "type": "message", "role": "assistant", "model": self.model}
        return {**head, "content": content, "stop_reason": None, "stop_sequence": None, "usage": _counted(usage)}

    def _content(self, block: Block) -> Body:
        if block.kind == "call":
            given = json.loads(block.text) if block.text else {}
            return {"type": "tool_use", "id": block.call, "name": block.name, "input": given}
        kind, name = _NEW[block.kind]
        return {"type": kind, name: block.text} | ({"signature": ""} if block.kind == "reasoning" else {})


def _counted(usage: Body) -> Body:
    return {"input_tokens": usage.get("prompt_tokens", 0), "output_tokens": usage.get("completion_tokens", 0)}


@dataclass(slots=True)
class Responses:
    """OpenAI's events, numbered; items: those that are complete."""

    model: str
    id: str = field(default_factory=lambda: f"resp_{uuid.uuid4().hex[:24]}")
    number: int = -1
    items: list[Body] = field(default_factory=list)

    def whole(self, blocks: list[Block], finish: str, usage: Body) -> Body:
        self.items = [self._item(block, True) for block in blocks]
        return self._response(finish, usage)

    def events(self, step: StreamStep) -> Iterator[bytes]:
        make: dict[str, Callable[[StreamStep], Iterator[bytes]]] = {
            "begin": self._begin,
            "open": self._open,
            "more": self._more,
            "close": self._close,
        }
        return make.get(step.what, self._end)(step)

    def _begin(self, _: StreamStep) -> Iterator[bytes]:
        for name in ("response.created", "response.in_progress"):
            yield self._numbered(name, response=self._response("", {}))

    def _open(self, step: StreamStep) -> Iterator[bytes]:
        at = {"output_index": step.block.place}
        yield self._numbered("response.output_item.added", **at, item=self._item(step.block, False))
        if step.block.kind == "content":
            yield self._numbered("response.content_part.added", **self._at(step.block), part=_part(""))

    def _more(self, step: StreamStep) -> Iterator[bytes]:
        yield self._numbered(f"response.{_TEXTS[step.block.kind]}.delta", **self._at(step.block), delta=step.text)

    def _close(self, step: StreamStep) -> Iterator[bytes]:
        block, at = step.block, self._at(step.block)
        text = {"name": block.name, "arguments": block.text} if block.kind == "call" else {"text": block.text}
        yield self._numbered(f"response.{_TEXTS[block.kind]}.done", **at, **text)
        if block.kind == "content":
            yield self._numbered("response.content_part.done", **at, part=_part(block.text))
        item = self._item(block, True)
        self.items.append(item)
        yield self._numbered("response.output_item.done", output_index=block.place, item=item)

    def _end(self, step: StreamStep) -> Iterator[bytes]:
        if step.what == "error":
            failed = self._response("error", {}) | {"error": {"code": "server_error", "message": step.text}}
            yield self._numbered("response.failed", response=failed)
            return
        name = "incomplete" if step.text == "length" else "completed"
        yield self._numbered(f"response.{name}", response=self._response(step.text, step.usage))

    def _numbered(self, kind: str, **values: Any) -> bytes:
        self.number += 1
        return _event(kind, sequence_number=self.number, **values)

    def _at(self, block: Block) -> Body:
        at: Body = {"item_id": self._item_id(block), "output_index": block.place}
        return at if block.kind == "call" else {**at, "content_index": 0}

    def _item_id(self, block: Block) -> str:
        return f"{_PREFIX[block.kind]}_{self.id[5:21]}{block.place}"

    def _item(self, block: Block, done: bool) -> Body:
        status, text = "completed" if done else "in_progress", block.text if done else ""
        head: Body = {"id": self._item_id(block), "status": status}
        if block.kind == "call":
            return {**head, "type": "function_call", "call_id": block.call, "name": block.name, "arguments": text}
        if block.kind == "reasoning":
            thought = [{"type": "reasoning_text", "text": text}] if done else []
            return {**head, "type": "reasoning", "summary": [], "content": thought}
        return {**head, "type": "message", "role": "assistant", "content": [_part(text)] if done else []}

    def _response(self, finish: str, usage: Body) -> Body:
        status = {"": "in_progress", "length": "incomplete", "error": "failed"}.get(finish, "completed")
        counts = _counted(usage)
        total = {
            **counts,
            "total_tokens": sum(counts.values()),
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
        head = {"id": self.id, "object": "response", "created_at": int(time.time()), "model": self.model}
        cut = {"reason": "max_output_tokens"} if finish == "length" else None
        state = {"status": status, "output": list(self.items), "error": None, "incomplete_details": cut}
        asked = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
        return {**head, **state, **asked, "usage": total if usage else None}


_TEXTS = {"content": "output_text", "reasoning": "reasoning_text", "call": "function_call_arguments"}
_PREFIX = {"content": "msg", "reasoning": "rs", "call": "fc"}


def _part(text: str) -> Body:
    return {"type": "output_text", "text": text, "annotations": []}
