"""A request's body: checked as vLLM checks it, and turned into what the engine needs."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable
from typing import Any

from starlette.responses import Response

from sparkwright.domain.values import dataclass, replace
from sparkwright.simulator.directives import directive
from sparkwright.simulator.text import SimulatedTokenizer, Style

Body = dict[str, Any]


class ApiError(Exception):
    """`param` names the field; `raised` errors pass vLLM's CORS layer unmarked and are counted as 5xx there."""

    def __init__(self, status: int, message: str, kind: str, param: str | None = None, raised: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.param = param
        self.raised = raised

    def body(self) -> dict[str, Any]:
        return {"error": {"message": str(self), "type": self.kind, "param": self.param, "code": self.status}}

    def response(self) -> Response:
        return json_response(self.body(), self.status, vary=not self.raised)


def json_response(body: Any, status: int = 200, vary: bool = True) -> Response:
    text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    answer = Response(text, status, media_type="application/json")
    if vary:
        answer.headers["vary"] = "Origin"
    return answer


def too_long(context: int, wanted: int, prompt: int) -> ApiError:
    """vLLM cuts the prompt at what fits plus one, so it only knows `at least` how long it is."""
    least = min(prompt, context - wanted + 1)
    quality = "at least " if prompt >= least and least == context - wanted + 1 else ""
    return ApiError(
        400,
        f"This model's maximum context length is {context} tokens. However, you requested {wanted} output tokens and "
        f"your prompt contains {quality}{least} input tokens, for a total of {quality}{least + wanted} tokens. Please "
        "reduce the length of the input prompt or the number of requested output tokens. "
        f"(parameter=input_tokens, value={least})",
        "BadRequestError",
        "input_tokens",
        raised=True,
    )


def invalid(path: str, function: str, problems: list[dict[str, Any]]) -> ApiError:
    """A body that does not validate: FastAPI's errors as vLLM words them."""
    count = len(problems)
    listed = "\n".join(f"  {p}" for p in problems)
    return ApiError(
        400,
        f"{count} validation error{'s' if count > 1 else ''}:\n{listed}\n\n"
        f'  File "/opt/vllm/vllm/entrypoints/utils.py", line 40, in {function}\n    POST {path} {problems}',
        "Bad Request",
    )


def refused(message: str, param: str | None = None, value: Any = None) -> ApiError:
    tail = f" (parameter={param}, value={value})" if param else ""
    return ApiError(400, message + tail, "BadRequestError", param)


@dataclass(frozen=True, slots=True)
class CheckedRequest:
    """One request, ready to run."""

    model: str
    prompt: list[int]
    max_tokens: int
    stops: tuple[str, ...]
    stream: bool
    usage: bool
    """A last chunk with usage."""
    always_usage: bool
    """Usage in every chunk."""
    style: Style
    seed: int
    logprobs: int = -1
    """Alternatives of each token; -1: none asked."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The server's flags about requests. any_name: the engine ignores a request's `model`."""

    names: tuple[str, ...]
    context: int
    tokenizer: SimulatedTokenizer
    reasoning: bool
    auto_tools: bool
    template: Body
    force_usage: bool
    garbage: Callable[[], bool]
    any_name: bool = False
    wrong: Callable[[], frozenset[str]] = frozenset
    too_long: Callable[[int, int, int], ApiError] = too_long


def parsed(raw: bytes, path: str, function: str, needed: dict[str, type | tuple[type, ...]]) -> Body:
    """The JSON object. Raises ApiError as FastAPI does: not JSON, a field missing, a field of the wrong type."""
    try:
        body = json.loads(raw)
    except json.JSONDecodeError as error:
        problem = {"type": "json_invalid", "loc": ("body", error.pos), "msg": "JSON decode error", "input": {}}
        raise invalid(path, function, [{**problem, "ctx": {"error": error.msg}}]) from None
    if not isinstance(body, dict):
        problem = {"type": "model_attributes_type", "loc": ("body",), "msg": "Input should be a valid dictionary"}
        raise invalid(path, function, [{**problem, "input": body}])
    problems = [p for name, kinds in needed.items() for p in _problem(body, name, kinds)]
    if problems:
        raise invalid(path, function, problems)
    return body


def _problem(body: Body, name: str, kinds: type | tuple[type, ...]) -> list[Body]:
    if name not in body:
        return [{"type": "missing", "loc": ("body", name), "msg": "Field required", "input": body}]
    if isinstance(body[name], kinds):
        return []
    kind = "list" if kinds is list else "string"
    say = f"Input should be a valid {kind}"
    return [{"type": f"{kind}_type", "loc": ("body", name), "msg": say, "input": body[name]}]


def check_chat(body: Body, rules: Rules) -> CheckedRequest:
    """Raises ApiError."""
    limit = body.get("max_completion_tokens", body.get("max_tokens"))
    template = {**rules.template, **(body.get("chat_template_kwargs") or {})}
    thinks = rules.reasoning and all(template.get(k, True) for k in ("enable_thinking", "thinking"))
    tool = _tool(body, rules)
    # A chat template of the usual shape, so that counts and shared prefixes behave
    tools = body.get("tools") or []
    head = f"<|im_start|>system\n# Tools\n{json.dumps(tools)}<|im_end|>\n" if tools else ""
    turns = "".join(f"<|im_start|>{m.get('role', 'user')}\n{_content(m)}<|im_end|>\n" for m in body["messages"])
    text = f"{head}{turns}<|im_start|>assistant\n"
    found = _asked(body, rules, rules.tokenizer.encode(text), limit, (thinks, tool))
    return replace(found, style=_directed(body, _wrong(body, rules), found.style))


def _wrong(body: Body, rules: Rules) -> frozenset[str]:
    """The faults for this request: drafts that change the answer do so only where there are any."""
    return rules.wrong() - ({"drafts"} if body.get("draft") is False else set())


def _directed(body: Body, wrong: frozenset[str], style: Style) -> Style:
    """The style with the request's plain orders, as a model would follow them, and the faults in that."""
    ordered, tools = directive(body["messages"], wrong), body.get("tools") or []
    words = (body.get("structured_outputs") or {}).get("choice") or []
    text = str(words[0]) if words and "choices" not in wrong else ordered.text
    names = {tool["function"].get("name") for tool in tools}
    free = style.tool is not None and body.get("tool_choice", "auto") == "auto"
    calls = tuple(one for one in ordered.calls if free and one[0] in names)
    calls = calls[:1] if "one_call" in wrong else calls
    if "loose_types" in wrong:
        calls = tuple((name, re.sub(r": (true|false)\b", r': "\1"', given)) for name, given in calls)
    if calls and ("tool_text" in wrong or ("tool_cliff" in wrong and len(tools) >= 64)):
        (name, given), calls = calls[0], ()
        text = f'<tool_call>{{"name": "{name}", "arguments": {given}}}</tool_call>'
    ignored = "tool_choice" in wrong and not free
    tool = None if ignored or text or calls else style.tool
    # Guided decoding gives garbage its form.
    garbage = style.garbage and not (words or style.schema or (tool and not free))
    return replace(style, text=text, calls=calls, tool=tool, wrong=wrong, garbage=garbage)


def completion(body: Body, rules: Rules) -> CheckedRequest:
    """Raises ApiError; several prompts in one request are not simulated."""
    prompt = body["prompt"]
    if isinstance(prompt, list) and len(prompt) == 1 and not isinstance(prompt[0], int):
        prompt = prompt[0]
    if isinstance(prompt, list) and not all(isinstance(t, int) for t in prompt):
        raise refused("The simulator answers one prompt per request.")
    tokens = list(prompt) if isinstance(prompt, list) else rules.tokenizer.encode(prompt)
    return _asked(body, rules, tokens, body.get("max_tokens", 16), (False, None))


def _asked(
    body: Body, rules: Rules, prompt: list[int], limit: int | None, shape: tuple[bool, Body | None]
) -> CheckedRequest:
    name = body.get("model") or rules.names[0]
    if name not in rules.names and not rules.any_name:
        raise ApiError(404, f"The model `{name}` does not exist.", "NotFoundError", "model")
    if limit is not None and limit < 1:
        raise refused(f"max_tokens must be at least 1, got {limit}.", "max_tokens", limit)
    if int(body.get("n") or 1) != 1:
        raise refused("The simulator answers with one choice per request.", "n", body["n"])
    if len(prompt) + (limit or 1) > rules.context:
        raise rules.too_long(rules.context, limit or 0, len(prompt))
    options = body.get("stream_options") or {}
    if options and not body.get("stream"):
        raise refused("Stream options can only be defined when `stream=True`.", "stream_options", options)
    stop = body.get("stop") or ()
    wrong, endless = rules.wrong(), bool(body.get("ignore_eos"))
    schema = None if "schema" in wrong else _schema(body)
    style = Style(shape[0], rules.garbage(), shape[1], schema, endless)
    limit = limit - 1 if limit and limit > 16 and endless and "short" in wrong else limit
    return CheckedRequest(
        model=name,
        prompt=prompt,
        max_tokens=min(limit or rules.context, rules.context - len(prompt)),
        stops=() if "stop" in wrong else (stop,) if isinstance(stop, str) else tuple(stop),
        stream=bool(body.get("stream")),
        usage=bool(options.get("include_usage")) or rules.force_usage,
        always_usage=bool(options.get("continuous_usage_stats")),
        style=style,
        seed=zlib.crc32(repr(prompt).encode()) + int(body.get("seed") or 0),
        logprobs=int(body.get("top_logprobs") or 0) if body.get("logprobs") is True else -1,
    )


def _schema(body: Body) -> Body | None:
    """Structured output as OpenAI's response_format or vLLM's structured_outputs asks for it."""
    form = body.get("response_format") or {}
    if form.get("type") == "json_schema":
        return dict(form.get("json_schema", {}).get("schema") or {})
    if form.get("type") == "json_object":
        return {"type": "object", "required": ["answer"]}
    stated = (body.get("structured_outputs") or {}).get("json")
    return stated if isinstance(stated, dict) else None


def _content(message: Body) -> str:
    content = message.get("content") or ""
    if isinstance(content, list):
        content = "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    calls = message.get("tool_calls")
    return f"{content}{json.dumps(calls)}" if calls else str(content)


def _tool(body: Body, rules: Rules) -> Body | None:
    """The function to call. With `auto` the simulator calls one whenever the last word is the user's."""
    tools = body.get("tools") or []
    choice = body.get("tool_choice", "auto" if tools else "none")
    if not tools or choice == "none":
        return None
    if isinstance(choice, dict):
        wanted = choice.get("function", {}).get("name")
        return next((t["function"] for t in tools if t["function"].get("name") == wanted), None)
    if choice == "auto" and not rules.auto_tools:
        raise refused('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set')
    if choice == "auto" and body["messages"] and body["messages"][-1].get("role") != "user":
        return None
    first: Body = tools[0]["function"]
    return first
