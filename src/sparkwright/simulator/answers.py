"""POST /v1/chat/completions and /v1/completions: a request to its answer or stream, in vLLM 0.21.0's shapes."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from sparkwright.domain.values import dataclass, field
from sparkwright.simulator import asked
from sparkwright.simulator.asked import ApiError, CheckedRequest, Rules, json_response
from sparkwright.simulator.job import EngineDead, Job
from sparkwright.simulator.log import LogVoice
from sparkwright.simulator.scheduler import SimulatedEngine
from sparkwright.simulator.text import Piece, answer, damaged, logprobs

Body = dict[str, Any]
DONE = b"data: [DONE]\n\n"
CHAT = "/v1/chat/completions"
TEXT = "/v1/completions"
CHAT_CHUNK = "chat.completion.chunk"


def sse_event(body: Body) -> bytes:
    return f"data: {json.dumps(body, separators=(',', ':'), ensure_ascii=False)}\n\n".encode()


def sse_error(message: str) -> bytes:
    """The error inside a stream that has begun: a chunk, spaced as `json.dumps` does (capture killed.json)."""
    body = {"error": {"message": message, "type": "InternalServerError", "param": None, "code": 500}}
    return f"data: {json.dumps(body)}\n\n".encode()


@dataclass(frozen=True, slots=True)
class Ident:
    """The values that every chunk of one answer repeats."""

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
    more: int = 0
    """What the total has too much."""

    def usage(self, last: bool = True) -> Body:
        """Chunks in between never have the details; the last one only when something was cached."""
        body: Body = {
            "prompt_tokens": self.prompt,
            "total_tokens": self.prompt + self.made + self.more,
            "completion_tokens": self.made,
        }
        if last and self.details and self.cached:
            body["prompt_tokens_details"] = {"cached_tokens": self.cached}
        return body


@dataclass(frozen=True, slots=True)
class AnswerEnd:
    """The end of an answer; an empty reason means that it has not ended."""

    reason: str = ""
    stop: str | None = None


@cache
def _templates() -> dict[str, Body]:
    found: dict[str, Body] = json.loads((files("sparkwright.simulator") / "texts/bodies.json").read_text())
    return found


def filled(name: str, **values: object) -> Body:
    """A body of texts/bodies.json, in vLLM's order of keys."""
    return {**_templates()[name], **values}


def text_chunk(ident: Ident, text: str, end: AnswerEnd) -> Body:
    choice = filled("text_chunk", text=text, finish_reason=end.reason or None, stop_reason=end.stop)
    return {**_head(ident, "text_completion"), "choices": [choice]}


