"""The simulator's bytes are those of vLLM 0.21.0, but for ids, times and words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from unit.simulator.inprocess import MakeClient, collapsed, plain_bytes

PARSERS = ["--reasoning-parser", "qwen3", "--enable-auto-tool-choice", "--tool-call-parser", "hermes"]
FLAGS = [*PARSERS, "--enable-prompt-tokens-details"]
WEATHER = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {
    "city": {"type": "string"}}, "required": ["city"]}}}  # fmt: skip


def recorded(captures: Path, label: str, name: str = "sse.json") -> Any:
    return next(e for e in json.loads((captures / name).read_text(encoding="utf-8")) if e["label"] == label)


@pytest.mark.parametrize("label", ["completions-32", "chat-32", "chat-continuous-usage", "chat-tool-required"])
async def test_a_stream_has_the_recorded_chunks_in_the_recorded_order(
    captures: Path, make_client: MakeClient, label: str
) -> None:
    """Role first, one kind of delta, the finishing one, usage without choices, [DONE]: the same bytes."""
    seen = recorded(captures, label)
    client = await make_client(*FLAGS)
    request = {**seen["request"], "max_tokens": 8}
    if label == "chat-continuous-usage" or label == "chat-tool-required":
        await client.post(seen["path"], request)  # their prompt was in the cache when they were recorded
        request["messages"] = [{"role": "user", "content": request["messages"][0]["content"] * 3}]
        await client.post(seen["path"], request)
    reply = await client.post(seen["path"], request)
    assert collapsed([r.decode() for r in reply.reads]) == collapsed([c[1] for c in seen["chunks"]])
    assert reply.usage["completion_tokens"] == 8


async def test_a_whole_answer_has_the_recorded_keys(captures: Path, make_client: MakeClient) -> None:
    """A non-streamed chat has vLLM's fields in vLLM's order, null ones included."""
    seen = recorded(captures, "chat-nonstream")
    client = await make_client(*FLAGS)
    request = {**seen["request"], "messages": [{"role": "user", "content": "the same words again " * 9}]}
    await client.post(seen["path"], request)
    reply = await client.post(seen["path"], request)
    assert plain_bytes(reply.text) == plain_bytes(seen["chunks"][0][1])


@pytest.mark.parametrize("label", ["chat-wrong-model", "chat-bad-body"])
async def test_a_refusal_is_the_recorded_one(captures: Path, make_client: MakeClient, label: str) -> None:
    """Status, body and header names of refused requests are exactly the recorded ones."""
    seen = recorded(captures, label)
    reply = await (await make_client(*FLAGS)).post(seen["path"], seen["request"])
    assert (reply.status, reply.text) == (seen["status"], seen["chunks"][0][1])
    ours = {k for k, _ in reply.headers} - {"x-sparkwright-simulated"}
    assert ours == set(seen["headers"]) - {"date", "server"}


async def test_a_prompt_that_is_too_long_is_refused_in_the_recorded_words(
    captures: Path, make_client: MakeClient
) -> None:
    """vLLM reports `at least` the tokens that fit plus one, and this answer alone lacks the vary header."""
    seen = recorded(captures, "chat-too-long")
    request = {**seen["request"], "messages": [{"role": "user", "content": "x " * 40000}]}
    reply = await (await make_client(*FLAGS)).post(seen["path"], request)
    assert (reply.status, reply.text) == (400, seen["chunks"][0][1])
    assert "vary" not in dict(reply.headers)


@pytest.mark.parametrize("label", ["chat-32", "chat-nonstream"])
async def test_headers_are_the_recorded_ones_and_the_mark(captures: Path, make_client: MakeClient, label: str) -> None:
    """Answers carry vLLM's headers and, added, the mark; date and server are uvicorn."""
    seen = recorded(captures, label)
    reply = await (await make_client(*FLAGS)).post(seen["path"], seen["request"])
    own = [(k, v) for k, v in seen["headers"].items() if k not in ("date", "server", "transfer-encoding")]
    want = [(k, v) for k, v in own if k != "content-length"]
    assert [h for h in reply.headers if h[0] not in ("content-length", "x-sparkwright-simulated")] == want
    assert dict(reply.headers)["x-sparkwright-simulated"] == "1"


async def test_speculation_puts_several_tokens_into_a_chunk(captures: Path, make_client: MakeClient) -> None:
    """Five drafted tokens make 64 arrive in far fewer reads, as recorded, and usage still counts 64."""
    seen = recorded(captures, "ngram-chat", "sse-ngram.json")
    flags = ["--speculative-config", '{"method": "ngram", "num_speculative_tokens": 5}']
    client = await make_client(*flags)
    request = {**seen["request"], "messages": [{"role": "user", "content": "hello"}]}
    reply = await client.post(seen["path"], request)
    assert collapsed([r.decode() for r in reply.reads]) == collapsed([c[1] for c in seen["chunks"]])
    assert reply.usage["completion_tokens"] == 64
    assert len(reply.reads) < 40 and len(seen["chunks"]) < 40


