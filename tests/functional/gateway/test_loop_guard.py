"""Answers that loop or reason for ever, through the gateway's own process code to the clients' own libraries."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, replace
from itertools import cycle, repeat
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest

from fakes.ports import free_port
from local_server import local_links, local_server
from patience import PATIENCE
from sparkwright.adapters.machine import SystemClock
from sparkwright.domain.codec import to_json
from sparkwright.gateway.keys import FrontSetting, Key, Keys, RouteSetting, digest, text_of
from sparkwright.supervisor.proxy.gateway import Doorman
from sparkwright.supervisor.proxy.passing import Passing

KEY = "sk-sw-" + "1f" * 24
PATHS = ("/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses")
CHAT, TEXT, MESSAGES, RESPONSES = PATHS
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nConnection: close\r\n\r\n"
SENTENCE = ("I", "should", "read", "the", "file", "again", "before", "I", "answer.")
TURNS: Any = [{"role": "user", "content": "Go on."}]
Words = Callable[[], Iterator[str]]


def sse_event(tree: Any, name: str = "") -> bytes:
    return (f"event: {name}\n" if name else "").encode() + f"data: {json.dumps(tree)}\n\n".encode()


def chunks(path: str, words: Iterator[str], field: str) -> Iterator[bytes]:
    """The events of that API for words without end."""
    base: dict[str, Any] = {"id": "x-1", "created": 1700000000, "model": "tiny"}
    if path == CHAT:
        for word in words:
            choice = {"index": 0, "delta": {field: word}, "finish_reason": None}
            yield sse_event({**base, "object": "chat.completion.chunk", "choices": [choice]})
    elif path == TEXT:
        for word in words:
            yield sse_event({**base, "object": "text_completion", "choices": [{"index": 0, "text": word}]})
    elif path == MESSAGES:
        message: dict[str, Any] = {"id": "x-1", "type": "message", "role": "assistant", "model": "tiny", "content": []}
        message |= {"stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 3, "output_tokens": 0}}
        yield sse_event({"type": "message_start", "message": message}, "message_start")
        block = {"type": "text", "text": ""}
        yield sse_event({"type": "content_block_start", "index": 0, "content_block": block}, "content_block_start")
        for word in words:
            delta = {"type": "text_delta", "text": word}
            yield sse_event({"type": "content_block_delta", "index": 0, "delta": delta}, "content_block_delta")
    else:
        response = {"id": "x-1", "object": "response", "created_at": 1, "model": "tiny", "output": [], "status": "x"}
        yield sse_event({"type": "response.created", "response": response, "sequence_number": 0}, "response.created")
        for word in words:
            kind = "response.output_text.delta"
            where = {"item_id": "m", "output_index": 0, "content_index": 0, "sequence_number": 1, "logprobs": []}
            yield sse_event({"type": kind, "delta": word, **where}, kind)


@dataclass
class LoopingEngine:
    """words: of each answer. sent: events; left: the gateway has closed the connection before the end."""

    words: Words
    field: str = "content"
    sent: int = 0
    left: bool = False
    whole: bytes = b""

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
        with suppress(ConnectionError):
            if self.whole:
                writer.write(HEAD % b"application/json" + self.whole)
            else:
                writer.write(HEAD % b"text/event-stream")
                await self._stream(path, writer)
            await writer.drain()
        writer.close()

    async def _stream(self, path: str, writer: asyncio.StreamWriter) -> None:
        try:
            for event in chunks(path, self.words(), self.field):
                writer.write(event)
                self.sent += 1
                await writer.drain()
        except ConnectionError:
            self.left = True
            raise
        writer.write(b"data: [DONE]\n\n")


@dataclass
class GuardedGateway:
    url: str
    folder: Path

    async def used(self) -> dict[str, Any]:
        """The row of the key, once its request is over."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with closing(sqlite3.connect(self.folder / "usage.sqlite")) as link:
                link.row_factory = sqlite3.Row
                row = dict(link.execute("SELECT * FROM usage").fetchone() or {})
            if row and row["requests"] == sum(
                row[name] for name in ("finished", "uncounted", "cut", "looped", "reasoned")
            ):
                return row
            await asyncio.sleep(0.05)
        raise AssertionError(row)


