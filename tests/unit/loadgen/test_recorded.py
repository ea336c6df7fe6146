"""Files of recorded requests."""

import json

import pytest

from sparkwright.domain.errors import UsageError
from sparkwright.loadgen.profiles import shipped_file
from sparkwright.loadgen.recorded import Recorded, parse
from unit.for_each import for_each

SHAREGPT = [
    {"id": "a", "conversations": [{"from": "human", "value": "Hi?"}, {"from": "gpt", "value": "Hello."}]},
    {"id": "b", "conversations": [{"from": "gpt", "value": "No question."}, {"from": "human", "value": "Hm."}]},
    {"id": "c", "conversations": [{"from": "human", "value": "Alone"}]},
]


def json_lines(*records: object) -> str:
    return "\n".join(json.dumps(record) for record in records) + "\n"


def test_our_own_lines() -> None:
    """A prompt or messages, with length of the answer and time where they are known."""
    text = json_lines(
        {"prompt": "One", "output_tokens": 5, "at": 0.5}, {"messages": [{"role": "user", "content": "Two"}]}
    )
    assert parse(text, "f") == (
        Recorded(prompt="One", output_tokens=5, at=0.5),
        Recorded(messages='[{"role": "user", "content": "Two"}]'),
    )


def test_a_batch_file_of_openai() -> None:
    """The request is in `body`; either name of the limit counts."""
    body = {"model": "x", "messages": [{"role": "user", "content": "Hi"}], "max_completion_tokens": 9}
    (one,) = parse(json_lines({"custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": body}), "f")
    assert (json.loads(one.messages), one.output_tokens) == (body["messages"], 9)


def test_conversations_of_sharegpt() -> None:
    """The first question with its answer; records without both are passed over, as other benchmarks do."""
    assert parse(json.dumps(SHAREGPT), "f") == (Recorded(prompt="Hi?", answer="Hello."),)


def test_a_trace_of_mooncake() -> None:
    """Milliseconds become seconds; the blocks report what is shared."""
    text = json_lines({"timestamp": 1500, "input_length": 700, "output_length": 12, "hash_ids": [4, 9]})
    assert parse(text, "f") == (Recorded(output_tokens=12, at=1.5, input_tokens=700, blocks=(4, 9)),)


def test_a_limit_stops_reading() -> None:
    """The rest of the file is not even inspected."""
    assert len(parse(json_lines({"prompt": "1"}, {"prompt": "2"}) + "no json", "f", limit=2)) == 2


@for_each(
    "text, told",
    [
        ('{"prompt": "fine"}\n{"prompt": ', "f:2: this is no JSON"),
        ('{"prompt": "fine"}\n\n[1]', "f:3: a request is a JSON object, found list"),
        ('{"question": "?"}', "f:1: neither prompt"),
        ('{"prompt": ""}', "f:1: `prompt` is a text"),
        ('{"messages": []}', "f:1: `messages` is a list"),
        ('{"prompt": "x", "output_tokens": -3}', "f:1: tokens are a whole number, found -3"),
        ('{"prompt": "x", "at": "noon"}', "f:1: a time is a number"),
        ('{"input_length": 512, "hash_ids": [1, 2, 3]}', "f:1: 3 blocks of 512 tokens are not 512 tokens"),
        ('{"input_length": 512, "hash_ids": ["a"]}', "f:1: `hash_ids` is a list of whole numbers"),
        ("", "f: no request in it"),
        ("[]", "f: no request in it"),
    ],
)
def test_what_cannot_be_sent_is_named_with_its_line(text: str, told: str) -> None:
    """One clear message, never half a file."""
    with pytest.raises(UsageError, match=told.replace("(", r"\(").replace("[", r"\[")):
        parse(text, "f")


def test_the_shipped_trace_is_good() -> None:
    """Twenty requests, in the order of their times, most of which share their beginning with one before."""
    found = parse(shipped_file("shipped:office.jsonl"), "office.jsonl")
    assert len(found) == 20
    assert [one.at for one in found] == sorted(one.at for one in found)
    assert len({one.blocks[0] for one in found}) < 10
    assert shipped_file("mine.jsonl") is None
