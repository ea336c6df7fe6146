"""JSON that servers and clients send: ValueError or a value, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import sparkwright
from sparkwright.adapters.hub_headers import quantized
from sparkwright.app.bench.probe import _tree
from sparkwright.app.bench.target import server_message
from sparkwright.domain.command import Completed
from sparkwright.domain.facts import Unknown
from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.probed import Reply
from sparkwright.evals.heard import CHAT, ProbeRequest, read
from sparkwright.facts import engine_image, keepers, ranks, store
from unit.for_each import for_each

DEEP = "[" * 200_000
# Files that read JSON of their own making, what ships with them, or catch the nest themselves (a hot path, a hook).
OWN = {
    "adapters/extras.py",
    "adapters/plan_history.py",
    "adapters/sqlite/run_records.py",
    "adapters/sqlite/store.py",
    "app/bench/prompt_corpus.py",
    "app/serve/running.py",
    "causes/load.py",
    "cli/demo_story.py",
    "domain/foreign_json.py",
    "engines/advice.py",
    "engines/flag_data.py",
    "facts/model_config.py",
    "gateway/decide.py",
    "loadgen/sessions.py",
    "loadgen/texts.py",
    "logscan/envelope.py",
    "logscan/system_errors.py",
    "recipes/importers/flags.py",
    "supervisor/home.py",
    "supervisor/proxy/caddy_watch.py",
}
# Programs that run without our modules, and the simulator, which only we ask.
APART = ("remote/", "engines/launchers/", "simulator/")
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


READERS: dict[str, Callable[[str], object]] = {
    "supervised": lambda text: store.parse_supervised(Completed(0, text), "spark-1"),
    "incidents": lambda text: store.parse_incidents(Completed(0, text)),
    "container": lambda text: ranks.parse(Completed(0, f"container\t{text}\n"), "spark-1"),
    "rank": lambda text: ranks.parse(Completed(0, f"rank\t/x\trunning\t1\t{text}\n"), "spark-1"),
    "command": lambda text: ranks.parse_container(Completed(0, text)),
    "keeper": lambda text: keepers.parse(Completed(0, f"docker\th\trunning\t{text}\n"), "spark-1"),
    "image": lambda text: engine_image.parse(Completed(0, f'@@ image\n"x"\n@@ labels\n{text}\n@@ size\n5\n')),
    "hub": lambda text: tuple(quantized(text.encode())),
}


@for_each("what", READERS)
def test_a_nest_without_end_of_a_node_or_hub_is_not_understood(what: str) -> None:
    """Guards `status`, `incidents` and `down` against one node that answers with brackets: a traceback, exit 70."""
    found = READERS[what](DEEP)
    assert isinstance(found, Unknown) or found == ()


def test_json_of_others_is_read_in_one_way() -> None:
    """Guards every new reader: json.loads raises RecursionError on a nest, which no caller expects."""
    root = Path(sparkwright.__file__).parent
    named = {path.relative_to(root).as_posix(): path for path in root.rglob("*.py")}
    found = {
        name
        for name, path in named.items()
        if not name.startswith(APART) and re.search(r"\bjson\.loads?\(", path.read_text(encoding="utf-8"))
    }
    assert found == OWN
