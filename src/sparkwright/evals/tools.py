"""Probes of the tool protocol."""

import json
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

from sparkwright.evals.heard import MESSAGES, RESPONSES, ProbeAnswer, ProbeRequest, shortened
from sparkwright.evals.probe import TRIES, ProbeInputs, Steps, Tally, both_ways, call_fault, function
from sparkwright.loadgen.texts import NAMES, PLACES, THINGS

COUNTS = (8, 32, 64, 128)
_TOKENS = 512
_ROOM = 2048  # of an API where thinking may not be switched off
_MARKUP = ("<tool_call", "<function", "[TOOL_CALLS]", "<|python_tag|>", "<|tool", "functools[", '"arguments"')
_PLACE = {"place": {"type": "string"}, "count": {"type": "integer"}}


def function_names(dice: Random) -> Iterator[str]:
    """Names of functions, none twice."""
    pairs = [f"{verb}_{thing}" for verb in ("find", "count", "move", "check", "open") for thing in THINGS]
    names = [name.replace(" ", "_").replace("-", "_") for name in pairs]
    return iter(dice.sample(sorted(set(names)), len(set(names))))


def _wanted(dice: Random) -> dict[str, Any]:
    return {"place": dice.choice(PLACES), "count": dice.randrange(2, 90)}


def call_order(name: str, arguments: Mapping[str, Any]) -> str:
    return f"Call the function {name} with these arguments: {json.dumps(arguments, ensure_ascii=False)}"


def _one(name: str, arguments: Mapping[str, Any]) -> Any:
    """Judges an answer that is to be one call."""

    def problem(heard: ProbeAnswer) -> str:
        if not heard.calls:
            return no_call(heard)
        if len(heard.calls) > 1:
            return f"{len(heard.calls)} calls instead of one"
        return call_fault(heard.calls[0], name, arguments) or _envelope(heard)

    return problem


def no_call(heard: ProbeAnswer) -> str:
    text = heard.content or heard.reasoning
    if heard.finish == "length":
        return f"no call within max_tokens: {shortened(text, 120)!r}"
    markup = any(mark in text for mark in _MARKUP)
    return f"{'the call came as text' if markup else 'no call, but text'}: {shortened(text, 160)!r}"


def _envelope(heard: ProbeAnswer) -> str:
    if heard.finish != "tool_calls":
        return f"finish_reason is {heard.finish!r}, expected 'tool_calls'"
    if not all(call.id for call in heard.calls):
        return "a call without an id: its result cannot be sent back"
    return f"a part of the call is in content: {heard.content!r}" if any(m in heard.content for m in _MARKUP) else ""


def _with_tools(given: ProbeInputs, count: int, dice: Random, **more: Any) -> tuple[ProbeRequest, str, dict[str, Any]]:
    """A request with so many tools that asks for one of them."""
    names = function_names(dice)
    tools = [function(next(names), _PLACE) for _ in range(count)]
    name, arguments = dice.choice(tools)["function"]["name"], _wanted(dice)
    return given.chat(call_order(name, arguments), _TOKENS, tools=tools, **more), name, arguments


def probe_call(given: ProbeInputs) -> Steps:
    tally = Tally()
    for number in range(1 if given.brief else 3):
        ask, name, arguments = _with_tools(given, 1, given.dice(f"call/{number}"))
        (heard,) = yield (ask,)
        tally.judge("1 tool", ask, heard, _one(name, arguments))
        if tally.refused:
            break
    return tally


def probe_count(given: ProbeInputs) -> Steps:
    tally = Tally()
    for number in COUNTS:
        ask, name, arguments = _with_tools(given, number, given.dice(f"count/{number}"))
        if given.context and number * 60 > given.context:
            tally.notes.append(f"{number} tools do not fit into {given.context} tokens")
            continue
        (heard,) = yield (ask,)
        tally.judge(f"{number} tools", ask, heard, _one(name, arguments), strict=True)
    return tally


def parallel(given: ProbeInputs) -> Steps:
    tally, dice = Tally(), given.dice("parallel")
    names = function_names(dice)
    tools = [function(next(names), _PLACE) for _ in range(4)]
    orders = {tool["function"]["name"]: _wanted(dice) for tool in tools[1:3]}
    text = "Make two function calls in this one answer.\n" + "\n".join(call_order(*one) for one in orders.items())
    ask = given.chat(text, _TOKENS, tools=tools)

    def problem(heard: ProbeAnswer) -> str:
        if len(heard.calls) != len(orders):
            return f"{len(heard.calls)} calls instead of {len(orders)}" if heard.calls else no_call(heard)
        if len({one.id for one in heard.calls}) < len(orders):
            return "two calls with one id"
        return next((w for one in heard.calls if (w := call_fault(one, one.name, orders.get(one.name, {})))), "")

    (heard,) = yield (ask,)
    tally.judge("2 calls", ask, heard, problem)
    return tally


_HARD: Mapping[str, Mapping[str, Any]] = {
    "quotes and line breaks": {"text": 'He wrote: "no\\yes"\n\t{"a": [1]}'},
    "other scripts": {"text": "Zürich, Ωmega, 漢字, 🙂, שלום"},
    "numbers and booleans": {"size": 7, "share": 0.25, "open": True},
    "an object in a list": {"rows": [{"name": "left", "size": 1}, {"name": "right", "size": 2}]},
}
_KINDS = {str: "string", int: "integer", float: "number", bool: "boolean"}


def _schema(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"type": "array", "items": _schema(value[0])}
    if isinstance(value, dict):
        inside = {name: _schema(one) for name, one in value.items()}
        return {"type": "object", "properties": inside, "required": list(inside)}
    return {"type": _KINDS[type(value)]}


