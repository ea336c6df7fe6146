"""`sparkwright connect`: what it prints, writes, puts back and finds wrong, before a real gateway with TLS."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakes.ports import free_port
from functional.connect.conftest import ConnectSetup
from functional.gateway.gateways import KEY
from functional.simulator.process import CAPTURES, HEAD_ADDRESS, SimulatorProcess
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


def exports(place: ConnectSetup, client: str) -> str:
    code, out, err = place.connect(client, "--json")
    assert code == 0, out + err
    return "".join(f"export {name}={value}\n" for name, value in json.loads(out)["settings"]["env"])


@pytest.mark.full
def test_every_client_works_and_no_key_is_printed(connect_setup: ConnectSetup) -> None:
    """All known clients get settings that pass their own request; the key is named by its file only."""
    for name in clients():
        code, out, err = connect_setup.connect(name)
        assert code == 0, f"{name}: {out}{err}"
        assert ": works" in out
        assert out.startswith("SIMULATED")
        assert KEY not in out + err
    assert KEY in connect_setup.connect("curl", "--show-key")[1]


def test_the_openai_sdk_runs_with_the_printed_settings(connect_setup: ConnectSetup) -> None:
    """A streamed tool call, its result, and the Responses API, by the real SDK with nothing but the exports."""
    said = connect_setup.python(exports(connect_setup, "openai-python"), CHAT_AND_TOOLS)
    assert said.splitlines() == ['{"a": 19, "b": 4} 23', "responses too"]


@pytest.mark.full
def test_the_anthropic_sdk_runs_with_the_printed_settings(connect_setup: ConnectSetup) -> None:
    """A streamed tool call and its result by the real SDK with nothing but the exports."""
    assert (
        connect_setup.python(exports(connect_setup, "anthropic-python"), ANTHROPIC).strip() == "tool_use {'a': 19} 23"
    )


@pytest.mark.full
@pytest.mark.parametrize("client", ["openai-python", "anthropic-python"])
def test_the_printed_code_runs(connect_setup: ConnectSetup, client: str) -> None:
    """The snippet is a whole program."""
    code = json.loads(connect_setup.connect(client, "--json")[1])["settings"]["snippet"]
    assert "simulated" in connect_setup.python(exports(connect_setup, client), code)


def test_curl_runs_as_printed(connect_setup: ConnectSetup) -> None:
    """The shell lines can be pasted as they are."""
    command = json.loads(connect_setup.connect("curl", "--json")[1])["settings"]["snippet"]
    answer = json.loads(connect_setup.program(exports(connect_setup, "curl"), "bash", "-c", command))
    assert answer["choices"][0]["message"]["content"].startswith("(simulated)")


def test_what_is_written_can_be_undone(connect_setup: ConnectSetup) -> None:
    """A client's own settings stay, ours come and go, and a file that somebody changed since is left alone."""
    file = connect_setup.home / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text('{"theme": "dark", "env": {"EDITOR": "vi"}}')
    code, out, _ = connect_setup.connect("claude-code", "--write", "--dry-run")
    assert (code, json.loads(file.read_text())["env"]) == (0, {"EDITOR": "vi"})
    assert "+" in out
    for _ in range(2):  # the second time changes nothing, and undo still knows what was there first
        assert connect_setup.connect("claude-code", "--write")[0] == 0
    tree = json.loads(file.read_text())
    assert (tree["theme"], tree["env"]["EDITOR"], tree["env"]["ANTHROPIC_MODEL"]) == ("dark", "vi", "tiny")
    assert KEY not in file.read_text()
    written = file.read_text()
    file.write_text(written + "\n")
    code, _, err = connect_setup.shell.run("connect", "claude-code", "--undo")
    assert (code, "changed by somebody else" in err) == (2, True)
    file.write_text(written)
    assert connect_setup.shell.run("connect", "claude-code", "--undo")[0] == 0
    assert file.read_text() == '{"theme": "dark", "env": {"EDITOR": "vi"}}'
    assert connect_setup.shell.run("connect", "claude-code", "--undo")[0] == 2


