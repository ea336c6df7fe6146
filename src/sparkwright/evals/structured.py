"""Probes of guided decoding: JSON by a schema, a grammar of a few texts, and calls that the client forces."""

from collections.abc import Callable, Generator, Sequence

from sparkwright.domain.foreign_json import read_json
from sparkwright.evals.heard import ProbeAnswer, ProbeRequest, shortened
from sparkwright.evals.probe import ProbeInputs, Steps, Tally, function
from sparkwright.evals.schema import problems
from sparkwright.evals.tools import call_order, function_names, no_call

_WORD = "lantern"
_TOKENS = 512
_SCHEMA = {
    "type": "object",
    "properties": {
        "color": {"type": "string", "enum": ["red", "green", "blue"]},
        "sizes": {"type": "array", "items": {"type": "string", "enum": ["s", "m", "l"]}, "minItems": 2, "maxItems": 3},
        "paint": {"type": "object", "properties": {"dry": {"type": "boolean"}}, "required": ["dry"]},
    },
    "required": ["color", "sizes", "paint"],
    "additionalProperties": False,
}


def _ended(
    tally: Tally,
    given: ProbeInputs,
    case: str,
    exchange: tuple[ProbeRequest, ProbeAnswer],
    problem: Callable[[ProbeAnswer], str],
) -> Generator[Sequence[ProbeRequest], Sequence[ProbeAnswer], None]:
    """Judges an answer. A grammar makes no model come to an end: one that follows no plain order is no evidence.

    Text of another form is: then nothing forced it.
    """
    ask, heard = exchange
    begun = bool(heard.calls) or heard.content.lstrip()[:1] in ("", *"{[<")
    if heard.finish == "length" and begun and not heard.trouble and problem(heard):
        (plain,) = yield (given.chat(f"Reply with exactly this and nothing else: {_WORD}", 64),)
        if not plain.trouble and _WORD not in plain.content.lower():
            why = f"no end within {heard.output_tokens or _TOKENS} tokens, and the model follows no plain instruction"
            tally.unjudged.append(f"{case}: {why}")
            return
    tally.judge(case, ask, heard, problem)


def schema(given: ProbeInputs) -> Steps:
    tally = Tally()
    form = {"type": "json_schema", "json_schema": {"name": "shirt", "strict": True, "schema": _SCHEMA}}
    for case, streamed in (("whole", {}), ("streamed", {"stream": True})):
        ask = given.chat("Describe a shirt as JSON.", _TOKENS, response_format=form, **streamed)
        (heard,) = yield (ask,)
        yield from _ended(tally, given, case, (ask, heard), _fits)
    return tally


def _fits(heard: ProbeAnswer) -> str:
    try:
        tree = read_json(heard.content)
    except ValueError:
        why = ", cut at max_tokens" if heard.finish == "length" else ""
        return f"no JSON{why}: {shortened(heard.content, 160)!r}"
    return next(problems(tree, _SCHEMA), "")


def choices(given: ProbeInputs) -> Steps:
    """A grammar that allows a few answers only, of which none is what the text asks for."""
    tally = Tally()
    if given.choose is None:
        tally.refused.append("no form of grammar is known for this engine")
        return tally
    words = ("amber", "cobalt", "olive")
    ask = given.chat("What is 2 + 2?", 32, **given.choose(words))
    (heard,) = yield (ask,)
    tally.judge("3 words", ask, heard, lambda h: _allowed(h, words))
    return tally


def _allowed(heard: ProbeAnswer, words: Sequence[str]) -> str:
    return "" if heard.content.strip() in words else f"expected one of {words}, found {shortened(heard.content, 80)!r}"


def choice(given: ProbeInputs) -> Steps:
    """named, required, none: what the client forces, whatever the text is about."""
    tally, dice = Tally(), given.dice("choice")
    names = function_names(dice)
    unit = {"unit": {"type": "string", "enum": ["metre", "mile"]}}
    tools = [function(next(names), unit) for _ in range(3)]
    name = tools[1]["function"]["name"]
    schema = tools[1]["function"]["parameters"]

    def forced(heard: ProbeAnswer, only: str) -> str:
        if not heard.calls:
            return no_call(heard)
        if only and heard.calls[0].name != only:
            return f"function {heard.calls[0].name!r} instead of {only!r}"
        return next(problems(heard.calls[0].tree, schema), "")

    by_name = {"type": "function", "function": {"name": name}}
    cases = {"named function": (by_name, name), "required": ("required", "")}
    for case, (chosen, only) in cases.items():
        ask = given.chat("Good morning.", _TOKENS, tools=tools, tool_choice=chosen)
        (heard,) = yield (ask,)
        yield from _ended(tally, given, case, (ask, heard), lambda heard, only=only: forced(heard, only))  # type: ignore[misc]
    ask = given.chat(call_order(name, {"unit": "mile"}), 32, tools=tools, tool_choice="none")
    (heard,) = yield (ask,)
    tally.judge("none", ask, heard, lambda heard: "a call, although tool_choice is none" if heard.calls else "")
    return tally
