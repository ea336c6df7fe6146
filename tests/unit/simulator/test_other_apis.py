"""/v1/responses and /v1/messages of the simulator: whole and streamed answers of the same request."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

from unit.simulator.inprocess import InProcessReply, MakeClient

FLAGS = ["--reasoning-parser", "qwen3", "--enable-auto-tool-choice", "--tool-call-parser", "hermes"]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ORDER = 'Call the function weather with these arguments: {"city": "Bern"}'
MESSAGES_TOOL = {"name": "weather", "input_schema": SCHEMA}
RESPONSES_TOOL = {"type": "function", "name": "weather", "parameters": SCHEMA}


def events(reply: InProcessReply) -> list[Any]:
    """The events of a stream with named events; each name is also the `type` of its data."""
    found = []
    for event in reply.text.split("\n\n"):
        name, _, data = event.partition("\ndata: ")
        if data:
            found.append(json.loads(data))
            assert name == f"event: {found[-1]['type']}"
    return found


def event_kinds(found: list[Any]) -> list[str]:
    return [kind for kind, _ in groupby(event["type"] for event in found)]


async def test_a_message_streams_as_anthropic_has_it(make_client: MakeClient) -> None:
    """Thinking and the call are blocks of their own, opened, filled and closed, and join to the whole answer."""
    client = await make_client(*FLAGS)
    body = {"model": "tiny-qwen3", "max_tokens": 200, "tools": [MESSAGES_TOOL]}
    body |= {"system": "Be brief.", "messages": [{"role": "user", "content": [{"type": "text", "text": ORDER}]}]}
    whole = (await client.post("/v1/messages", body)).json
    found = events(await client.post("/v1/messages", {**body, "stream": True}))
    block = ["content_block_start", "content_block_delta", "content_block_stop"]
    assert event_kinds(found) == ["message_start", *block, *block, "message_delta", "message_stop"]
    deltas = [event["delta"] for event in found if event["type"] == "content_block_delta"]
    thought, call = whole["content"]
    assert "".join(delta.get("thinking", "") for delta in deltas) == thought["thinking"]
    assert json.loads("".join(delta.get("partial_json", "") for delta in deltas)) == call["input"] == {"city": "Bern"}
    assert found[-2]["delta"]["stop_reason"] == whole["stop_reason"] == "tool_use"
    assert found[-2]["usage"] == whole["usage"]
    assert found[0]["message"]["usage"]["input_tokens"] == whole["usage"]["input_tokens"]


async def test_a_response_streams_as_openai_has_it(make_client: MakeClient) -> None:
    """Events are numbered without a gap, items open and close, and the last event has all of the whole answer."""
    client = await make_client(*FLAGS)
    body = {"model": "tiny-qwen3", "instructions": "Be brief.", "input": ORDER, "tools": [RESPONSES_TOOL]}
    whole = (await client.post("/v1/responses", body)).json
    found = events(await client.post("/v1/responses", {**body, "stream": True}))
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    assert event_kinds(found)[:3] == ["response.created", "response.in_progress", "response.output_item.added"]
    assert event_kinds(found)[-4:] == [
        *("response.function_call_arguments.delta", "response.function_call_arguments.done"),
        *("response.output_item.done", "response.completed"),
    ]
    last = found[-1]["response"]
    assert [item["type"] for item in last["output"]] == ["reasoning", "function_call"]
    assert json.loads(last["output"][1]["arguments"]) == {"city": "Bern"}
    assert last["usage"] == whole["usage"]


async def test_what_a_tool_returned_is_the_last_turn(make_client: MakeClient) -> None:
    """Results of both APIs reach the model as a tool's message: it answers, and calls nothing again."""
    client = await make_client(*FLAGS)
    said = [{"type": "text", "text": f"{ORDER} Reply with exactly what the function returned."}]
    used = [{"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Bern"}}]
    given = [{"type": "tool_result", "tool_use_id": "c1", "content": "snow"}, {"type": "text", "text": "(reminder)"}]
    turns = [("user", said), ("assistant", used), ("user", given)]
    body = {"max_tokens": 200, "tools": [MESSAGES_TOOL], "messages": [{"role": r, "content": c} for r, c in turns]}
    message = (await client.post("/v1/messages", body)).json
    assert message["content"][-1] == {"type": "text", "text": "snow"}
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": said[0]["text"]}]},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Bern"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "snow"},
    ]
    response = (await client.post("/v1/responses", {"input": items, "tools": [RESPONSES_TOOL]})).json
    assert response["output"][-1]["content"][0]["text"] == "snow"


async def test_a_cut_answer_is_named_so(make_client: MakeClient) -> None:
    """An answer that ends at its limit is incomplete for both, whole and streamed."""
    client = await make_client()
    asked: Any = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 3, "stream": True}
    assert events(await client.post("/v1/messages", asked))[-2]["delta"]["stop_reason"] == "max_tokens"
    asked = {"input": "hi", "max_output_tokens": 3, "stream": True}
    last = events(await client.post("/v1/responses", asked))[-1]
    assert (last["type"], last["response"]["status"]) == ("response.incomplete", "incomplete")


async def test_tokens_of_a_message_can_be_counted(make_client: MakeClient) -> None:
    """count_tokens has the number that the answer's usage has."""
    client = await make_client()
    asked = {"messages": [{"role": "user", "content": "How many are these?"}], "max_tokens": 3}
    counted = (await client.post("/v1/messages/count_tokens", asked)).json["input_tokens"]
    assert counted == (await client.post("/v1/messages", asked)).json["usage"]["input_tokens"]