def test_a_file_with_comments_is_not_rewritten(connect_setup: ConnectSetup) -> None:
    """A change that would lose somebody's text is refused, with the settings still to be had."""
    file = connect_setup.home / ".config" / "opencode" / "opencode.json"
    file.parent.mkdir(parents=True)
    file.write_text("{ // mine\n}")
    code, _, err = connect_setup.connect("opencode", "--write")
    assert (code, "no plain JSON" in err, file.read_text()) == (2, True, "{ // mine\n}")
    file.unlink()


def test_a_file_is_written_where_the_user_has_settings(connect_setup: ConnectSetup, tmp_path: Path) -> None:
    """XDG_CONFIG_HOME: opencode reads its settings there, and would never see those in ~/.config."""
    folder = tmp_path / "my settings"
    words = (
        "connect",
        "opencode",
        connect_setup.url,
        "--key-file",
        str(connect_setup.key_file),
        "--ca",
        str(connect_setup.authority),
    )
    code, out, err = connect_setup.shell.run(*words, "--write", XDG_CONFIG_HOME=str(folder))
    assert code == 0, out + err
    assert "sparkwright" in json.loads((folder / "opencode/opencode.json").read_text())["provider"]
    assert f"in {folder}/opencode/opencode.json:" in out and "~/.config" not in out
    assert not (connect_setup.home / ".config/opencode/opencode.json").exists()
    listed = connect_setup.shell.run("connect", "--list", XDG_CONFIG_HOME=str(folder))[1]
    assert f"{folder}/opencode/opencode.json" in listed
    assert connect_setup.shell.run("connect", "opencode", "--undo", XDG_CONFIG_HOME=str(folder))[0] == 0


def test_a_client_that_is_not_known_is_an_error_with_those_that_are(connect_setup: ConnectSetup) -> None:
    """The nearest name and all others are in the hint."""
    code, _, err = connect_setup.connect("claude")
    assert code == 2
    assert "did you mean claude-code?" in err
    assert "litellm" in err


@pytest.fixture
def bare_engine(tmp_path: Path) -> Iterator[str]:
    """An engine without a tool parser, with 4,096 tokens."""
    shutil.copy(CAPTURES / "tiny-qwen3.config.json", tmp_path / "config.json")
    port = free_port()
    words = ["serve", str(tmp_path), "--served-model-name", "tiny", "--load-format", "dummy", "--host", HEAD_ADDRESS]
    simulator = SimulatorProcess(
        [*words, "--max-model-len", "4096", "--port", str(port)], tmp_path / "log", {}, port
    ).start()
    yield f"http://{HEAD_ADDRESS}:{simulator.ready().port}/v1"
    simulator.end()


@pytest.mark.full
def test_what_a_client_will_trip_over_is_named(connect_setup: ConnectSetup, bare_engine: str) -> None:
    """No tool parser, a small context, a wrong key, a model that is not served and an address where nothing listens."""
    code, out, _ = connect_setup.shell.run("connect", "claude-code", bare_engine, "--write")
    assert code == 1
    assert "refuses tools" in out
    assert "tool-call-parser" in out
    assert "nothing was written" in out
    code, out, _ = connect_setup.shell.run("connect", "continue", bare_engine, "--no-check")
    assert (code, "not checked" in out) == (0, True)
    code, _, err = connect_setup.shell.run("connect", "curl", bare_engine, "--model", "other")
    assert (code, "it serves: tiny" in err) == (2, True)
    wrong = connect_setup.home / "wrong"
    wrong.write_text("sk-sw-nobody")
    trust = ("--ca", str(connect_setup.authority))
    code, _, err = connect_setup.shell.run("connect", "curl", connect_setup.url, "--key-file", str(wrong), *trust)
    assert (code, "401" in err) == (5, True)
    code, _, err = connect_setup.shell.run("connect", "curl", f"http://127.0.0.1:{free_port()}/v1")
    assert (code, "refused" in err) == (5, True)
