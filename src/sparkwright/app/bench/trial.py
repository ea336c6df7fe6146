"""One short request as those that will be measured: which of their options the server takes, and what it counts."""

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sparkwright.app.bench.target import SIMULATED, Target, patient, shown
from sparkwright.domain.errors import NotReady, UsageError
from sparkwright.domain.probed import Reply
from sparkwright.ports import Clock, Endpoint

_TOKENS = 8
_SECONDS = 300.0  # a first request may still compile
# What not every server takes; some refuse a body with a field that they do not know.
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "include_usage": {"stream_options": {"include_usage": True}},
    "continuous_usage_stats": {"stream_options": {"include_usage": True, "continuous_usage_stats": True}},
    "ignore_eos": {"ignore_eos": True},
    "chat_template_kwargs": {"chat_template_kwargs": {"enable_thinking": False, "thinking": False}},
}
_REFUSED = (400, 422)
_COUNTS = ("content", "reasoning", "reasoning_content", "tool_calls")
Ask = Callable[[tuple[str, ...]], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class Trial:
    """accepted: of OPTIONS; the others were refused. first: seconds until its first bytes."""

    accepted: tuple[str, ...] = ()
    usage: bool = False
    continuous: bool = False
    cached: bool = False
    reasoning: bool = False
    simulated: bool = False
    first: float = 0.0


async def trial(asker: Endpoint, clock: Clock, target: Target, model: str) -> Trial:
    """Raises NotReady when no tokens come, UsageError when the key or the model is refused."""
    url = f"{target.root}/v1/chat/completions"

    async def ask(options: tuple[str, ...]) -> Reply:
        body = _body(model, options)
        return await patient(clock, target, lambda: asker.post(url, body, target.key, _SECONDS))

    accepted, reply = tuple(OPTIONS), await ask(tuple(OPTIONS))
    if reply.status in _REFUSED:
        accepted, reply = await _narrowed(ask)
    if reply.status != 200:
        raise _refusal(target, model, reply)
    return replace(_read(target, reply), accepted=accepted)


def _body(model: str, options: tuple[str, ...]) -> str:
    body: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": "Say a few words."}]}
    body |= {"max_tokens": _TOKENS, "temperature": 0, "stream": True}
    for name in options:
        body |= OPTIONS[name]
    return json.dumps(body)


async def _narrowed(ask: Ask) -> tuple[tuple[str, ...], Reply]:
    """Each option for itself: what is taken alone is taken together."""
    taken = [name for name in OPTIONS if (await ask((name,))).status == 200]
    return tuple(taken), await ask(tuple(taken))


def _refusal(target: Target, model: str, reply: Reply) -> UsageError | NotReady:
    said = f"{target.name}: HTTP {reply.status} to a request of {_TOKENS} tokens of {model!r}: {shown(reply)}"
    if reply.status in (404, *_REFUSED):
        return UsageError(said, "the server's own words say what it does not like; is the model's name right?")
    return NotReady(said, "read the engine's log; a server that lists models can still be unable to answer")


def _read(target: Target, reply: Reply) -> Trial:
    chunks = list(_chunks(reply.body))
    for chunk in chunks:
        if error := chunk.get("error"):
            raise NotReady(f"{target.name}: an error instead of tokens: {error}", "read the engine's log")
    deltas = [choice.get("delta") or {} for chunk in chunks for choice in chunk.get("choices") or ()]
    usages = [usage for chunk in chunks if (usage := chunk.get("usage"))]
    if not usages and not any(delta.get(name) for delta in deltas for name in _COUNTS):
        raise NotReady(
            f"{target.name}: HTTP 200, but no token in {shown(reply)!r}", "is this an OpenAI-compatible API?"
        )
    return Trial(
        usage=any(usage.get("completion_tokens") for usage in usages),
        continuous=len(usages) > 1,
        cached=any((usage.get("prompt_tokens_details") or {}).get("cached_tokens") is not None for usage in usages),
        reasoning=any(delta.get("reasoning") or delta.get("reasoning_content") for delta in deltas),
        simulated=SIMULATED in reply.headers,
        first=reply.first,
    )


def _chunks(body: str) -> Iterator[dict[str, Any]]:
    for line in body.splitlines():
        if not line.startswith("data:") or line[5:].strip() == "[DONE]":
            continue
        try:
            chunk = json.loads(line[5:])
        except ValueError:
            continue
        if isinstance(chunk, dict):
            yield chunk
