"""POST /v1/responses and /v1/messages, as vLLM 0.21.0 serves them: a chat underneath, whole answers only."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from sparkwright.simulator import asked
from sparkwright.simulator.answers import Answers
from sparkwright.simulator.asked import ApiError, json_response

Body = dict[str, Any]
RESPONSES, MESSAGES = "/v1/responses", "/v1/messages"


async def responses(answers: Answers, request: Request) -> Response:
    body = asked.parsed(await request.body(), RESPONSES, "create_responses", {"input": (str, list)})
    given = body["input"]
    messages = [{"role": "user", "content": given}] if isinstance(given, str) else given
    tools = [{"type": "function", "function": tool} for tool in body.get("tools") or []]
    chat = {"messages": messages, "tools": tools, "max_tokens": body.get("max_output_tokens")}
    message, usage = await _answered(answers, request, body, chat)
    texts: list[Body] = [{"type": "output_text", "text": message["content"] or "", "annotations": []}]
    calls = [
        {"type": "function_call", "call_id": call["id"], **call["function"]} for call in message.get("tool_calls") or ()
    ]
    output: list[Body] = calls or [{"type": "message", "role": "assistant", "content": texts}]
    output = [] if "responses" in answers.rules.wrong() else output
    counts = {"input_tokens": usage["prompt_tokens"], "output_tokens": usage["completion_tokens"]}
    return json_response({"object": "response", "status": "completed", "output": output, "usage": counts})


async def messages(answers: Answers, request: Request) -> Response:
    body = asked.parsed(await request.body(), MESSAGES, "create_messages", {"messages": list})
    tools = [
        {"type": "function", "function": {"name": tool["name"], "parameters": tool["input_schema"]}}
        for tool in body.get("tools") or []
    ]
    chat = {"messages": body["messages"], "tools": tools, "max_tokens": body.get("max_tokens")}
    message, usage = await _answered(answers, request, body, chat)
    content: list[Body] = [{"type": "text", "text": message["content"] or ""}]
    for call in message.get("tool_calls") or ():
        function = call["function"]
        made = {"type": "tool_use", "id": call["id"], "name": function["name"]}
        content.append({**made, "input": json.loads(function["arguments"])})
    content = [] if "messages" in answers.rules.wrong() else content
    counts = {"input_tokens": usage["prompt_tokens"], "output_tokens": usage["completion_tokens"]}
    return json_response({"type": "message", "role": "assistant", "content": content, "usage": counts})


async def _answered(answers: Answers, request: Request, body: Body, chat: Body) -> tuple[Body, Body]:
    """The chat's message and usage. Raises ApiError."""
    if body.get("stream"):
        raise ApiError(501, "(simulated) The simulator does not stream here.", "NotImplementedError")
    wanted = asked.chat({"model": body.get("model"), **chat}, answers.rules)
    tree = json.loads(bytes((await answers.answer(request, wanted, chat=True)).body))
    return tree["choices"][0]["message"], tree["usage"]
