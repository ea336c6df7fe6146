"""A small chat: the visitor's own key at the head's own gateway, so that limits and counts are those of any client."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import httpcore

from sparkwright.adapters.completion import Broken, Completion, SseReader
from sparkwright.console.board import DeploymentWatch
from sparkwright.console.figures import shortened
from sparkwright.console.pages import session_form
from sparkwright.console.sessions import Visitor
from sparkwright.domain.codec import Unreadable
from sparkwright.domain.command import Secret
from sparkwright.domain.foreign_json import read_json
from sparkwright.domain.units import duration
from sparkwright.engines.engine import served_name
from sparkwright.gateway.caddy import CONSOLE_PATH, SERVICE
from sparkwright.report.markup import Html, html_tag, join_html

_URL = "http://gateway/v1/chat/completions"
_SILENCE = 600.0
_QUIET, _AHEAD = 10.0, 64
_TURNS, _OPENING = 200, 2000
Said = tuple[str, str]  # kind: text, thought, error, end; still: nothing new


def messages_of(given: Mapping[str, str]) -> list[dict[str, str]]:
    """The turns so far, or one prompt, from a form. Raises Unreadable."""
    if prompt := given.get("prompt", "").strip():
        return [{"role": "user", "content": prompt}]
    try:
        tree = read_json(given.get("messages", ""))
    except ValueError:
        raise Unreadable("there is nothing to send") from None
    turns = tree if isinstance(tree, list) else []
    if not 0 < len(turns) <= _TURNS or not all(map(_is_turn, turns)):
        raise Unreadable(f"expected 1 to {_TURNS} turns of text")
    return [{"role": turn["role"], "content": turn["content"]} for turn in turns]


def _is_turn(turn: Any) -> bool:
    known = isinstance(turn, dict) and turn.get("role") in ("user", "assistant")
    return known and isinstance(turn.get("content"), str)


async def answer(
    watch: DeploymentWatch, key: Secret, messages: Sequence[Mapping[str, str]]
) -> AsyncGenerator[Said, None]:
    """The answer as it comes. An error comes last."""
    model = served_name(watch.desired.recipe) if watch.desired else ""
    asked = {"model": model, "messages": messages, "stream": True, "stream_options": {"include_usage": True}}
    headers = [("Authorization", f"Bearer {key.reveal()}"), ("Content-Type", "application/json"), ("Host", "gateway")]
    patience = {"timeout": {"connect": 5.0, "read": _SILENCE, "write": 30.0, "pool": 5.0}}
    heard, timed = Completion(), AnswerTiming()
    try:
        async with (
            httpcore.AsyncConnectionPool(uds=SERVICE) as pool,
            pool.stream("POST", _URL, headers=headers, content=json.dumps(asked).encode(), extensions=patience) as got,
        ):
            if got.status != 200:
                yield "error", await _refusal(got)
                return
            reader = SseReader()
            async for chunk in got.aiter_stream():
                for data in reader.feed(chunk):
                    heard.take(data, 0.0)
                    for said in _delta(data):
                        timed.came()
                        yield said
    except (Broken, OSError, httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as error:
        yield "error", shortened(f"the answer ended: {error or type(error).__name__}")
        return
    yield ("end", _counts(heard, timed)) if heard.done else ("error", "the answer was cut off before its end")


async def with_signs_of_life(said: AsyncGenerator[Said, None], every: float = _QUIET) -> AsyncGenerator[Said, None]:
    """The answer, with `still` in between whenever nothing has come for so many seconds: a page that hears not even
    that has lost its connection, while an engine may read a long prompt for minutes (assets/console.js)."""
    ready: asyncio.Queue[Said | None] = asyncio.Queue(_AHEAD)

    async def pump() -> None:
        try:
            async with aclosing(said):
                async for one in said:
                    await ready.put(one)
        except Exception:
            await ready.put(None)
            raise
        await ready.put(None)

    pumping = asyncio.create_task(pump())
    try:
        while (one := await _next(ready, every)) is not None:
            yield one
        await pumping
    finally:
        pumping.cancel()


async def _next(ready: "asyncio.Queue[Said | None]", within: float) -> Said | None:
    try:
        async with asyncio.timeout(within):
            return await ready.get()
    except TimeoutError:
        return "still", ""


@dataclass
class AnswerTiming:
    """The arrival times of an answer's parts, by the monotonic clock."""

    asked: float = field(default_factory=time.monotonic)
    first: float = 0.0
    last: float = 0.0

    def came(self) -> None:
        self.last = time.monotonic()
        self.first = self.first or self.last

    def speed(self, tokens: int) -> float | None:
        """Tokens a second after the first one; None where there are too few to tell."""
        took = self.last - self.first
        return (tokens - 1) / took if tokens > 1 and took > 0 else None


