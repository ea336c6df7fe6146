"""POST /v1/responses and /v1/messages, as vLLM 0.21.0 serves them: a chat underneath, whole or streamed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from sparkwright.simulator import asked
from sparkwright.simulator.answers import Answers
from sparkwright.simulator.asked import json_response
from sparkwright.simulator.directives import plain_text
from sparkwright.simulator.other_events import Messages, Responses, blocks_of, stream_steps

Body = dict[str, Any]
RESPONSES, MESSAGES, COUNT = "/v1/responses", "/v1/messages", "/v1/messages/count_tokens"
_STREAM = {"stream": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True}}


async def responses(answers: Answers, request: Request) -> Response:
    body = asked.parsed(await request.body(), RESPONSES, "create_responses", {"input": (str, list)})
    given = body["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    system = [{"role": "system", "content": body["instructions"]}] if body.get("instructions") else []
    tools = [{"type": "function", "function": tool} for tool in body.get("tools") or [] if "parameters" in tool]
    chat: Body = {"messages": [*system, *map(_item, filter(_spoken, items))], "tools": tools}
    chat |= {"max_tokens": body.get("max_output_tokens"), **_choice(body.get("tool_choice"))}
    return await _answered(answers, request, body | {"chat": chat}, Responses(_model(answers, body)))


async def messages(answers: Answers, request: Request) -> Response:
    body = asked.parsed(await request.body(), MESSAGES, "create_messages", {"messages": list})
    chat = {**_anthropic(body), "max_tokens": body.get("max_tokens")}
    return await _answered(answers, request, body | {"chat": chat}, Messages(_model(answers, body)))


async def count_tokens(answers: Answers, request: Request) -> Response:
    body = asked.parsed(await request.body(), COUNT, "count_tokens", {"messages": list})
    counted = asked.check_chat({"model": body.get("model"), **_anthropic(body), "max_tokens": 1}, answers.rules)
    return json_response({"input_tokens": len(counted.prompt)})


def _anthropic(body: Body) -> Body:
    """Messages, tools and the choice of one, as a chat has them."""
    system = [{"role": "system", "content": plain_text(body["system"])}] if body.get("system") else []
    tools = [
        {"type": "function", "function": {"name": tool["name"], "parameters": tool["input_schema"]}}
        for tool in body.get("tools") or []
        if "input_schema" in tool
    ]
    turns = [turn for message in body["messages"] for turn in _turns(message)]
    turns.sort(key=lambda turn: turn["role"] != "system")  # Claude Code also sends some after what the user said
    return {"messages": [*system, *turns], "tools": tools, **_choice(body.get("tool_choice"))}


def _model(answers: Answers, body: Body) -> str:
    return str(body.get("model") or answers.rules.names[0])


def _choice(choice: Any) -> Body:
    """`tool_choice` of a chat: named, or a word."""
    if isinstance(choice, dict):
        kind, name = choice.get("type"), choice.get("name")
        return {"tool_choice": {"function": {"name": name}} if name else {"any": "required"}.get(str(kind), kind)}
    return {"tool_choice": choice} if choice else {}


def _turns(message: Body) -> Iterator[Body]:
    """One message of Anthropic's: what its tools returned comes after its text, so that it is the last."""
    parts = message.get("content")
    parts = parts if isinstance(parts, list) else [{"type": "text", "text": parts}]
    calls = [_call(p["id"], p["name"], json.dumps(p.get("input") or {})) for p in parts if p.get("type") == "tool_use"]
    text = plain_text(parts)
    if text or calls:
        yield {"role": message.get("role", "user"), "content": text} | ({"tool_calls": calls} if calls else {})
    for part in parts:
        if part.get("type") == "tool_result":
            yield {"role": "tool", "content": plain_text(part.get("content"))}


def _call(name: str, function: str, arguments: str) -> Body:
    return {"id": name, "type": "function", "function": {"name": function, "arguments": arguments}}


def _spoken(item: Body) -> bool:
    return item.get("type", "message") in ("message", "function_call", "function_call_output")


def _item(item: Body) -> Body:
    """One item of the Responses API as a chat's message."""
    kind = item.get("type", "message")
    if kind == "function_call":
        call = _call(item["call_id"], item["name"], item["arguments"])
        return {"role": "assistant", "content": "", "tool_calls": [call]}
    if kind == "function_call_output":
        return {"role": "tool", "content": plain_text(item.get("output"))}
    role = item.get("role", "user")
    return {"role": "system" if role == "developer" else role, "content": plain_text(item.get("content"))}


async def _answered(answers: Answers, request: Request, body: Body, form: Messages | Responses) -> Response:
    """The answer in the client's API, whole or streamed. Raises ApiError."""
    streamed = _STREAM if body.get("stream") else {}
    wanted = asked.check_chat({"model": body.get("model"), **body["chat"], **streamed}, answers.rules)
    answer = await answers.answer(request, wanted, chat=True)
    silent = ("messages" if isinstance(form, Messages) else "responses") in answers.rules.wrong()
    if isinstance(answer, StreamingResponse):
        headers = {"content-type": "text/event-stream; charset=utf-8"}
        return StreamingResponse(_events(answer.body_iterator, form, silent), 200, headers)
    tree = json.loads(bytes(answer.body))
    (choice,) = tree["choices"]
    blocks = [] if silent else blocks_of(choice["message"])
    return json_response(form.whole(blocks, choice["finish_reason"], tree["usage"]))


async def _events(chunks: Any, form: Messages | Responses, silent: bool) -> AsyncIterator[bytes]:
    """silent: a fault leaves out what it answers."""
    try:
        async for step in stream_steps(chunks):
            if not (silent and step.what in ("open", "more", "close")):
                yield b"".join(form.events(step))
    finally:
        await chunks.aclose()  # a client that leaves frees the engine
