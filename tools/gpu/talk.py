"""A client as users have one, run on a node: `python talk.py URL MODEL`: a streamed chat, then a forced tool call.

`python talk.py URL MODEL reasoning`: only the chat, of which text must come as reasoning.

Standard library only. Prints what came; exit 1 when the stream, the usage or the tool call is not as the API promises.
"""

import json
import sys
import time
import urllib.request
from collections.abc import Iterator

TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city now",
        "strict": True,  # SGLang 0.5.12 holds arguments to the schema only then
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "enum": ["Berlin", "Paris"]},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
            },
            "required": ["city", "unit"],
            "additionalProperties": False,
        },
    },
}


def events(url: str, body: dict) -> Iterator[dict]:
    """The JSON of each server-sent event up to [DONE]."""
    content = json.dumps({**body, "stream": True, "stream_options": {"include_usage": True}}).encode()
    request = urllib.request.Request(f"{url}/v1/chat/completions", content, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as reply:
        for line in reply:
            if line.startswith(b"data: ") and line.strip() != b"data: [DONE]":
                yield json.loads(line[6:])


def check_chat(url: str, model: str, reasons: bool = False) -> bool:
    """64 tokens, counted from usage; chunks with text in them. vLLM's field is `reasoning`, SGLang's has more in it."""
    began, first, text, thought, usage = time.monotonic(), 0.0, 0, 0, {}
    messages = [{"role": "user", "content": "Say hello in one short sentence."}]
    for event in events(url, {"model": model, "messages": messages, "max_tokens": 64, "ignore_eos": True}):
        usage = event.get("usage") or usage
        for choice in event["choices"]:
            delta = choice["delta"]
            thoughts = bool(delta.get("reasoning") or delta.get("reasoning_content"))
            if delta.get("content") or thoughts:
                text, thought, first = text + 1, thought + thoughts, first or time.monotonic() - began
    took = time.monotonic() - began
    print(
        f"chat: {text} chunks with text, {thought} of them reasoning, first after {first:.2f} s, all after {took:.2f} s"
    )
    print(f"usage {usage}")
    return text > 1 and usage.get("completion_tokens") == 64 and (thought > 1) == reasons


def reasoning(url: str, model: str) -> bool:
    return check_chat(url, model, reasons=True)


def tool_call(url: str, model: str) -> bool:
    """Arguments are assembled from the deltas and must be what the tool's schema allows.

    Of a call that ends at max_tokens only what came is judged: random weights may fill the rest with white space, and
    SGLang closes what it has.
    """
    name, arguments, ended = "", "", ""
    messages = [{"role": "user", "content": "What is the weather in Paris?"}]
    choice = {"type": "function", "function": {"name": "get_weather"}}
    body = {"model": model, "messages": messages, "tools": [TOOL], "tool_choice": choice, "max_tokens": 200}
    for event in events(url, body):
        for part in event["choices"]:
            ended = part.get("finish_reason") or ended
            for call in part["delta"].get("tool_calls") or ():
                name += call["function"].get("name") or ""
                arguments += call["function"].get("arguments") or ""
    print(f"tool call: {name}({arguments}), finish_reason {ended}")
    allowed = TOOL["function"]["parameters"]["properties"]
    try:
        given = json.loads(arguments)
    except ValueError:
        return ended == "length" and name == "get_weather" and arguments.lstrip().startswith("{")
    good = name == "get_weather" and all(value in allowed.get(key, {}).get("enum", ()) for key, value in given.items())
    return good and (len(given) == len(allowed) or ended == "length")


if __name__ == "__main__":
    asks = (reasoning,) if sys.argv[3:] == ["reasoning"] else (check_chat, tool_call)
    good = {ask.__name__: ask(sys.argv[1], sys.argv[2]) for ask in asks}
    print("as the API promises" if all(good.values()) else f"NOT as the API promises: {good}")
    sys.exit(0 if all(good.values()) else 1)