@asynccontextmanager
async def gateway_before(
    tmp_path: Path, port: int, route: dict[str, Any], engine_key: str = "", **key: Any
) -> AsyncIterator[GuardedGateway]:
    """A gateway's process code before the engine on that port. key: limits of the client's key."""
    own = free_port()
    routes = tuple(f"POST {path}" for path in PATHS)
    named = "ENGINE_KEY" if engine_key else ""
    setting = RouteSetting("tiny", f"127.0.0.1:{port}", 90_000, 8443, 9100, named, ("tiny",), routes, ())
    for place, text in (
        ("_gateway/door/gateway.json", to_json(FrontSetting(8443, str(tmp_path / "keys.json"), 9100))),
        ("tiny/door/door.json", to_json(replace(setting, **route))),
        ("tiny/secrets.json", json.dumps({"ENGINE_KEY": engine_key})),
        ("keys.json", text_of(Keys((replace(Key("ci", digest(KEY)), **key),)))),
    ):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(text)
    door = Doorman(tmp_path / "_gateway", SystemClock())
    remembers = asyncio.create_task(door.remembering.watch(lambda: door.deployed))
    try:
        async with local_links(Passing({}, door), own):
            yield GuardedGateway(f"http://127.0.0.1:{own}", tmp_path)
    finally:
        remembers.cancel()
        await door.remembering.end()


@asynccontextmanager
async def gateway(
    tmp_path: Path, engine: LoopingEngine, route: dict[str, Any], key: dict[str, Any]
) -> AsyncIterator[GuardedGateway]:
    port = free_port()
    async with (
        local_server(engine, port),
        gateway_before(tmp_path, port, route, **key) as made,
    ):
        yield made


def looping() -> Iterator[str]:
    return cycle([f" {word}" for word in SENTENCE])


async def read_openai(scene: GuardedGateway, path: str, **more: Any) -> tuple[str, list[str]]:
    """Text and finish reasons, as OpenAI's own library has them."""
    client = openai.AsyncOpenAI(base_url=f"{scene.url}/v1", api_key=KEY, max_retries=0)
    texts, reasons = [], []
    if path == CHAT:
        stream: Any = await client.chat.completions.create(model="tiny", messages=TURNS, stream=True, **more)
        async for chunk in stream:
            for choice in chunk.choices:
                texts.append(choice.delta.content or "")
                reasons += [choice.finish_reason] if choice.finish_reason else []
    elif path == TEXT:
        stream = await client.completions.create(model="tiny", prompt="Go on.", stream=True)
        async for chunk in stream:
            texts.append(chunk.choices[0].text)
            reasons += [chunk.choices[0].finish_reason] if chunk.choices[0].finish_reason else []
    else:
        stream = await client.responses.create(model="tiny", input="Go on.", stream=True)
        async for event in stream:
            texts.append(event.delta if event.type == "response.output_text.delta" else "")
            if event.type == "response.incomplete":
                reasons.append(event.response.incomplete_details.reason)
                texts.append(event.response.model_extra["sparkwright"]["note"])
    return "".join(texts), reasons


@pytest.mark.parametrize(("path", "reason"), [(CHAT, "length"), (TEXT, "length"), (RESPONSES, "max_output_tokens")])
async def test_a_loop_ends_with_a_reason_and_a_note(tmp_path: Path, path: str, reason: str) -> None:
    """Guards an agent that would read the same sentence for an hour: the client's library ends in order, the engine is
    left, and the request counts as looped."""
    engine = LoopingEngine(looping)
    async with gateway(tmp_path, engine, {"end_loops": True}, {}) as scene, asyncio.timeout(PATIENCE):
        text, reasons = await read_openai(scene, path)
        used = await scene.used()
        while not engine.left:  # it hears of that a turn of the loop later
            await asyncio.sleep(0.01)
    assert reasons == [reason]
    assert "[sparkwright ended this answer: it repeated itself at least" in text
    assert len(text) < 24_000  # some thousand tokens
    assert (used["looped"], used["cut"]) == (1, 0) and used["at_least"] > 500


