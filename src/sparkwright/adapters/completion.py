"""What a streamed chat completion says, event by event. Tokens come from `usage` only: with speculation or under

load one event carries many tokens (128 tokens in 27 reads, captures/vllm-0.21.0-speculation-agent).
"""

import json
from dataclasses import dataclass, field
from typing import Any


class Broken(Exception):
    """The stream says that the answer failed, or says something that is no chat completion."""


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
        event = _object(data)
        if event.get("error"):
            raise Broken(f"error in the stream: {_message(event['error'])}")
        self._usage(event.get("usage"))
        for choice in event.get("choices") or ():
            if isinstance(choice, dict):
                self._choice(choice, at)

    def _usage(self, usage: Any) -> None:
        if isinstance(usage, dict):
            self.prompt_tokens = int(usage.get("prompt_tokens") or 0)
            self.completion_tokens = int(usage.get("completion_tokens") or 0)

    def _choice(self, choice: dict[str, Any], at: float) -> None:
        delta = choice.get("delta") or {}
        # vLLM 0.21 calls it `reasoning`, SGLang, llama.cpp and older vLLM `reasoning_content`.
        reasoning = delta.get("reasoning") or delta.get("reasoning_content")
        content = delta.get("content")
        self._content += [content] if content else []
        self._reasoning += [reasoning] if reasoning else []
        if self.first is None and (content or reasoning or delta.get("tool_calls")):
            self.first = at


def _object(data: str) -> dict[str, Any]:
    try:
        event = json.loads(data)
    except ValueError:
        raise Broken(f"an event that is no JSON: {data[:300]}") from None
    if not isinstance(event, dict):
        raise Broken(f"an event that is no object: {data[:300]}")
    return event


def _message(error: Any) -> str:
    text = error.get("message") if isinstance(error, dict) else error
    return str(text or error)[:300]
