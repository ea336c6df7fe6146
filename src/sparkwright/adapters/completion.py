"""A streamed chat completion, event by event. Tokens come from `usage` only: with speculation or under

load one event carries many tokens (128 tokens in 27 reads, captures/vllm-0.21.0-speculation-agent).
"""

from dataclasses import dataclass, field
from typing import Any, TypeVar

from sparkwright.domain.event_stream import TOO_LARGE, EventReader, data_of
from sparkwright.domain.foreign_json import read_json

T = TypeVar("T")
_MOST_TOKENS = 10**12


class Broken(Exception):
    """The stream has an error, or something that is no chat completion."""


@dataclass(slots=True)
class Completion:
    """first: seconds until the first token (content, reasoning or tool call), on the caller's clock; None: none yet."""

    first: float | None = None
    done: bool = False
    events: int = 0
    prompt_tokens: int = 0
    completion_tokens: int | None = None
    _content: list[str] = field(default_factory=list)
    _reasoning: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The content; the reasoning when the model came no further."""
        return "".join(self._content) or "".join(self._reasoning)

    def take(self, data: str, at: float) -> None:
        """One event's data, received at `at`. Raises Broken."""
        if data.strip() == "[DONE]":
            self.done = True
            return
        self.events += 1
        try:
            event = read_json(data)
        except ValueError:
            raise Broken(f"an event that is no JSON: {data[:300]}") from None
        if not isinstance(event, dict):
            raise Broken(f"an event that is no object: {data[:300]}")
        if event.get("error"):
            error = event["error"]
            text = error.get("message") if isinstance(error, dict) else error
            raise Broken(f"error in the stream: {str(text or error)[:300]}")
        usage = event.get("usage")
        if isinstance(usage, dict):
            self.prompt_tokens = _count(usage, "prompt_tokens")
            self.completion_tokens = _count(usage, "completion_tokens")
        for choice in _of(list, event, "choices"):
            if isinstance(choice, dict):
                self._choice(choice, at)

    def _choice(self, choice: dict[str, Any], at: float) -> None:
        delta = _of(dict, choice, "delta")
        # vLLM 0.21 calls it `reasoning`, SGLang, llama.cpp and older vLLM `reasoning_content`.
        reasoning = _of(str, delta, "reasoning") or _of(str, delta, "reasoning_content")
        content = _of(str, delta, "content")
        self._content += [content] if content else []
        self._reasoning += [reasoning] if reasoning else []
        if self.first is None and (content or reasoning or delta.get("tool_calls")):
            self.first = at


def _of(kind: type[T], tree: dict[str, Any], name: str) -> T:
    """The value of a name, an empty one where there is none. Raises Broken for any other kind."""
    value = tree.get(name)
    if value is not None and not isinstance(value, kind):
        raise Broken(f"an event whose `{name}` is no {kind.__name__}: {str(value)[:300]}")
    return value or kind()


def _count(usage: dict[str, Any], name: str) -> int:
    value = usage.get(name) or 0
    if not isinstance(value, int | float) or not 0 <= value < _MOST_TOKENS:
        raise Broken(f"`usage.{name}` is no count: {str(value)[:100]}")
    return int(value)


class SseReader:
    """Feed bytes, get the `data` of complete events. One read may hold many events or a part of one."""

    def __init__(self) -> None:
        self._events = EventReader()

    def feed(self, chunk: bytes) -> list[str]:
        """The data of every event that this chunk completes. Comments, names, ids and empty events give nothing.

        Raises Broken for an event that is too large.
        """
        found = [data_of(event) for event in self._events.feed(chunk)]
        if self._events.too_large:
            raise Broken(TOO_LARGE)
        return [data.decode("utf-8", "replace") for data in found if data is not None]
