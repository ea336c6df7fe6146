"""The answers of SGLang 0.5.12 that differ from vLLM's (tests/data/captures/sglang: sse.json, routes.json)."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from starlette.responses import Response, StreamingResponse

from sparkwright.simulator.answers import sse_event
from sparkwright.simulator.asked import ApiError, json_response

Body = dict[str, Any]
PLACES = {
    "create_completion": ("openai_v1_completions", 1483),
    "create_chat_completion": ("openai_v1_chat_completions", 1492),
}


class SglangAnswer:
    """One answer of vLLM's shape in SGLang's. tokens: counts those of a text."""

    def __init__(self, tokens: Callable[[str], int]) -> None:
        self.tokens = tokens
        self.reasoning = ""

    def whole(self, body: Body) -> Body:
        choices = [self._whole_choice(choice) for choice in body["choices"]]
        usage = self._usage(body["usage"])
        head = {key: body[key] for key in ("object", "created", "model")}
        return {"id": _id(body), **head, "choices": choices, "usage": usage, "metadata": {"weight_version": "default"}}

    def _whole_choice(self, choice: Body) -> Body:
        end = {"logprobs": None, "finish_reason": choice["finish_reason"], "matched_stop": choice["stop_reason"]}
        if "text" in choice:
            return {"index": 0, "text": choice["text"], **end}
        said = choice["message"]
        self.reasoning = said["reasoning"] or ""
        calls = said["tool_calls"] or None
        message = {"role": "assistant", "content": said["content"], "reasoning_content": said["reasoning"]}
        return {"index": 0, "message": {**message, "tool_calls": calls}, **end}

    def chunks(self, body: Body) -> Iterator[Body]:
        """The last delta and the reason are one chunk of vLLM's and two of SGLang's."""
        head = {"id": _id(body), **{key: body[key] for key in ("object", "created", "model")}}
        usage = {"usage": self._usage(body["usage"])} if "usage" in body else {}
        if not body["choices"]:
            last = {key: value for key, value in usage.get("usage", {}).items() if value is not None}
            yield {**head, "choices": [], "usage": last}
            return
        (choice,) = body["choices"]
        reason, stop = choice["finish_reason"], choice.get("stop_reason")
        if "text" in choice:
            yield {**head, "choices": [_choice({"text": choice["text"]}, reason, stop)], **usage}
            return
        delta = {key: value for key, value in choice["delta"].items() if value or "role" in choice["delta"]}
        self.reasoning += delta.get("reasoning") or ""
        if delta:
            yield {**head, "choices": [_choice({"delta": _delta(delta)}, None, None)], **usage}
        if reason:
            yield {**head, "choices": [_choice({"delta": {"reasoning_content": None}}, reason, stop)], **usage}

    def _usage(self, usage: Body) -> Body:
        thought = min(self.tokens(self.reasoning), usage["completion_tokens"]) if self.reasoning else 0
        counts = {key: usage[key] for key in ("prompt_tokens", "total_tokens", "completion_tokens")}
        return {**counts, "prompt_tokens_details": usage.get("prompt_tokens_details"), "reasoning_tokens": thought}


def _delta(delta: Body) -> Body:
    rest = {key: value for key, value in delta.items() if key != "reasoning"}
    return {"reasoning_content": delta.get("reasoning"), **rest}


def _choice(said: Body, reason: str | None, stop: object) -> Body:
    return {"index": 0, **said, "logprobs": None, "finish_reason": reason, "matched_stop": stop}


def _id(body: Body) -> str:
    return uuid.uuid5(uuid.NAMESPACE_OID, body["id"]).hex


def answered(response: Response, tokens: Callable[[str], int]) -> Response:
    """vLLM's response as SGLang's."""
    answer = SglangAnswer(tokens)
    if isinstance(response, StreamingResponse):
        response.body_iterator = _stream(response.body_iterator, answer)
        return response
    return json_response(answer.whole(json.loads(bytes(response.body))))


async def _stream(chunks: Any, answer: SglangAnswer) -> AsyncIterator[bytes]:
    async for chunk in chunks:
        text = chunk.decode()
        body = json.loads(text.removeprefix("data: ")) if text.startswith("data: {") else {}
        if "choices" not in body:
            yield chunk
        for one in answer.chunks(body) if "choices" in body else ():
            yield sse_event(one)


def refused(error: ApiError) -> Response:
    """The place in the source is part of the message when a body does not validate."""
    message = str(error)
    for theirs, (ours, line) in PLACES.items():
        place = f'File "/site/sglang/srt/entrypoints/http_server.py", line {line}, in {ours}'
        message = re.sub(rf'File "\S+", line \d+, in {theirs}', place, message)
    body = {"object": "error", "message": message, "type": error.kind, "param": None, "code": error.status}
    return json_response(body, error.status)


def too_long(context: int, wanted: int, prompt: int) -> ApiError:
    if prompt >= context:
        text = f"The input ({prompt} tokens) is longer than the model's context length ({context} tokens)."
    else:
        text = (
            f"Requested token count exceeds the model's maximum context length of {context} tokens. You requested a "
            f"total of {prompt + wanted} tokens: {prompt} tokens from the input messages and {wanted} tokens for the "
            "completion. Please reduce the number of tokens in the input messages or the completion to fit within the "
            "limit."
        )
    return ApiError(400, text, "BadRequestError")
