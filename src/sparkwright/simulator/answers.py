"""POST /v1/chat/completions and /v1/completions: from a request to its answer or its stream."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from sparkwright.simulator import asked, shapes
from sparkwright.simulator.asked import ApiError, Asked, Rules, json_response
from sparkwright.simulator.job import EngineDead, Job
from sparkwright.simulator.log import Voice
from sparkwright.simulator.scheduler import Engine
from sparkwright.simulator.shapes import Count, End, Ident, PartialAnswer
from sparkwright.simulator.text import answer

CHAT = "/v1/chat/completions"
TEXT = "/v1/completions"
CHAT_CHUNK = "chat.completion.chunk"


@dataclass(slots=True)
class Answers:
    engine: Engine
    rules: Rules
    fingerprint: str
    details: bool
    voice: Voice

    async def chat(self, request: Request) -> Response:
        body = asked.parsed(await request.body(), CHAT, "create_chat_completion", {"messages": list})
        return await self._answer(request, asked.chat(body, self.rules), chat=True)

    async def complete(self, request: Request) -> Response:
        body = asked.parsed(await request.body(), TEXT, "create_completion", {"prompt": (str, list)})
        return await self._answer(request, asked.completion(body, self.rules), chat=False)

    async def _answer(self, request: Request, wanted: Asked, chat: bool) -> Response:
        ident = self._ident(wanted, "chatcmpl" if chat else "cmpl")
        pieces = answer(wanted.seed, wanted.style)
        job = Job(ident.name, wanted.prompt, pieces, wanted.max_tokens, wanted.stops)
        count = Count(len(wanted.prompt), details=self.details)
        try:
            self.engine.submit(job)
            if wanted.stream:
                return await self._stream(job, self._chunks(job, wanted, ident, chat))
            leaving = asyncio.ensure_future(self._abort_when_gone(request, job))
            try:
                return json_response(await self._whole(job, ident, count, chat))
            finally:
                leaving.cancel()
        except EngineDead as error:
            raise ApiError(500, str(error), "InternalServerError") from None
        finally:
            if not wanted.stream:
                self.engine.abort(job)

    async def _abort_when_gone(self, request: Request, job: Job) -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        self.engine.abort(job)

    def _ident(self, wanted: Asked, kind: str) -> Ident:
        return Ident(f"{kind}-{uuid.uuid4().hex[:16]}", int(time.time()), wanted.model, self.fingerprint)

    async def _whole(self, job: Job, ident: Ident, count: Count, chat: bool) -> shapes.Body:
        said, call = PartialAnswer(), _call_name()
        async for pieces in job.batches():
            said.add(pieces, call)
        count.cached, count.made = job.cached, len(job.made)
        end = _end(job, said)
        build = shapes.chat_answer(ident, said, end, count.usage()) if chat else None
        return build or shapes.text_answer(ident, said.content, end, count.usage())

    async def _stream(self, job: Job, chunks: AsyncIterator[bytes]) -> Response:
        headers = {"content-type": "text/event-stream; charset=utf-8", "vary": "Origin"}
        return StreamingResponse(self._guarded(job, chunks), 200, headers)

    async def _guarded(self, job: Job, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """A client that leaves frees its blocks; a dying engine ends the stream with an error and [DONE]."""
        try:
            async for chunk in chunks:
                yield chunk
        except EngineDead as error:
            self.voice.line("serving.py:468", error=error)
            yield shapes.sse_error(str(error))
        finally:
            self.engine.abort(job)
        yield shapes.DONE

    async def _chunks(self, job: Job, wanted: Asked, ident: Ident, chat: bool) -> AsyncIterator[bytes]:
        count, said, call = Count(len(wanted.prompt), details=self.details), PartialAnswer(), _call_name()
        first = chat
        async for pieces in job.batches():
            if first:
                usage = count.usage(last=False) if wanted.always_usage else None
                yield shapes.sse(shapes.role_chunk(ident, usage))
                first = False
            count.made += len(pieces)
            end = _end(job, said) if job.finish and not job.outbox else End()
            delta = said.add(pieces, call)
            if not delta and not end.reason:
                continue
            yield shapes.sse(_chunk(ident, delta, _end(job, said) if end.reason else end, chat) | _usage(wanted, count))
        if wanted.usage:
            count.cached = job.cached
            kind = CHAT_CHUNK if chat else "text_completion"
            yield shapes.sse(shapes.usage_chunk(ident, kind, count.usage()))


def _chunk(ident: Ident, delta: shapes.Body, end: End, chat: bool) -> shapes.Body:
    if chat:
        return shapes.delta_chunk(ident, delta or {"content": ""}, end)
    return shapes.text_chunk(ident, delta.get("content", ""), end)


def _usage(wanted: Asked, count: Count) -> shapes.Body:
    return {"usage": count.usage(last=False)} if wanted.always_usage else {}


def _end(job: Job, said: PartialAnswer) -> End:
    called = bool(said.calls) and job.finish == "stop"
    return End("tool_calls" if called else job.finish, job.stop_reason)


def _call_name() -> str:
    return f"chatcmpl-tool-{uuid.uuid4().hex[:16]}"
