"""Tokens of answers however they arrive, streams that are made to count, and limits of keys."""

from __future__ import annotations

import json
from random import Random
from typing import Any

from sparkwright.gateway.keys import Key
from sparkwright.gateway.usage import ASK, Counting, KeyLoad, Tokens, answer_limit, asks_nothing, enough, tokens
from unit.for_each import for_each

LONG = {"messages": [{"content": "x" * 9000}]}
USAGE = {"prompt_tokens": 11, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 8}}


def sse_event(tree: Any) -> bytes:
    return b"data: " + (tree if isinstance(tree, bytes) else json.dumps(tree, separators=(",", ":")).encode()) + b"\n\n"


def stream(asked: bool = False, status: int = 200, sized: bool = False) -> Counting:
    answer = Counting(asked)
    answer.begins(status, True, sized)
    return answer


def start_counting() -> Counting:
    answer = Counting(asked=True)
    answer.begins(200, False, True)
    return answer


TEXTS = [
    sse_event({"choices": [{"delta": {"content": text}}]}) for text in ("a", '"usage":{"prompt_tokens":9}', "\n\n é")
]
EXTRA, DONE = sse_event({"choices": [], "usage": USAGE}), sse_event(b"[DONE]")


@for_each("seed", range(60))
def test_a_stream_is_counted_and_loses_only_what_was_asked_for_here(seed: int) -> None:
    """The client gets its own events whole, and the count is exact, however events fall into pieces and lines end."""
    dice, end = Random(seed), (b"\n", b"\r\n")[seed % 2]
    events = [one.replace(b"\n", end) for one in (*TEXTS, EXTRA, DONE)]
    data, answer = b"".join(events), stream(asked=True)
    cuts = sorted(dice.sample(range(1, len(data)), dice.randrange(12)))
    got = b"".join(answer.saw(data[a:b]) for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)) + answer.rest()
    assert got == b"".join((*events[:-2], events[-1]))
    assert answer.tokens == Tokens(11, 5, 8)


@for_each("end", [b"\n\n", b"\r\n\r\n"])
def test_each_event_passes_when_it_is_whole(end: bytes) -> None:
    """Guards tokens against being held until the next one, whichever line ends the engine uses."""
    answer = stream(asked=True)
    for text in TEXTS:
        event = text[:-2] + end
        assert (answer.saw(event[:7]), answer.saw(event[7:])) == (b"", event)


def test_a_long_event_flows_on_and_costs_its_length_once() -> None:
    """Guards everybody else's answers: one event of many MB is neither held whole nor read again with each piece."""
    answer, piece, passed, most = stream(asked=True), b"x" * 65_536, 0, 0
    answer.saw(b'data: {"prompt_logprobs": "')
    for _ in range(200):
        passed += len(answer.saw(piece))
        most = max(most, len(answer._filter._held))  # type: ignore[union-attr]
    assert most <= 3 and passed >= 200 * len(piece)
    assert answer._filter._searched <= 3  # type: ignore[union-attr]
    got = answer.saw(b'"}\n\n' + EXTRA + DONE)
    assert got.endswith(b'"}\n\n' + DONE)
    assert answer.tokens == Tokens(11, 5, 8)


