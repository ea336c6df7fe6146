"""Tool schemas as an agent sends them with every turn: valid OpenAI `tools`, made up, of a size that can be set."""

import json
from random import Random

from sparkwright.loadgen import prose, words

_TYPES = (
    {"type": "string"},
    {"type": "integer", "minimum": 0},
    {"type": "boolean"},
    {"type": "array", "items": {"type": "string"}},
    {"type": "string", "enum": ["first", "last", "all"]},
)


def tools_text(count: int, padding: str, salt: str) -> str:
    """`"tools":[...],"tool_choice":"none"` of so many functions: the same ones, but for the salt.

    salt: words at the very beginning. padding: words at the very end. With `none` the model reads them and answers in
    plain text: a call could be refused by a server without a parser for it, and would end the answer early.
    """
    dice = Random("tools")
    listed = [_function(dice, number) for number in range(count)]
    listed[0]["description"] = f"For{salt}: {listed[0]['description']}"
    listed[-1]["description"] = f"{listed[-1]['description']} See also{padding}."
    tools = [{"type": "function", "function": function} for function in listed]
    return f'"tools":{json.dumps(tools)},"tool_choice":"none"'


def _function(dice: Random, number: int) -> dict[str, object]:
    noun, other = dice.sample(words.THINGS, 2)
    fields = dice.sample(words.FIELDS, dice.randrange(2, 5))
    properties = {field: {**dice.choice(_TYPES), "description": prose.sentence(dice)} for field in fields}
    return {
        "name": f"{dice.choice(words.VERBS)}_{noun}_{number}",
        "description": f"{dice.choice(words.VERBS).capitalize()} the {noun} of a {other}. {prose.sentence(dice)}",
        "parameters": {"type": "object", "properties": properties, "required": fields[:1]},
    }
