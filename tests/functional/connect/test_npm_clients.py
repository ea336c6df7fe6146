"""The real clients of npm before the simulator, with the settings that `connect` made and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from functional.connect.conftest import ConnectSetup
from functional.connect.test_connect import exports

WORK = "echo sparks-$((19+4)) > made.txt; cat made.txt"
ORDER = """Call the function {tool} with these arguments: {{"{name}": "{work}"{more}}}
Reply with exactly what the function returned."""
NODE_TOOLS = """
import OpenAI from "openai";
import Anthropic from "@anthropic-ai/sdk";
const order = 'Call the function add with these arguments: {"a": 19} Reply with exactly what the function returned.';
const schema = { type: "object", properties: { a: { type: "integer" } }, required: ["a"] };
const messages = [{ role: "user", content: order }];
if (process.argv[2] === "openai") {
  const client = new OpenAI(), tools = [{ type: "function", function: { name: "add", parameters: schema } }];
  const got = await client.chat.completions.stream({ model: "tiny", messages, tools }).finalChatCompletion();
  const call = got.choices[0].message.tool_calls[0];
  messages.push(got.choices[0].message, { role: "tool", tool_call_id: call.id, content: "23" });
  const last = await client.chat.completions.create({ model: "tiny", messages, tools });
  const whole = await client.responses.stream({ model: "tiny", input: order }).finalResponse();
  console.log(call.function.arguments, last.choices[0].message.content, whole.status);
} else {
  const client = new Anthropic(), tools = [{ name: "add", input_schema: schema }];
  const got = await client.messages.stream({ model: "tiny", max_tokens: 200, messages, tools }).finalMessage();
  const used = got.content.find((block) => block.type === "tool_use");
  messages.push({ role: "assistant", content: got.content });
  messages.push({ role: "user", content: [{ type: "tool_result", tool_use_id: used.id, content: "23" }] });
  const last = await client.messages.create({ model: "tiny", max_tokens: 200, messages, tools });
  console.log(JSON.stringify(used.input), last.content[0].text, got.stop_reason);
}
"""


def order_text(tool: str, name: str, more: str = "") -> str:
    return ORDER.format(tool=tool, name=name, work=WORK, more=more)


@pytest.fixture
def folder(connect_setup: ConnectSetup, tmp_path: Path) -> Path:
    return tmp_path


def test_the_node_sdks_run_with_the_printed_settings(
    connect_setup: ConnectSetup, folder: Path, node_modules: Path
) -> None:
    """Streamed tool calls and their results by both SDKs, and the printed code of both."""
    (folder / "node_modules").symlink_to(node_modules)
    (folder / "tools.mjs").write_text(NODE_TOOLS)
    for client, expected in (("openai", '{"a": 19} 23 completed'), ("anthropic", '{"a":19} 23 tool_use')):
        shell = exports(connect_setup, f"{client}-node")
        assert connect_setup.program(shell, "node", "tools.mjs", client, folder=folder).strip() == expected
        (folder / "shown.mjs").write_text(
            json.loads(connect_setup.connect(f"{client}-node", "--json")[1])["settings"]["snippet"]
        )
        assert "simulated" in connect_setup.program(shell, "node", "shown.mjs", folder=folder)


@pytest.mark.full
def test_claude_code_works_through_the_gateway(connect_setup: ConnectSetup, folder: Path, node_modules: Path) -> None:
    """It calls a tool that changes a file, with the settings file that --write made."""
    assert connect_setup.connect("claude-code", "--write")[0] == 0
    argv = [str(node_modules / ".bin" / "claude"), "-p", order_text("Bash", "command", ', "description": "x"')]
    argv += ["--dangerously-skip-permissions", "--output-format", "json"]
    answer = json.loads(connect_setup.program(exports(connect_setup, "claude-code"), *argv, folder=folder))
    assert (answer["result"], answer["num_turns"], (folder / "made.txt").read_text()) == ("sparks-23", 2, "sparks-23\n")
    assert set(answer["modelUsage"]) == {"tiny"}


@pytest.mark.full
def test_codex_works_through_the_gateway(connect_setup: ConnectSetup, folder: Path, node_modules: Path) -> None:
    """It calls a tool that changes a file, with the profile that --write made."""
    assert connect_setup.connect("codex", "--write")[0] == 0
    argv = [str(node_modules / ".bin" / "codex"), "exec", "--profile", "sparkwright", "--skip-git-repo-check"]
    argv += ["--dangerously-bypass-approvals-and-sandbox", order_text("exec_command", "cmd")]
    got = connect_setup.program(exports(connect_setup, "codex"), *argv, folder=folder)
    assert "sparks-23" in got
    assert (folder / "made.txt").read_text() == "sparks-23\n"


@pytest.mark.full
def test_opencode_works_through_the_gateway(connect_setup: ConnectSetup, folder: Path, node_modules: Path) -> None:
    """It calls a tool that changes a file, with the settings file that --write made."""
    assert connect_setup.connect("opencode", "--write")[0] == 0
    argv = [str(node_modules / ".bin" / "opencode"), "run"]
    text = order_text("bash", "command", ', "description": "x"')
    got = connect_setup.program(exports(connect_setup, "opencode"), *argv, stdin=text, folder=folder)
    assert "sparks-23" in got
    assert (folder / "made.txt").read_text() == "sparks-23\n"
