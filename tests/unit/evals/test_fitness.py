"""The one request of `connect`: what is asked in each protocol, and what answers are taken for."""

from __future__ import annotations

import json
from typing import Any

from sparkwright.domain.probed import Reply
from sparkwright.evals.fitness import read_answer, request, troubles
from sparkwright.gateway.clients import client

CLAUDE, CODEX, CURL, OPENCODE = (client(name) for name in ("claude-code", "codex", "curl", "opencode"))


def stream(*found: Any) -> Reply:
    return Reply(200, body="".join(f"event: x\ndata: {json.dumps(one)}\n\n" for one in found))


def trouble_texts(row: Any, reply: Reply, context: int = 200_000) -> list[tuple[bool, str]]:
    return [(one.fails, one.text) for one in troubles(row, read_answer(request(row), reply), context)]


def chat_reply(delta: dict[str, Any]) -> Reply:
    return stream({"choices": [{"delta": delta, "finish_reason": "stop"}]})


def message(*blocks: dict[str, Any], end: bool = True) -> Reply:
    found: list[Any] = [{"type": "message_start", "message": {}}]
    for place, block in enumerate(blocks):
        given = json.dumps(block.get("input", {}))
        found += [{"type": "content_block_start", "index": place, "content_block": {**block, "input": {}}}]
        found += [{"type": "content_block_delta", "index": place, "delta": {"partial_json": given}}]
    ended = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 3}}
    return stream(*found, *([ended] if end else []))


CALL = {"type": "tool_use", "id": "c", "name": "get_weather", "input": {"city": "Bern"}}
ITEM = {"type": "function_call", "name": "get_weather", "arguments": "{}", "call_id": "c"}


def test_good_answers_of_all_protocols_have_no_trouble() -> None:
    """A call where tools are needed, a word where not."""
    whole = {"type": "response.completed", "response": {"status": "completed", "output": [ITEM]}}
    assert trouble_texts(CODEX, stream(whole)) == []
    assert trouble_texts(CLAUDE, message(CALL)) == []
    assert trouble_texts(CURL, chat_reply({"content": "yes"})) == []


def test_what_breaks_a_client_fails() -> None:
    """A missing route, tools refused or as text, broken arguments, a cut stream: each with its own sentence."""
    missing = trouble_texts(CODEX, Reply(404, body='{"error": {"message": "no route"}}'))
    assert missing == [(True, "/v1/responses is not served: HTTP 404: no route")]
    refused = trouble_texts(OPENCODE, Reply(400, body='{"error": {"message": "auto tool choice requires"}}'))
    assert refused[0][1].startswith("it refuses tools")
    assert trouble_texts(OPENCODE, chat_reply({"content": '<tool_call>{"name": 1}'}))[0][0]
    assert "did not" in trouble_texts(OPENCODE, chat_reply({"content": "It is sunny."}))[0][1]
    broken = {"index": 0, "function": {"name": "get_weather", "arguments": "{city"}}
    assert "no JSON object" in trouble_texts(OPENCODE, chat_reply({"tool_calls": [broken]}))[0][1]
    assert trouble_texts(CLAUDE, message(CALL, end=False)) == [(True, "no stream of this API, or one that was cut")]


def test_what_will_be_noticed_warns() -> None:
    """Thinking as text, nothing but thinking, a small context, one that is not reported."""
    assert trouble_texts(CURL, chat_reply({"content": "<think>hm</think> yes"}))[0][0] is False
    assert "it thought for all" in trouble_texts(CURL, chat_reply({"reasoning": "hm"}))[0][1]
    assert trouble_texts(CLAUDE, message(CALL), 4096)[0][1].startswith("4,096 tokens of context")
    assert "does not report its context" in trouble_texts(CLAUDE, message(CALL), 0)[0][1]


def test_whatever_comes_is_some_trouble() -> None:
    """Bodies of a hostile server are never an error of ours."""
    odd: list[Any] = [1, None, [], {"type": "content_block_delta"}, {"type": "content_block_start", "index": []}]
    odd += [{"type": "response.completed", "response": 5}, {"type": "message_delta", "delta": 7}, {"type": "error"}]
    for row in (CLAUDE, CODEX, OPENCODE, CURL):
        for one in odd:
            assert trouble_texts(row, stream(one))[0][0], one
        assert trouble_texts(row, Reply(200, body="<html>"))[0][0]