async def test_a_growing_history_meets_its_cache(captures: Path, make_client: MakeClient) -> None:
    """The second turn's usage shows cached tokens, in whole blocks, and the first one's shows none (sse-agent.json)."""
    client = await make_client("--enable-prompt-tokens-details")
    talk = [{"role": "user", "content": "read this file and that one too, please. " * 60}]
    body = {"messages": talk, "max_tokens": 32, "stream": True, "stream_options": {"include_usage": True}}
    first = await client.post("/v1/chat/completions", body)
    said = "".join(c["delta"].get("content", "") for e in first.events for c in e["choices"])
    talk += [{"role": "assistant", "content": said}, {"role": "user", "content": "go on"}]
    second = await client.post("/v1/chat/completions", body)
    cached = second.usage["prompt_tokens_details"]["cached_tokens"]
    assert "prompt_tokens_details" not in first.usage
    assert cached % 16 == 0 and first.usage["prompt_tokens"] <= cached + 16 < second.usage["prompt_tokens"] + 16
    turns = [recorded(captures, f"turn-{i}", "sse-agent.json")["chunks"][-2][1] for i in (0, 1)]
    assert [plain_bytes(r.reads[-2].decode()) for r in (first, second)] == [plain_bytes(t) for t in turns]


async def test_a_forced_tool_call_ends_in_valid_arguments(make_client: MakeClient) -> None:
    """tool_choice=required gives one call: id and name first, arguments that fit, finish `tool_calls`."""
    client = await make_client(*PARSERS)
    body = {"messages": [{"role": "user", "content": "weather?"}], "tools": [WEATHER], "tool_choice": "required"}
    whole = (await client.post("/v1/chat/completions", body)).json["choices"][0]
    events = (await client.post("/v1/chat/completions", {**body, "stream": True})).events
    calls = [c for e in events for c in e["choices"][0]["delta"].get("tool_calls", [])]
    assert whole["finish_reason"] == events[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert list(calls[0]) == ["id", "type", "index", "function"] and calls[0]["function"] == {"name": "get_weather"}
    streamed = "".join(c["function"].get("arguments", "") for c in calls)
    assert json.loads(streamed) == json.loads(whole["message"]["tool_calls"][0]["function"]["arguments"])
    assert "simulated" in json.loads(streamed)["city"]


async def test_auto_tools_are_called_once_and_need_their_flag(make_client: MakeClient) -> None:
    """`auto` calls a tool after the user's word, answers after the tool's, and is refused without the flag."""
    client = await make_client(*PARSERS)
    talk = [{"role": "user", "content": "weather?"}]
    asked = await client.post("/v1/chat/completions", {"messages": talk, "tools": [WEATHER]})
    assert asked.json["choices"][0]["finish_reason"] == "tool_calls"
    after = [*talk, {"role": "tool", "content": "sunny"}]
    told = await client.post("/v1/chat/completions", {"messages": after, "tools": [WEATHER]})
    assert told.json["choices"][0]["finish_reason"] == "stop"
    plain = await (await make_client()).post("/v1/chat/completions", {"messages": talk, "tools": [WEATHER]})
    assert plain.status == 400 and "--enable-auto-tool-choice" in plain.text


async def test_the_same_prompt_has_the_same_answer_and_reports_simulated(make_client: MakeClient) -> None:
    """Answers are a function of the prompt, and begin by reporting what they are."""
    client = await make_client()
    bodies = [{"prompt": p, "max_tokens": 30} for p in ("one", "one", "two")]
    texts = [(await client.post("/v1/completions", b)).json["choices"][0]["text"] for b in bodies]
    assert texts[0] == texts[1] != texts[2]
    assert all(t.startswith("(simulated)") for t in texts)


async def test_a_stop_string_ends_the_answer_before_it(make_client: MakeClient) -> None:
    """`stop` cuts the text, and stop_reason names the string."""
    client = await make_client()
    whole = (await client.post("/v1/completions", {"prompt": "x", "max_tokens": 40})).json["choices"][0]["text"]
    stop = whole.split()[5]
    choice = (await client.post("/v1/completions", {"prompt": "x", "max_tokens": 40, "stop": stop})).json["choices"][0]
    assert choice["text"] == whole[: whole.index(stop)]
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", stop)


async def test_thinking_can_be_switched_off(make_client: MakeClient) -> None:
    """chat_template_kwargs, of the request or the server, decide whether there is reasoning."""
    body = {"messages": [{"role": "user", "content": "hi"}]}
    client = await make_client(*PARSERS)
    off = {**body, "chat_template_kwargs": {"enable_thinking": False}}
    messages = [(await client.post("/v1/chat/completions", b)).json["choices"][0]["message"] for b in (body, off)]
    assert messages[0]["reasoning"] and messages[0]["content"]
    assert messages[1]["reasoning"] is None
    quiet = await make_client(*PARSERS, "--default-chat-template-kwargs.thinking=false")
    message = (await quiet.post("/v1/chat/completions", body)).json["choices"][0]["message"]
    assert message["reasoning"] is None


async def test_structured_output_fits_its_schema(make_client: MakeClient) -> None:
    """response_format=json_schema: the content is JSON of that shape."""
    schema = WEATHER["function"]["parameters"]
    form = {"type": "json_schema", "json_schema": {"name": "w", "schema": schema}}
    body = {"messages": [{"role": "user", "content": "hi"}], "response_format": form}
    reply = await (await make_client()).post("/v1/chat/completions", body)
    assert list(json.loads(reply.json["choices"][0]["message"]["content"])) == ["city"]