async def test_a_loop_of_the_messages_api_ends(tmp_path: Path) -> None:
    """Guards Claude's clients, whose stream has blocks that must be closed."""
    async with gateway(tmp_path, LoopingEngine(looping), {}, {"end_loops": True}) as scene, asyncio.timeout(PATIENCE):
        client = anthropic.AsyncAnthropic(base_url=scene.url, api_key=KEY, max_retries=0)
        async with client.messages.stream(model="tiny", max_tokens=9, messages=TURNS) as stream:
            message = await stream.get_final_message()
        assert (await scene.used())["looped"] == 1
    assert message.stop_reason == "max_tokens"
    assert "sparkwright ended this answer" in message.content[-1].text  # type: ignore[union-attr]


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_reasoning_ends_at_its_limit(tmp_path: Path, field: str) -> None:
    """Guards the limit of the stricter of key and deployment; the words all differ, so it is no loop."""
    engine = LoopingEngine(lambda: (f" thought-{n * 7919 % 100_003}" for n in range(1_000_000)), field)
    async with gateway(tmp_path, engine, {"reasoning_tokens": 9000}, {"reasoning_tokens": 400}) as scene:
        text, reasons = await read_openai(scene, CHAT)
        used = await scene.used()
    assert reasons == ["length"] and "it reasoned for more than 400 tokens, the limit here" in text
    assert (used["reasoned"], used["looped"]) == (1, 0)
    assert 400 <= used["at_least"] <= 800


async def test_without_the_switch_nothing_is_ended(tmp_path: Path) -> None:
    """Guards the default: a stream that repeats itself is the client's own affair."""
    engine = LoopingEngine(lambda: repeat(" again", 9000))
    async with gateway(tmp_path, engine, {}, {}) as scene:
        text, _ = await read_openai(scene, CHAT)
        used = await scene.used()
    assert text == " again" * 9000 and not engine.left
    assert (used["looped"], used["uncounted"]) == (0, 1)


async def test_an_honest_stream_passes_to_the_byte(tmp_path: Path) -> None:
    """Guards everybody else: rows of a long table, guarded, come as the engine has sent them."""
    rows = [f"| node-{n} | ok | ok | 0 |\n" for n in range(3000)]
    async with gateway(tmp_path, LoopingEngine(lambda: iter(rows)), {"end_loops": True}, {}) as scene:
        body = {"model": "tiny", "messages": TURNS, "stream": True, "stream_options": {"include_usage": True}}
        async with httpx.AsyncClient(headers={"Authorization": f"Bearer {KEY}"}, timeout=60) as client:
            got = (await client.post(f"{scene.url}{CHAT}", json=body)).content
    assert got == b"".join(chunks(CHAT, iter(rows), "content")) + b"data: [DONE]\n\n"


async def test_a_loop_that_was_not_streamed_is_counted(tmp_path: Path) -> None:
    """Guards the count: such an answer comes when the engine has ended it, so it is passed on whole."""
    text = " The same again." * 2000
    whole = json.dumps({"choices": [{"index": 0, "message": {"content": text}, "finish_reason": "length"}]}).encode()
    async with gateway(tmp_path, LoopingEngine(looping, whole=whole), {"end_loops": True}, {}) as scene:
        async with httpx.AsyncClient(headers={"Authorization": f"Bearer {KEY}"}, timeout=60) as client:
            got = await client.post(f"{scene.url}{CHAT}", json={"model": "tiny", "messages": TURNS})
        assert got.content == whole
        assert (await scene.used())["looped"] == 1
