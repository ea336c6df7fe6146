"""JSON that servers and clients send: ValueError or a value, and nothing else."""

from __future__ import annotations

import pytest

from sparkwright.app.bench.probe import _tree
from sparkwright.app.bench.target import server_message
from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.probed import Reply
from sparkwright.evals.heard import CHAT, ProbeRequest, read
from unit.for_each import for_each

DEEP = "[" * 200_000
ODD = [DEEP, '{"a":' * 100_000, "1e999", '{"index": -1e999}', "", "{", '"\\ud800', "nul"]


@for_each("text", ODD)
def test_what_cannot_be_read_is_a_value_error(text: str) -> None:
    """A nest without end and a number beyond all bounds included: those ended commands with a traceback."""
    with pytest.raises(ValueError):
        read_json(text)
    assert _tree(text) == {}


def test_what_can_be_read_is_as_before() -> None:
    """Numbers keep their kind."""
    assert read_json(b'{"a": [1, 1.5, -0.0, 1e3, null]}') == {"a": [1, 1.5, 0.0, 1000.0, None]}


def answered(logprob: str, index: str = "0") -> tuple[str, str]:
    token = f'{{"token": "a", "logprob": {logprob}}}'
    message = f'{{"tool_calls": [{{"index": {index}, "function": {{"name": "f", "arguments": "{{}}"}}}}]}}'
    choice = f'"logprobs": {{"content": [{token}]}}, "finish_reason": "stop"'
    whole = f'{{"choices": [{{"message": {message}, {choice}}}]}}'
    return whole, f'data: {{"choices": [{{"delta": {message}, {choice}}}]}}\n\ndata: [DONE]\n\n'


@for_each("logprob, index", [("1e999", "0"), ("9" * 400, "0"), ("-0.5", "1e999"), ("-0.5", "Infinity")])
def test_an_answer_with_odd_numbers_is_no_answer(logprob: str, index: str) -> None:
    """`connect` and `eval probes` ended with a traceback on these."""
    whole, stream = answered(logprob, index)
    if index == "0":
        assert read(ProbeRequest({}, CHAT), Reply(200, {}, whole)).trouble
    assert read(ProbeRequest({"stream": True}, CHAT), Reply(200, {}, stream)).trouble


def test_an_error_that_nests_without_end_is_shown_as_text() -> None:
    """`bench`, `eval` and `connect` ended with a traceback on it."""
    assert server_message(Reply(500, {}, DEEP)).startswith("[[[")