def role_chunk(ident: Ident, usage: Body | None) -> Body:
    choice = {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
    extra = {"usage": usage} if usage else {}
    head = _head(ident, "chat.completion.chunk")
    return {**head, "choices": [choice], **extra, "prompt_token_ids": None, "prompt_text": None}


def delta_chunk(ident: Ident, delta: Body, end: AnswerEnd, tokens: list[Body]) -> Body:
    choice: Body = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": end.reason or None}
    if end.reason:
        choice["stop_reason"] = end.stop
    if tokens:
        choice["logprobs"] = {"content": tokens}
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
    logprobs: list[Body] = field(default_factory=list)

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
            name, place = f"{name}{len(self.calls) or ''}", len(self.calls)
            self.calls.append({"id": name, "type": "function", "function": {"name": piece.text, "arguments": ""}})
            return [{"id": name, "type": "function", "index": place, "function": {"name": piece.text}}]
        if piece.kind == "arguments":
            self.calls[-1]["function"]["arguments"] += piece.text
            return [{"index": len(self.calls) - 1, "function": {"arguments": piece.text}}]
        return []


def chat_answer(ident: Ident, said: PartialAnswer, end: AnswerEnd, usage: Body) -> Body:
    content = said.content or (None if said.reasoning or said.calls else "")
    message = filled("message", content=content, tool_calls=said.calls, reasoning=said.reasoning or None)
    choice = filled("chat_choice", message=message, finish_reason=end.reason, stop_reason=end.stop)
    choice |= {"logprobs": {"content": said.logprobs}} if said.logprobs else {}
    return filled("chat_answer", choices=[choice], usage=usage, **_whole(ident))


def text_answer(ident: Ident, text: str, end: AnswerEnd, usage: Body) -> Body:
    choice = filled("text_choice", text=text, finish_reason=end.reason, stop_reason=end.stop)
    return filled("text_answer", choices=[choice], usage=usage, **_whole(ident))


def _whole(ident: Ident) -> Body:
    return {"id": ident.name, "created": ident.created, "model": ident.model, "system_fingerprint": ident.fingerprint}


@dataclass(slots=True)
class Answers:
    engine: SimulatedEngine
    rules: Rules
    fingerprint: str
    details: bool
    voice: LogVoice
    seen: set[int] = field(default_factory=set)
    turns: Iterator[int] = field(default_factory=itertools.count)

    async def chat(self, request: Request) -> Response:
        body = asked.parsed(await request.body(), CHAT, "create_chat_completion", {"messages": list})
        return await self.answer(request, asked.check_chat(body, self.rules), chat=True)

    async def complete(self, request: Request) -> Response:
        body = asked.parsed(await request.body(), TEXT, "create_completion", {"prompt": (str, list)})
        return await self.answer(request, asked.completion(body, self.rules), chat=False)

    async def answer(self, request: Request, wanted: CheckedRequest, chat: bool) -> Response:
        kind = "chatcmpl" if chat else "cmpl"
        ident = Ident(f"{kind}-{uuid.uuid4().hex[:16]}", int(time.time()), wanted.model, self.fingerprint)
        pieces = answer(wanted.seed + self._mixed_up(wanted), wanted.style)
        job = Job(ident.name, wanted.prompt, pieces, wanted.max_tokens, wanted.stops)
        count = Count(len(wanted.prompt), details=self.details, more=int("usage" in wanted.style.wrong))
        try:
            self.engine.submit(job)
            if wanted.stream:
                headers = {"content-type": "text/event-stream; charset=utf-8", "vary": "Origin"}
                return StreamingResponse(self._guarded(job, self._chunks(job, wanted, ident, chat)), 200, headers)
            leaving = asyncio.ensure_future(self._abort_when_gone(request, job))
            try:
                return json_response(await self._whole(job, ident, (wanted, count), chat))
            finally:
                leaving.cancel()
        except EngineDead as error:
            raise ApiError(500, str(error), "InternalServerError") from None
        finally:
            if not wanted.stream:
                self.engine.abort(job)

    def _mixed_up(self, wanted: CheckedRequest) -> int:
        """A seed that is not 0 where a fault gives the answer of another prompt: among others, to what the cache has,
        or always."""
        wrong, prompt = wanted.style.wrong, hash(tuple(wanted.prompt))
        if "unsteady" in wrong:
            return next(self.turns)
        if "drafts" in wrong:
            return 1
        busy = len(self.engine.running) + len(self.engine.waiting) >= 8
        known = prompt in self.seen and len(wanted.prompt) > 300
        if "stale_cache" in wrong:
            self.seen.add(prompt)
        return int((busy and "crosstalk" in wrong) or (known and "stale_cache" in wrong))

    async def _abort_when_gone(self, request: Request, job: Job) -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        self.engine.abort(job)

    async def _whole(self, job: Job, ident: Ident, of: tuple[CheckedRequest, Count], chat: bool) -> Body:
        said, call = PartialAnswer(), _call_name()
        wanted, count = of
        async for pieces in job.batches():
            said.add(pieces, call)
            said.logprobs += logprobs(pieces, wanted.logprobs, wanted.style.wrong)
        count.cached, count.made = job.cached, len(job.made)
        end = _end(job, said)
        usage = count.usage()
        return chat_answer(ident, said, end, usage) if chat else text_answer(ident, said.content, end, usage)

    async def _guarded(self, job: Job, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """A client that leaves frees its blocks; a dying engine ends the stream with an error and [DONE]."""
        try:
            async for chunk in chunks:
                yield chunk
        except EngineDead as error:
            self.voice.line("serving.py:468", error=error)
            yield sse_error(str(error))
        finally:
            self.engine.abort(job)
        yield DONE

    async def _chunks(self, job: Job, wanted: CheckedRequest, ident: Ident, chat: bool) -> AsyncIterator[bytes]:
        count, said, call = Count(len(wanted.prompt), details=self.details), PartialAnswer(), _call_name()
        count.more = int("usage" in wanted.style.wrong)
        first = chat
        async for pieces in job.batches():
            if first:
                yield sse_event(role_chunk(ident, count.usage(last=False) if wanted.always_usage else None))
                first = False
            count.made += len(pieces)
            delta = damaged(said.add(pieces, call), wanted.style.wrong)
            end = _end(job, said) if job.finish and not job.outbox else AnswerEnd()
            if delta or end.reason:
                usage = {"usage": count.usage(last=False)} if wanted.always_usage else {}
                yield sse_event(
                    _chunk(ident, delta, end, logprobs(pieces, wanted.logprobs, wanted.style.wrong) if chat else None)
                    | usage
                )
        if wanted.usage:
            count.cached = job.cached
            kind = CHAT_CHUNK if chat else "text_completion"
            yield sse_event(usage_chunk(ident, kind, count.usage()))


def _chunk(ident: Ident, delta: Body, end: AnswerEnd, tokens: list[Body] | None) -> Body:
    """tokens: log-probabilities of a chat; None of a completion."""
    if tokens is not None:
        return delta_chunk(ident, delta or {"content": ""}, end, tokens)
    return text_chunk(ident, delta.get("content", ""), end)


def _end(job: Job, said: PartialAnswer) -> AnswerEnd:
    called = bool(said.calls) and job.finish == "stop"
    return AnswerEnd("tool_calls" if called else job.finish, job.stop_reason)


def _call_name() -> str:
    return f"chatcmpl-tool-{uuid.uuid4().hex[:16]}"
