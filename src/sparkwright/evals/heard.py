"""Requests of a probe and what came back: one shape for streamed and whole answers of the three APIs.

Everything that is read here comes from outside: any type may be anywhere. What is no answer ends as `trouble`.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.printable import printable
from sparkwright.domain.probed import Reply
from sparkwright.domain.values import dataclass, field

CHAT, TEXT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"
REFUSALS = (400, 404, 405, 415, 422, 501)
_SHOWN = 400
_THOUGHTS = ("reasoning", "reasoning_content")
_SPACE = re.compile(r"\s+")
_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class ProbeRequest:
    """A request. body: without the model's name, which the sender adds."""

    body: Mapping[str, Any]
    path: str = CHAT

    @property
    def streamed(self) -> bool:
        return bool(self.body.get("stream"))


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call. arguments: JSON text as the server sent it."""

    name: str
    arguments: str
    id: str = ""

    @property
    def tree(self) -> Any:
        """The arguments as a value; None for text that is no JSON."""
        try:
            return read_json(self.arguments)
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class Token:
    """raw: its bytes, as the server sent them: a token may be a part of a character, which has no text."""

    raw: bytes
    logprob: float
    top: tuple[float, ...] = ()

    @property
    def text(self) -> str:
        """The token's text; bytes that are no character appear as numbers: two of them differ."""
        return self.raw.decode("utf-8", "backslashreplace")


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """An answer. trouble: why there is none, '' for a good one. refused: the server understood, and does not do it."""

    status: int = 0
    content: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: str = ""
    usage: Mapping[str, int] = field(default_factory=dict)
    tokens: tuple[Token, ...] = ()
    trouble: str = ""
    raw: str = ""

    @property
    def refused(self) -> bool:
        return self.status in REFUSALS

    @property
    def prompt_tokens(self) -> int:
        return self.usage.get("prompt_tokens", 0)

    @property
    def output_tokens(self) -> int:
        return self.usage.get("completion_tokens", 0)


def shortened(text: str, most: int = _SHOWN) -> str:
    """One line of a stranger's text, without what would draw on the terminal."""
    line = _SPACE.sub(" ", printable(text[: 4 * most])).strip()
    return line if len(line) <= most else f"{line[: most - 1]}…"


def events(body: str) -> Iterator[Any]:
    """The JSON of each event of a stream; what is no JSON is left out, but for the word that ends it."""
    for line in _LINE_END.split(body):  # not splitlines: text may have other line ends of Unicode
        if not line.startswith("data:") or line[5:].strip() == "[DONE]":
            continue
        try:
            yield read_json(line[5:])
        except ValueError:
            continue


def read(ask: ProbeRequest, reply: Reply) -> ProbeAnswer:
    """Never raises, whatever came."""
    raw = reply.body
    if raw.lstrip()[:1] == "<":
        return ProbeAnswer(trouble=f"HTTP {reply.status}: {_message(raw)}", raw=raw)
    if reply.status != 200:
        return ProbeAnswer(reply.status, trouble=f"HTTP {reply.status}: {_message(raw)}", raw=raw)
    try:
        return _streamed(raw) if ask.streamed else _whole(ask.path, raw)
    except (ValueError, TypeError, AttributeError, KeyError, IndexError, OverflowError) as error:
        return ProbeAnswer(200, trouble=f"no answer of this API ({type(error).__name__}): {_message(raw)}", raw=raw)


def _message(raw: str) -> str:
    if raw.lstrip()[:1] == "<":
        return f"HTML instead of JSON: {shortened(raw, 120)}"
    try:
        tree = read_json(raw)
        found = tree.get("error", tree) if isinstance(tree, dict) else tree
        text = found.get("message") or found.get("detail") or found if isinstance(found, dict) else found
    except ValueError:
        text = raw
    return shortened(str(text)) or "(empty body)"


def _whole(path: str, raw: str) -> ProbeAnswer:
    tree = read_json(raw)
    if tree.get("error"):
        return ProbeAnswer(200, trouble=f"an error with HTTP 200: {_message(raw)}", raw=raw)
    if path == RESPONSES:
        return _response(tree, raw)
    if path == MESSAGES:
        return _anthropic(tree, raw)
    (choice, *_) = tree["choices"]
    message = choice.get("message") or {"content": choice.get("text")}
    calls = tuple(_call(one) for one in message.get("tool_calls") or ())
    return ProbeAnswer(
        200,
        _text(message, "content"),
        _thought(message),
        calls,
        str(choice.get("finish_reason") or ""),
        _usage(tree),
        _tokens(choice),
        raw=raw,
    )