CUT: dict[str, tuple[list[Any], int]] = {
    "chat": (
        [
            {"choices": [{"delta": {"role": "assistant", "content": ""}}]},
            {"choices": [{"delta": {"reasoning_content": "so"}}]},
            {"choices": [{"delta": {"content": "a\n\ndata: b"}}]},
            {"choices": [{"delta": {"tool_calls": [{"function": {"arguments": "{"}}]}}]},
            {"choices": [{"delta": {"content": "rest"}, "finish_reason": "stop"}]},
        ],
        3,
    ),
    "messages": (
        [
            {"type": "message_start", "message": {"content": [], "usage": {"input_tokens": 3, "output_tokens": 0}}},
            {"type": "content_block_start", "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}},
            {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": "{"}},
        ],
        2,
    ),
    "responses": (
        [
            {"type": "response.created", "response": {"output": [], "text": "x"}},
            {"type": "response.output_text.delta", "delta": "a"},
            {"type": "response.output_text.done", "text": "a"},
        ],
        1,
    ),
}


@for_each("api", list(CUT))
def test_a_cut_stream_has_at_least_a_token_for_each_event_with_text(api: str) -> None:
    """Not for roles, ends and repetitions of the whole text; however the events fall into reads."""
    trees, least = CUT[api]
    data = b"".join(sse_event(tree) for tree in trees)
    for step in (1, 7, len(data)):
        answer = stream()
        for at in range(0, len(data), step):
            answer.saw(data[at : at + step])
        assert answer.at_least == least


def test_what_is_no_stream_has_no_least() -> None:
    """A whole answer that was cut shows nothing of its tokens; a stream without lines is not kept."""
    for answer in (start_counting(), stream()):
        for _ in range(40):
            answer.saw(b'{"content":"a' + b"x" * 4096)
        assert answer.at_least == 0


def test_tokens_pass_as_they_came() -> None:
    """A piece of whole events goes on as the same bytes, before the next is there."""
    answer = stream(asked=True)
    for text in TEXTS:
        assert answer.saw(text) is text
    assert answer.tokens is None


def test_an_answer_that_counts_is_left_as_it_is() -> None:
    """Nothing is taken out where the client asked itself, where a length is announced, and of what is no stream."""
    data = b"".join((*TEXTS, EXTRA, DONE))
    for answer in (stream(), stream(asked=True, sized=True), start_counting()):
        assert answer.saw(data[:50]) + answer.saw(data[50:]) + answer.rest() == data
        assert answer.tokens == Tokens(11, 5, 8)


def test_usage_of_every_api_is_understood() -> None:
    """Chat, messages whose start has the prompt, responses with details; the last count wins; text is no count."""
    start = sse_event({"message": {"usage": {"input_tokens": 7, "output_tokens": 0}}})
    assert tokens(start, sse_event({"usage": {"output_tokens": 4}})) == Tokens(7, 4)
    response = {"usage": {"input_tokens": 3, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 1}}}
    assert tokens(json.dumps(response).encode()) == Tokens(3, 2, 1)
    assert tokens(json.dumps({"data": [], "usage": {"prompt_tokens": 6, "total_tokens": 6}}).encode()) == Tokens(6)
    assert tokens(sse_event({"text": '"usage": {"prompt_tokens": 1}'})) is None
    for bad in (b'"usage":{', b'"usage":{"prompt_tokens":-1}', b'"usage":{"prompt_tokens":true}', b'"usage":{' * 600):
        assert tokens(bad) is None
    assert tokens(b'"usage":{"completion_tokens":1}' * 20_000) == Tokens(0, 1)


def test_the_count_survives_a_long_answer() -> None:
    """The kept part of an answer is bounded, and its end is in it."""
    answer = start_counting()
    for _ in range(400):
        answer.saw(b"x" * 4096)
    answer.saw(b'"usage":{"prompt_tokens":1,"completion_tokens":2}}')
    assert answer.tokens == Tokens(1, 2)
    assert len(answer._tail) < 200_000


@for_each(
    "tree, asks",
    [
        ({"stream": True}, True),
        ({"model": "m", "stream": True, **LONG}, True),
        ({**LONG, "model": "m", "stream": True, "temperature": 0.5}, True),
        ({**LONG, "stream": True, "tools": [{"a": "y" * 9000}]}, True),
        ({"stream": False}, False),
        ({"messages": [{"content": '"stream": true'}]}, False),
        ({"tools": [{"default": {"stream": True}}], **LONG}, False),
        ({**LONG, "tools": [{"stream": True}]}, False),
        ({"stream": True, "stream_options": {"include_usage": False}}, False),
        ({"a": {"b": 1, "stream": True}}, False),
        ([{"stream": True}], False),
    ],
)
def test_only_streams_that_ask_for_nothing_are_made_to_count(tree: Any, asks: bool) -> None:
    """A `stream` inside a message or a tool is none; a client's own options stay; what is sent is JSON as before."""
    for body in (json.dumps(tree).encode(), json.dumps(tree, indent=1).encode()):
        assert asks_nothing(body) is asks
        if asks:
            made = json.loads(body[:1] + ASK + body[1:])
            assert made == {**tree, "stream_options": {"include_usage": True}}


@for_each("body", [b"", b"{", b'{"stream": true', b'"stream": true}', b'{"stream":true}]', b"[" * 9000 + b'"stream"'])
def test_what_is_no_json_is_left_to_the_engine(body: bytes) -> None:
    """Nothing is raised, whatever a client sends."""
    asks_nothing(body)


@for_each(
    "tree, limited",
    [
        ({"model": "m", "messages": []}, True),
        ({"messages": [], "stream": True}, True),
        ({"messages": [], "max_tokens": 5}, False),
        ({"messages": [], "max_completion_tokens": 5}, False),
        ({"messages": [{"content": 'set "max_tokens" to 5'}]}, True),
        ({"messages": [{"content": "x" * 12_000}]}, False),
        ([1], False),
    ],
)
def test_an_answer_without_a_limit_gets_one(tree: Any, limited: bool) -> None:
    """A client's own limit stays, and a prompt that may need the room is left alone: an engine would refuse it."""
    body = json.dumps(tree).encode()
    added = answer_limit(body, 2000, 10_000)
    assert added == (b'"max_tokens":2000,' if limited else b"")
    if limited:
        assert json.loads(body[:1] + ASK + added + body[1:])["max_tokens"] == 2000
    assert answer_limit(body, 0, 10_000) == answer_limit(body, 2000, 0) == b""


def test_limits_of_a_key() -> None:
    """Each has its own wait: until the oldest request is a minute old, a second, and the next day by UTC."""
    key = Key("ci", "", per_minute=3, at_once=2, tokens_a_day=100)
    assert enough(key, KeyLoad(0.0, 1, 99), 0.0) is None
    waits = [enough(key, load, 86400.0 * 3 - 5) for load in (KeyLoad(9.8), KeyLoad(0.0, 2), KeyLoad(0.0, 0, 100))]
    assert [one and (one.status, one.kind, one.retry_after) for one in waits] == [
        *((429, "requests", 10), (429, "requests", 1), (429, "tokens", 5)),
    ]
    assert enough(Key("free", ""), KeyLoad(0.0, 999, 1 << 50), 0.0) is None
    assert json.loads(waits[0].body)["error"]["code"] == "rate_limit_exceeded" if waits[0] else False