def _counts(heard: Completion, timed: AnswerTiming) -> str:
    tokens = heard.completion_tokens
    made = "unknown" if tokens is None else f"{tokens:,}"
    parts = [f"{heard.prompt_tokens:,} prompt tokens, {made} answer tokens"]
    parts += [f"first after {duration(timed.first - timed.asked)}"] if timed.first else []
    parts += [f"{speed:,.0f} tokens/s"] if tokens and (speed := timed.speed(tokens)) else []
    return ", ".join(parts)


def _delta(data: str) -> Iterator[Said]:
    """The pieces of an event that Completion has found in order."""
    if data.strip() == "[DONE]":
        return
    for choice in read_json(data).get("choices") or ():
        delta = (choice.get("delta") or {}) if isinstance(choice, dict) else {}
        if thought := delta.get("reasoning") or delta.get("reasoning_content"):
            yield "thought", thought
        if text := delta.get("content"):
            yield "text", text


async def _refusal(got: httpcore.Response) -> str:
    body = b""
    async for chunk in got.aiter_stream():
        body += chunk
        if len(body) > 8 * _OPENING:
            break
    text = body.decode("utf-8", "replace")
    try:
        tree = read_json(text)["error"]
        text = tree["message"] if isinstance(tree, dict) else str(tree)
    except (ValueError, KeyError, TypeError):
        pass
    return f"HTTP {got.status}: {shortened(str(text), _OPENING)}"


def chat_page(
    watches: Sequence[DeploymentWatch],
    watch: DeploymentWatch,
    visitor: Visitor,
    known: bool,
    turns: Sequence[Html] = (),
) -> Html:
    """known: whether this process has the visitor's key. turns: of a browser without a script."""
    model = shortened(served_name(watch.desired.recipe), 120) if watch.desired else "unknown"
    names = [one.name for one in watches]
    links = (
        html_tag("a", name, href=f"{CONSOLE_PATH}/chat/{name}", aria_current="page" if name == watch.name else None)
        for name in names
    )
    head = [
        html_tag("h1", f"Chat with {watch.name}"),
        html_tag("nav", *links, aria_label="Deployments", class_="spans") if len(names) > 1 else "",
        html_tag(
            "p",
            "Model ",
            html_tag("b", model),
            f". Counts as use of key {visitor.key.name}. The turns are not stored: they are gone with this page.",
            class_="soft",
        ),
    ]
    if not known:
        again = html_tag("a", "sign in again", href=f"{CONSOLE_PATH}/login")
        why = "The console was started again since you signed in, and it keeps keys in memory only: "
        return join_html(*head, html_tag("p", why, again, " to chat.", class_="alert", role="alert"))
    log = html_tag("div", *turns, id="turns", role="log", aria_label="Turns", tabindex="0")
    fields = [
        html_tag("label", "Your message", for_="prompt"),
        html_tag("textarea", id="prompt", name="prompt", rows="3", required=True, maxlength="100000"),
        html_tag(
            "div",
            html_tag("button", "Send", type="submit", class_="primary"),
            html_tag("button", "Stop", type="button", id="halt", hidden=True),
            html_tag("span", "Enter to send, Shift+Enter for a new line", class_="soft hint", hidden=True),
            class_="row",
        ),
    ]
    return join_html(*head, log, session_form(f"chat/{watch.name}", visitor, *fields, class_="chat", id="chat"))


def chat_turn(who: str, text: str, kind: str = "") -> Html:
    return html_tag("div", html_tag("b", who), html_tag("p", text), class_=f"turn {kind}".strip())