def arguments(given: ProbeInputs) -> Steps:
    tally = Tally()
    for case, hard in _HARD.items():
        name = f"save_{given.dice(case).choice(THINGS)}".replace(" ", "_").replace("-", "_")
        tools = [function(name, {key: _schema(value) for key, value in hard.items()})]
        ask = given.chat(call_order(name, hard), _TOKENS, tools=tools)
        (heard,) = yield (ask,)
        tally.judge(case, ask, heard, _one(name, hard), strict=True)
    return tally


def stream(given: ProbeInputs) -> Steps:
    """Byte for byte, where the server repeats itself; elsewhere the call itself has to arrive whole."""
    tally = Tally()
    for number, tools in enumerate((1, 8)):
        ask, name, wanted = _with_tools(given, tools, given.dice(f"stream/{number}"))
        streamed = ProbeRequest({**ask.body, "stream": True})
        *wholes, heard = yield from both_ways(ask, _said)
        good = _one(name, wanted)
        if wholes[-1].trouble:
            tally.judge(f"{tools} tools, whole", ask, wholes[-1], good)
        elif heard.trouble or len({_said(one) for one in wholes}) < TRIES:
            tally.judge(f"{tools} tools", streamed, heard, lambda h, w=wholes, good=good: _joined(h, w) or good(h))  # type: ignore[misc]
        else:
            tally.judge(f"{tools} tools", streamed, heard, good)
            tally.notes.append(f"{tools} tools: the server never repeats itself; the call was compared by its values")
    return tally


def _said(heard: ProbeAnswer) -> tuple[tuple[str, str], ...]:
    return tuple((one.name, one.arguments) for one in heard.calls)


def _joined(heard: ProbeAnswer, wholes: Sequence[ProbeAnswer]) -> str:
    same = _said(heard) in map(_said, wholes)
    return "" if same else f"joined stream: {heard.calls}, whole answer: {wholes[-1].calls}"


def probe_turns(given: ProbeInputs) -> Steps:
    """A history with results: the answer is only in the last one."""
    tally = Tally()
    for rounds in (1, 3):
        dice = given.dice(f"turns/{rounds}")
        name, person = next(function_names(dice)), dice.choice(NAMES)
        tools = [function(name, {"name": {"type": "string"}})]
        ask_for = f"Use {name} to find the code of {person}. Reply with exactly what the function returned."
        messages: list[dict[str, Any]] = []
        code = ""
        for turn in range(rounds):
            code = f"K{dice.randrange(10_000, 99_999)}"
            made_call = {"name": name, "arguments": json.dumps({"name": person})}
            calls = [{"id": f"call_{turn}", "type": "function", "function": made_call}]
            messages += [
                {"role": "user", "content": ask_for},
                {"role": "assistant", "content": "", "tool_calls": calls},
            ]
            messages += [{"role": "tool", "tool_call_id": f"call_{turn}", "content": code}]
            messages += [{"role": "assistant", "content": code}] if turn + 1 < rounds else []
        ask = given.chat(messages, 128, tools=tools)
        (heard,) = yield (ask,)
        tally.judge(f"{rounds} results", ask, heard, lambda h, code=code: _has(h, code), strict=True)  # type: ignore[misc]
    return tally


def _has(heard: ProbeAnswer, code: str) -> str:
    if code in heard.content:
        return ""
    seen = heard.content or (f"call of {heard.calls[0].name}" if heard.calls else heard.reasoning)
    return f"expected {code} from the function's result, found {shortened(seen, 120)!r}"


def responses(given: ProbeInputs) -> Steps:
    """The Responses API: text, and a call."""
    dice = given.dice("responses")
    name, wanted = next(function_names(dice)), _wanted(dice)
    tool = {"type": "function", **function(name, _PLACE)["function"]}
    base = {"input": "Write one short sentence.", "max_output_tokens": _ROOM, "temperature": 0, **given.pinned(False)}
    tally = yield from _other(
        ProbeRequest(base, RESPONSES),
        ProbeRequest({**base, "input": call_order(name, wanted), "tools": [tool]}, RESPONSES),
    )
    return tally


def messages(given: ProbeInputs) -> Steps:
    """The Messages API: text, and a call."""
    dice = given.dice("messages")
    name, wanted = next(function_names(dice)), _wanted(dice)
    inner = function(name, _PLACE)["function"]
    tool = {"name": name, "description": name, "input_schema": inner["parameters"]}

    def base(text: str) -> dict[str, Any]:
        return {
            "messages": [{"role": "user", "content": text}],
            "max_tokens": _ROOM,
            "temperature": 0,
            **given.pinned(False),
        }

    asked = ProbeRequest({**base(call_order(name, wanted)), "tools": [tool]}, MESSAGES)
    tally = yield from _other(ProbeRequest(base("Write one short sentence."), MESSAGES), asked)
    return tally


def _other(text: ProbeRequest, tool: ProbeRequest) -> Steps:
    tally = Tally()
    for case, ask in {"text": text, "a call": tool}.items():
        (heard,) = yield (ask,)
        if heard.output_tokens >= _ROOM:
            tally.notes.append(f"{case}: not within {_ROOM} tokens")
            continue
        tally.judge(case, ask, heard, lambda h, case=case: _complete(h, case == "text") or _counted(h))  # type: ignore[misc]
        if tally.refused:
            break
    return tally


def _complete(heard: ProbeAnswer, text: bool) -> str:
    if text:
        return "" if heard.content.strip() else "no text"
    return "" if heard.calls else no_call(heard)


def _counted(heard: ProbeAnswer) -> str:
    counts = heard.prompt_tokens, heard.output_tokens
    return "" if min(counts) > 0 else f"usage counts {counts[0]} input and {counts[1]} output tokens"
