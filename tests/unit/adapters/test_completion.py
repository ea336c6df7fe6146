"""Odd answers of a server: the server is broken then, never we."""

import json

import pytest

from sparkwright.adapters.completion import Broken, Completion
from unit.for_each import for_each

ODD = (
    '{"choices": 5}',
    '{"choices": {"a": 1}}',
    '{"choices": [{"delta": "x"}]}',
    '{"choices": [{"delta": [1]}]}',
    '{"choices": [{"delta": {"content": 5}}]}',
    '{"choices": [{"delta": {"content": {"a": "b"}}}]}',
    '{"choices": [{"delta": {"reasoning": [1]}}]}',
    '{"usage": {"completion_tokens": 1e999}}',
    '{"usage": {"completion_tokens": NaN}}',
    '{"usage": {"prompt_tokens": "many"}}',
    '{"usage": {"completion_tokens": -1}}',
    '{"usage": {"completion_tokens": [1]}}',
    "[" * 200_000,
    '{"a":' * 200_000,
    "[]",
    "5",
    "1" * 5000,
)


@for_each("data", ODD, ids=lambda data: data[:40])
def test_an_odd_event_is_a_broken_stream(data: str) -> None:
    """Guards that what no engine reports is reported as the server's answer, and never ends us."""
    with pytest.raises(Broken):
        Completion().take(data, 1.0)


@pytest.mark.parametrize("data", ['{"choices": null}', '{"choices": [null]}', '{"choices": [{"delta": null}]}', "{}"])
def test_empty_parts_are_no_fault(data: str) -> None:
    """Guards the last event with usage alone, and roles without content."""
    heard = Completion()
    heard.take(data, 1.0)
    heard.take(json.dumps({"choices": [{"delta": {"content": "a"}}], "usage": {"completion_tokens": 2}}), 2.0)
    assert (heard.text, heard.completion_tokens, heard.first) == ("a", 2, 2.0)
