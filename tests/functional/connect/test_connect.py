"""`sparkwright connect`: what it prints, writes, puts back and finds wrong, before a real gateway with TLS."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.ports import free_port
from functional.connect.conftest import Place
from functional.gateway.gateways import KEY
from functional.simulator.process import CAPTURES, HEAD_ADDRESS, Simulator
from sparkwright.gateway.clients import clients

CHAT_AND_TOOLS = """
import sys
from openai import OpenAI
tools = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {
    "a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}}}]
order = 'Call the function add with these arguments: {"a": 19, "b": 4} Reply with exactly what the function returned.'
turns, client = [{"role": "user", "content": order}], OpenAI()
model = client.models.list().data[0].id
with client.chat.completions.stream(model=model, messages=turns, tools=tools) as stream:
    message = stream.get_final_completion().choices[0].message
call = message.tool_calls[0]
turns += [{"role": "assistant", "content": "", "tool_calls": [call.model_dump()]}]
turns += [{"role": "tool", "tool_call_id": call.id, "content": "23"}]
last = client.chat.completions.create(model=model, messages=turns, tools=tools)
print(call.function.arguments, last.choices[0].message.content)
with client.responses.stream(model=model, input="Reply with exactly this and nothing else: responses too") as stream:
    print(stream.get_final_response().output_text)
"""
ANTHROPIC = """
from anthropic import Anthropic
schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
tools = [{"name": "add", "input_schema": schema}]
order = 'Call the function add with these arguments: {"a": 19} Reply with exactly what the function returned.'
turns, client = [{"role": "user", "content": order}], Anthropic()
with client.messages.stream(model="tiny", max_tokens=200, messages=turns, tools=tools) as stream:
    first = stream.get_final_message()
used = next(block for block in first.content if block.type == "tool_use")
turns += [{"role": "assistant", "content": first.content}]
turns += [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": used.id, "content": "23"}]}]
last = client.messages.create(model="tiny", max_tokens=200, messages=turns, tools=tools)
print(first.stop_reason, used.input, last.content[0].text)
"""


def exports(place: Place, client: str) -> str:
    code, out, err = place.connect(client, "--json")
    assert code == 0, out + err
    return "".join(f"export {name}={value}\n" for name, value in json.loads(out)["settings"]["env"])


@pytest.mark.full
def test_every_client_works_and_no_key_is_printed(place: Place) -> None:
    """All known clients get settings that pass their own request; the key is named by its file only."""
    for name in clients():
        code, out, err = place.connect(name)
        assert code == 0, f"{name}: {out}{err}"
        assert ": works" in out
        assert out.startswith("SIMULATED")
        assert KEY not in out + err
    assert KEY in place.connect("curl", "--show-key")[1]


def test_the_openai_sdk_runs_with_the_printed_settings(place: Place) -> None:
    """A streamed tool call, its result, and the Responses API, by the real SDK with nothing but the exports."""
    said = place.python(exports(place, "openai-python"), CHAT_AND_TOOLS)
    assert said.splitlines() == ['{"a": 19, "b": 4} 23', "responses too"]


@pytest.mark.full
def test_the_anthropic_sdk_runs_with_the_printed_settings(place: Place) -> None:
    """A streamed tool call and its result by the real SDK with nothing but the exports."""
    assert place.python(exports(place, "anthropic-python"), ANTHROPIC).strip() == "tool_use {'a': 19} 23"


@pytest.mark.full
@pytest.mark.parametrize("client", ["openai-python", "anthropic-python"])
def test_the_printed_code_runs(place: Place, client: str) -> None:
    """The snippet is a whole program."""
    code = json.loads(place.connect(client, "--json")[1])["settings"]["snippet"]
    assert "simulated" in place.python(exports(place, client), code)


def test_curl_runs_as_printed(place: Place) -> None:
    """The shell lines can be pasted as they are."""
    command = json.loads(place.connect("curl", "--json")[1])["settings"]["snippet"]
    answer = json.loads(place.program(exports(place, "curl"), "bash", "-c", command))
    assert answer["choices"][0]["message"]["content"].startswith("(simulated)")


def test_what_is_written_can_be_undone(place: Place) -> None:
    """A client's own settings stay, ours come and go, and a file that somebody changed since is left alone."""
    file = place.home / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text('{"theme": "dark", "env": {"EDITOR": "vi"}}')
    code, out, _ = place.connect("claude-code", "--write", "--dry-run")
    assert (code, json.loads(file.read_text())["env"]) == (0, {"EDITOR": "vi"})
    assert "+" in out
    for _ in range(2):  # the second time changes nothing, and undo still knows what was there first
        assert place.connect("claude-code", "--write")[0] == 0
    tree = json.loads(file.read_text())
    assert (tree["theme"], tree["env"]["EDITOR"], tree["env"]["ANTHROPIC_MODEL"]) == ("dark", "vi", "tiny")
    assert KEY not in file.read_text()
    written = file.read_text()
    file.write_text(written + "\n")
    code, _, err = place.shell.run("connect", "claude-code", "--undo")
    assert (code, "changed by somebody else" in err) == (2, True)
    file.write_text(written)
    assert place.shell.run("connect", "claude-code", "--undo")[0] == 0
    assert file.read_text() == '{"theme": "dark", "env": {"EDITOR": "vi"}}'
    assert place.shell.run("connect", "claude-code", "--undo")[0] == 2


def test_a_file_with_comments_is_not_rewritten(place: Place) -> None:
    """A change that would lose somebody's text is refused, with the settings still to be had."""
    file = place.home / ".config" / "opencode" / "opencode.json"
    file.parent.mkdir(parents=True)
    file.write_text("{ // mine\n}")
    code, _, err = place.connect("opencode", "--write")
    assert (code, "no plain JSON" in err, file.read_text()) == (2, True, "{ // mine\n}")
    file.unlink()


def test_a_file_is_written_where_the_user_has_settings(place: Place, tmp_path: Path) -> None:
    """XDG_CONFIG_HOME: opencode reads its settings there, and would never see those in ~/.config."""
    folder = tmp_path / "my settings"
    words = ("connect", "opencode", place.url, "--key-file", str(place.key_file), "--ca", str(place.authority))
    code, out, err = place.shell.run(*words, "--write", XDG_CONFIG_HOME=str(folder))
    assert code == 0, out + err
    assert "sparkwright" in json.loads((folder / "opencode/opencode.json").read_text())["provider"]
    assert f"in {folder}/opencode/opencode.json:" in out and "~/.config" not in out
    assert not (place.home / ".config/opencode/opencode.json").exists()
    listed = place.shell.run("connect", "--list", XDG_CONFIG_HOME=str(folder))[1]
    assert f"{folder}/opencode/opencode.json" in listed
    assert place.shell.run("connect", "opencode", "--undo", XDG_CONFIG_HOME=str(folder))[0] == 0


def test_a_client_that_is_not_known_is_an_error_with_those_that_are(place: Place) -> None:
    """The nearest name and all others are in the hint."""
    code, _, err = place.connect("claude")
    assert code == 2
    assert "did you mean claude-code?" in err
    assert "litellm" in err


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[str]:
    """An engine without a tool parser, with 4,096 tokens."""
    shutil.copy(CAPTURES / "tiny-qwen3.config.json", tmp_path / "config.json")
    port = free_port()
    words = ["serve", str(tmp_path), "--served-model-name", "tiny", "--load-format", "dummy", "--host", HEAD_ADDRESS]
    simulator = Simulator([*words, "--max-model-len", "4096", "--port", str(port)], tmp_path / "log", {}, port).start()
    yield f"http://{HEAD_ADDRESS}:{simulator.ready().port}/v1"
    simulator.end()


def test_what_a_client_will_trip_over_is_named(place: Place, bare: str) -> None:
    """No tool parser, a small context, a wrong key, a model that is not served and an address where nothing listens."""
    code, out, _ = place.shell.run("connect", "claude-code", bare, "--write")
    assert code == 1
    assert "refuses tools" in out
    assert "tool-call-parser" in out
    assert "nothing was written" in out
    code, out, _ = place.shell.run("connect", "continue", bare, "--no-check")
    assert (code, "not checked" in out) == (0, True)
    code, _, err = place.shell.run("connect", "curl", bare, "--model", "other")
    assert (code, "it serves: tiny" in err) == (2, True)
    wrong = place.home / "wrong"
    wrong.write_text("sk-sw-nobody")
    trust = ("--ca", str(place.authority))
    code, _, err = place.shell.run("connect", "curl", place.url, "--key-file", str(wrong), *trust)
    assert (code, "401" in err) == (5, True)
    code, _, err = place.shell.run("connect", "curl", f"http://127.0.0.1:{free_port()}/v1")
    assert (code, "refused" in err) == (5, True)
