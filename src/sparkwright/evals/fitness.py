"""The fitness of an endpoint for a client: one request of the client's own protocol, and its answer's troubles."""

import json
import re
from collections.abc import Iterator
from typing import Any

from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.probed import Reply
from sparkwright.domain.values import dataclass
from sparkwright.evals.heard import MESSAGES, RESPONSES, ProbeAnswer, ProbeRequest, events, read
from sparkwright.gateway.clients import Client

MOST = 400
_SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
_TOOL = {"name": "get_weather", "description": "Returns the weather of a city."}
_ORDER = 'Call the function get_weather with these arguments: {"city": "Bern"}'
_SAY = "Reply with one word."
# How models write a call that no parser took out of their text.
_CALL_AS_TEXT = re.compile(
    r"<tool_call|<function[=_ ]|\[TOOL_CALLS\]|<\|tool|<minimax:tool_call|<\|channel\|>|<invoke "
)
_THOUGHT_AS_TEXT = re.compile(r"</?think(?:ing)?>|<\|channel\|>analysis")
_NO_PARSER = "start it with a tool-call parser (vLLM: enable-auto-tool-choice and tool-call-parser in `flags`)"
_NO_TOKENS = re.compile(r"maximum context length|max_tokens|context window|too long", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ClientTrouble:
    """fails: the client cannot work; else it will be noticed."""

    text: str
    hint: str
    fails: bool = False


def request(client: Client) -> ProbeRequest:
    """Streamed, as clients ask; with a tool where the client needs them."""
    tools, text = "tools" in client.needs, _ORDER if "tools" in client.needs else _SAY
    turns = [{"role": "user", "content": text}]
    body: dict[str, Any] = {"stream": True}
    if client.path == RESPONSES:
        body |= {"input": text, "max_output_tokens": MOST, "store": False}
        body |= {"tools": [{"type": "function", **_TOOL, "parameters": _SCHEMA}]} if tools else {}
    elif client.path == MESSAGES:
        body |= {"messages": turns, "max_tokens": MOST}
        body |= {"tools": [{**_TOOL, "input_schema": _SCHEMA}]} if tools else {}
    else:
        body |= {"messages": turns, "max_tokens": MOST}
        body |= {"tools": [{"type": "function", "function": {**_TOOL, "parameters": _SCHEMA}}]} if tools else {}
    return ProbeRequest(body, client.path)


def read_answer(ask: ProbeRequest, reply: Reply) -> ProbeAnswer:
    """Never raises, whatever came."""
    if ask.path not in (RESPONSES, MESSAGES) or reply.status != 200:
        return read(ask, reply)
    try:
        tree = (_message if ask.path == MESSAGES else _response)(list(events(reply.body)))
    except (TypeError, AttributeError, KeyError, ValueError) as error:
        return ProbeAnswer(200, trouble=f"no stream of this API ({type(error).__name__})", raw=reply.body)
    if tree is None:
        return ProbeAnswer(200, trouble="no stream of this API, or one that was cut", raw=reply.body)
    return read(ProbeRequest({}, ask.path), Reply(200, body=json.dumps(tree)))


def _response(found: list[Any]) -> Any:
    """The whole answer is in the last event."""
    last: dict[str, Any] = found[-1] if found else {}
    return last.get("response")


def _message(found: list[Any]) -> Any:
    blocks: dict[int, dict[str, Any]] = {}
    ended: dict[str, Any] = {}
    for event in found:
        if event["type"] == "content_block_start":
            blocks[event["index"]] = {**event["content_block"], "arguments": ""}
        elif event["type"] == "content_block_delta":
            block, delta = blocks[event["index"]], event["delta"]
            for name in ("text", "thinking"):
                block[name] = block.get(name, "") + delta.get(name, "")
            block["arguments"] += delta.get("partial_json", "")
        elif event["type"] == "message_delta":
            ended = {"stop_reason": event["delta"].get("stop_reason"), "usage": event.get("usage")}
        elif event["type"] == "error":
            return {"error": event["error"]}
    for block in blocks.values():
        if block.get("type") == "tool_use":
            block["input"] = read_json(block["arguments"] or "{}")
    return {"content": list(blocks.values()), **ended} if ended else None


def troubles(client: Client, answer: ProbeAnswer, context: int) -> Iterator[ClientTrouble]:
    """The client's troubles with the endpoint, worst first."""
    if answer.trouble:
        yield _refusal(client, answer)
        return
    tools = "tools" in client.needs
    if tools and not answer.calls:
        yield from _no_call(answer)
    if any(not isinstance(call.tree, dict) for call in answer.calls):
        yield ClientTrouble(
            "the arguments of its tool call are no JSON object", "another tool-call parser for this model", True
        )
    if _THOUGHT_AS_TEXT.search(answer.content):
        yield ClientTrouble("its thinking comes as text of the answer", "start it with the model's reasoning parser")
    elif answer.reasoning and not (answer.content or answer.calls):
        text = f"it thought for all of the {MOST} tokens of the request"
        yield ClientTrouble(text, "allow more output tokens in the client, or turn thinking off in the chat template")
    if context and context < client.least:
        text = f"{context:,} tokens of context; {client.title} needs {client.least:,} to be of use"
        yield ClientTrouble(text, "serve a profile with a longer context")
    if not context:
        yield ClientTrouble(
            "the endpoint does not report its context", "enter it in the settings yourself: clients guess else"
        )


def _refusal(client: Client, answer: ProbeAnswer) -> ClientTrouble:
    said = answer.trouble
    if answer.status in (404, 405, 501):
        return ClientTrouble(
            f"{client.path} is not served: {said}", f"{client.title} needs an engine that serves it", True
        )
    if answer.status == 401:
        return ClientTrouble(
            said, "name a key that the gateway knows: --key NAME, or `sparkwright keys add NAME`", True
        )
    if answer.status == 429:
        return ClientTrouble(said, "the key's limit is reached: `sparkwright keys list` shows it", True)
    if answer.status == 400 and "tool" in said.lower():
        return ClientTrouble(f"it refuses tools: {said}", _NO_PARSER, True)
    if answer.status == 400 and _NO_TOKENS.search(said):
        return ClientTrouble(said, "serve a profile with a longer context", True)
    return ClientTrouble(said, "`sparkwright status` and `sparkwright logs` show what the engine does", True)


def _no_call(answer: ProbeAnswer) -> Iterator[ClientTrouble]:
    if _CALL_AS_TEXT.search(answer.content):
        yield ClientTrouble("a tool call came as plain text: no tool-call parser, or the wrong one", _NO_PARSER, True)
    elif not answer.reasoning or answer.content:
        yield ClientTrouble(
            "it was asked to call a function and did not", "`sparkwright eval probes --probe tool-call` looks closer"
        )