def _streamed(raw: str) -> ProbeAnswer:
    """All events joined. A stream that names no reason for its end was cut."""
    made, finish = _Joined(), ""
    usage: dict[str, int] = {}
    for event in events(raw):
        if event.get("error"):
            return ProbeAnswer(200, trouble=f"error in the stream: {_message(json.dumps(event))}", raw=raw)
        usage = _usage(event) or usage
        for choice in event.get("choices") or ():
            made.add(choice.get("delta") or {"content": choice.get("text")})
            made.tokens.extend(_tokens(choice))
            finish = str(choice.get("finish_reason") or finish)
    if not finish:
        return ProbeAnswer(200, trouble=f"the stream ended without a finish_reason: {_message(raw[-_SHOWN:])}", raw=raw)
    calls = tuple(ToolCall("".join(n), "".join(a), i) for i, n, a in made.calls.values())
    return ProbeAnswer(
        200, "".join(made.content), "".join(made.reasoning), calls, finish, usage, tuple(made.tokens), raw=raw
    )


@dataclass(slots=True)
class _Joined:
    content: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: dict[int, tuple[str, list[str], list[str]]] = field(default_factory=dict)
    tokens: list[Token] = field(default_factory=list)

    def add(self, delta: Mapping[str, Any]) -> None:
        self.content.append(_text(delta, "content"))
        self.reasoning.append(_thought(delta))
        for one in delta.get("tool_calls") or ():
            function, place = one.get("function") or {}, int(one.get("index") or 0)
            _, names, arguments = self.calls.setdefault(place, (str(one.get("id") or ""), [], []))
            names.append(_text(function, "name"))
            arguments.append(_text(function, "arguments"))


def _text(tree: Mapping[str, Any], name: str) -> str:
    value = tree.get(name)
    if value is not None and not isinstance(value, str):
        raise TypeError(name)
    return value or ""


def _thought(message: Mapping[str, Any]) -> str:
    return next((text for name in _THOUGHTS if (text := _text(message, name))), "")


def _call(one: Mapping[str, Any]) -> ToolCall:
    function = one.get("function") or {}
    return ToolCall(_text(function, "name"), _text(function, "arguments"), str(one.get("id") or ""))


def _usage(tree: Mapping[str, Any]) -> dict[str, int]:
    """The counts under the names of Chat Completions."""
    given = tree.get("usage") or {}
    renamed = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"}
    return {renamed.get(k, k): v for k, v in given.items() if isinstance(v, int) and not isinstance(v, bool)}


def _tokens(choice: Mapping[str, Any]) -> tuple[Token, ...]:
    rows = (choice.get("logprobs") or {}).get("content") or ()
    return tuple(_token(row) for row in rows)


def _token(row: Mapping[str, Any]) -> Token:
    top = tuple(float(one["logprob"]) for one in row.get("top_logprobs") or ())
    sent = row.get("bytes")
    raw = bytes(sent) if isinstance(sent, list) and sent else str(row["token"]).encode("utf-8", "replace")
    return Token(raw, float(row["logprob"]), top)


def _response(tree: Mapping[str, Any], raw: str) -> ProbeAnswer:
    """https://platform.openai.com/docs/api-reference/responses/object"""
    texts: list[str] = []
    thoughts: list[str] = []
    calls = []
    for item in tree["output"]:
        if item.get("type") == "function_call":
            calls.append(ToolCall(_text(item, "name"), _text(item, "arguments"), str(item.get("call_id") or "")))
        to = thoughts if item.get("type") == "reasoning" else texts
        to += [_text(part, "text") for part in item.get("content") or ()]
    end = str(tree.get("status") or "")
    return ProbeAnswer(200, "".join(texts), "".join(thoughts), tuple(calls), end, _usage(tree), raw=raw)


def _anthropic(tree: Mapping[str, Any], raw: str) -> ProbeAnswer:
    """https://docs.anthropic.com/en/api/messages"""
    parts = tree["content"]
    text = "".join(_text(part, "text") for part in parts if part.get("type") == "text")
    thought = "".join(_text(part, "thinking") for part in parts if part.get("type") == "thinking")
    calls = tuple(
        ToolCall(_text(part, "name"), json.dumps(part.get("input")), str(part.get("id") or ""))
        for part in parts
        if part.get("type") == "tool_use"
    )
    return ProbeAnswer(200, text, thought, calls, str(tree.get("stop_reason") or ""), _usage(tree), raw=raw)
