"""Answers of servers that send anything."""

import json

import pytest

from sparkwright.domain.probed import Reply
from sparkwright.evals.heard import CHAT, MESSAGES, RESPONSES, ProbeRequest, ToolCall, read
from sparkwright.evals.probe import ProbeInputs
from sparkwright.evals.schema import problems

ODD = (
    "",
    "null",
    "[]",
    "7",
    '"text"',
    "{}",
    '{"choices": null}',
    '{"choices": []}',
    '{"choices": [null]}',
    '{"choices": [{"message": 5}]}',
    '{"choices": [{"message": {"content": ["a", {"b": 1}]}}]}',
    '{"choices": [{"message": {"tool_calls": [{"function": {"arguments": {"a": 1}}}]}}]}',
    '{"choices": [{"message": {"content": "x"}, "logprobs": {"content": [{"token": 1}]}}]}',
    '{"output": [3]}',
    '{"content": [3]}',
    '{"error": {"message": "no"}}',
    "[" * 100_000,
    '{"choices":' + "[" * 100_000,
    "data: {}\n\n",
    'data: {"choices": [{"delta": {"tool_calls": [{"index": "x"}]}}]}\n\n',
    'data: {"choices": [{"delta": {"content": "cut"}}]}\n\n',
    'data: {"error": {"message": "dead"}}\n\ndata: [DONE]\n\n',
)


@pytest.mark.parametrize("path", (CHAT, RESPONSES, MESSAGES))
@pytest.mark.parametrize("streamed", (False, True))
def test_odd_bodies_are_trouble(path: str, streamed: bool) -> None:
    """A 200 that is no answer is named, never raised, never taken for an answer."""
    for body in ODD:
        heard = read(ProbeRequest({"stream": streamed}, path), Reply(200, body=body))
        assert heard.trouble, body[:60]


def test_html_is_no_answer() -> None:
    """A proxy's page is neither a refusal nor a defect of the API: there is no answer."""
    heard = read(ProbeRequest({}), Reply(200, body="<html><body>Welcome</body></html>"))
    assert (heard.status, "HTML" in heard.trouble) == (0, True)


def test_a_refusal_is_one() -> None:
    """Its message is kept."""
    heard = read(ProbeRequest({}), Reply(400, body='{"error": {"message": "no logprobs here"}}'))
    assert (heard.refused, heard.trouble) == (True, "HTTP 400: no logprobs here")


def test_a_stream_is_joined() -> None:
    """Text, reasoning, calls in pieces, usage: as in a whole answer."""
    deltas = [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "hm"},
        {"content": "a"},
        {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "f", "arguments": '{"x"'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}, {"index": 1, "function": {"name": "g"}}]},
    ]
    events = [{"choices": [{"delta": delta}]} for delta in deltas]
    events += [
        {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]},
        {"choices": [], "usage": {"total_tokens": 3}},
    ]
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    heard = read(ProbeRequest({"stream": True}), Reply(200, body=body))
    assert (heard.content, heard.reasoning, heard.finish) == ("a", "hm", "tool_calls")
    assert heard.calls == (ToolCall("f", '{"x": 1}', "c1"), ToolCall("g", "", ""))
    assert heard.usage == {"total_tokens": 3}


def test_line_ends_of_unicode_are_text() -> None:
    """An event ends at a line feed or carriage return only."""
    text = "a\u2028b\x85c\x0bd"
    event = json.dumps({"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]}, ensure_ascii=False)
    for end in ("\n\n", "\r\n\r\n", "\r\r"):
        assert (
            read(ProbeRequest({"stream": True}), Reply(200, body=f"data: {event}{end}data: [DONE]{end}")).content
            == text
        )


def test_schemas() -> None:
    """A boolean is no integer; unknown, missing and misplaced values are named with their place."""
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "l": {"type": "array", "items": {"enum": ["a"]}, "minItems": 1}},
        "required": ["n", "l"],
        "additionalProperties": False,
    }
    assert list(problems({"n": 1, "l": ["a"]}, schema)) == []
    assert list(problems({"n": True, "l": ["b"]}, schema)) == ["$.n: bool, not integer", "$.l[0]: 'b' is none of ['a']"]
    assert list(problems({"l": [], "z": 1}, schema)) == [
        "$.n is missing",
        "$.l: 0 items, at least 1 expected",
        "$.z is not in the schema",
    ]
    assert list(problems(None, schema)) == ["$: NoneType, not object"]


def test_room_for_reasoning() -> None:
    """A model that thinks although that is switched off gets room where an answer is needed, and none elsewhere."""
    assert ProbeInputs(reasons=True, thinking=True).chat("x", 64).body["max_tokens"] == 64 + 2048
    assert ProbeInputs(reasons=True).short("x", 64).body["max_tokens"] == 64
    assert ProbeInputs(thinking=True).chat("x", 64).body["max_tokens"] == 64
