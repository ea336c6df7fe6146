"""Prompts that pass the gateway's own process code, kept where the recipe allows it, and nowhere else."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from fakes.ports import free_port
from functional.gateway.test_loop_guard import CHAT, KEY, MESSAGES, RESPONSES, TEXT, gateway_before
from local_server import local_server
from sparkwright.adapters import prompt_files
from sparkwright.adapters.prompt_files import PromptFiles
from sparkwright.domain.codec import to_json
from sparkwright.domain.live import DeploymentState, Live
from sparkwright.gateway.prompts import KeptPrompt

LONG = "the password of the vault is swordfish. " * 250
KEEPS = {"remember": 10**6, "limit": 10**7}
USAGE = {"usage": {"prompt_tokens": 2500, "input_tokens": 2500, "completion_tokens": 3}}


@dataclass
class CountingEngine:
    """Answers every request with a count of 2,500 prompt tokens, as a stream if that is asked for."""

    status: int = 200
    got: list[bytes] = field(default_factory=list)

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            body = await reader.readexactly(length)
            self.got.append(body)
            stream = b'"stream": true' in body or b'"stream":true' in body
            text = f"data: {json.dumps({'choices': [], **USAGE})}\n\ndata: [DONE]\n\n" if stream else json.dumps(USAGE)
            kind = "text/event-stream" if stream else "application/json"
            writer.write(
                f"HTTP/1.1 {self.status} X\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n{text}".encode()
            )
            await writer.drain()
            writer.close()


@dataclass
class RememberingScene:
    url: str
    home: Path
    engine: CountingEngine

    @property
    def files(self) -> PromptFiles:
        return PromptFiles(self.home)

    async def ask(self, path: str = CHAT, **body: Any) -> int:
        async with httpx.AsyncClient(headers={"Authorization": f"Bearer {KEY}"}, timeout=60) as client:
            return (await client.post(f"{self.url}{path}", json={"model": "tiny", **body})).status_code

    async def kept(self, but: KeptPrompt | None = None) -> tuple[KeptPrompt, ...]:
        """The prompts on the disk; they are written once the engine is away. but: what was there before."""
        live = Live(time.time(), "tiny", DeploymentState.DEGRADED, time.time(), refusing=True)
        (self.home / "live.new").write_text(to_json(live))
        (self.home / "live.new").replace(self.home / "live.json")
        async with asyncio.timeout(60):
            while (found := self.files.load()) in ((), (but,)):
                await asyncio.sleep(0.05)
        return found


@asynccontextmanager
async def remembering_gateway(
    folder: Path, route: dict[str, Any] = KEEPS, engine: CountingEngine | None = None
) -> AsyncIterator[RememberingScene]:
    port, made = free_port(), engine or CountingEngine()
    supervision = folder / "state" / "supervision"
    async with local_server(made, port), gateway_before(supervision, port, route) as one:
        yield RememberingScene(one.url, supervision / "tiny", made)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, {"messages": [{"role": "user", "content": LONG}]}),
        (CHAT, {"messages": [{"role": "user", "content": LONG}], "stream": True}),
        (TEXT, {"prompt": LONG}),
        (MESSAGES, {"system": LONG, "messages": [{"role": "user", "content": "go"}], "max_tokens": 9}),
        (RESPONSES, {"instructions": LONG, "input": "go"}),
    ],
)
async def test_a_prompt_is_kept_as_the_engine_counted_it(tmp_path: Path, path: str, body: dict[str, Any]) -> None:
    """Every API has it; the engine gets what the client sent, and the text is on no disk in the clear."""
    async with remembering_gateway(tmp_path) as it:
        assert await it.ask(path, **body) == 200
        assert LONG in it.engine.got[0].decode()
        (kept,) = await it.kept()
        assert kept.prompt.path == path and kept.tokens == 2500 and kept.size > len(LONG)
        assert LONG in it.files.body(kept)
    written = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert it.files.key in written and len(written) > 5
    assert not [file for file in written if b"swordfish" in file.read_bytes()]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_chat_without_a_limit_gets_the_recipe_s(tmp_path: Path, stream: bool) -> None:
    """The one limit for answers that come whole; what the client said itself stays, and so do other APIs."""
    turns = [{"role": "user", "content": "Count for ever."}]
    async with remembering_gateway(tmp_path, {"answer_tokens": 500, "context": 8192}) as it:
        await it.ask(messages=turns, stream=stream)
        await it.ask(messages=turns, stream=stream, max_tokens=7)
        await it.ask(messages=turns, stream=stream, max_completion_tokens=8)
        await it.ask(TEXT, prompt="Count for ever.", stream=stream)
        limits = [
            (tree.get("max_tokens"), tree.get("max_completion_tokens")) for tree in map(json.loads, it.engine.got)
        ]
    assert limits == [(500, None), (7, None), (None, 8), (None, None)]


async def test_nothing_is_kept_unless_the_recipe_says_so(tmp_path: Path) -> None:
    """Off is the default, and what was kept before it was switched off is removed with its key."""
    async with remembering_gateway(tmp_path) as it:
        await it.ask(messages=[{"role": "user", "content": LONG}])
        assert await it.kept() and it.files.key.exists()
    async with remembering_gateway(tmp_path, {"limit": 10**7}) as it:
        async with asyncio.timeout(60):
            while it.files.folder.exists() or it.files.key.exists():
                await asyncio.sleep(0.05)
        (it.home / "live.json").unlink()
        assert await it.ask(messages=[{"role": "user", "content": LONG}]) == 200
        assert await it.ask(MESSAGES, messages=[{"role": "user", "content": LONG}]) == 200
    assert not it.files.folder.exists()


async def test_what_the_engine_refused_is_not_kept(tmp_path: Path) -> None:
    """It would be refused again."""
    async with remembering_gateway(tmp_path, engine=CountingEngine(400)) as it:
        assert await it.ask(messages=[{"role": "user", "content": LONG}]) == 400
        it.engine.status = 200
        await it.ask(messages=[{"role": "user", "content": LONG + "x" * 4000}])
        (kept,) = await it.kept()
        assert "x" * 4000 in it.files.body(kept)


async def test_a_conversation_goes_on_after_the_gateway_was_started_again(tmp_path: Path) -> None:
    """Counts outlive it; the longer turn takes the place of the one before, on the disk, too."""
    turns = [{"role": "user", "content": LONG}, {"role": "assistant", "content": "x" * 3000}]
    async with remembering_gateway(tmp_path) as it:
        await it.ask(messages=turns[:1])
        (first,) = await it.kept()
    (it.home / "live.json").unlink()
    async with remembering_gateway(tmp_path) as it:
        await it.ask(messages=turns)
        (kept,) = await it.kept(but=first)
    assert kept.name != first.name and max(kept.uses) == 2 and len(kept.prompt.blocks) > len(first.prompt.blocks)
    assert not (it.files.folder / first.name).exists()


async def test_a_disk_that_takes_nothing_stops_no_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is named, without a word of the text."""

    def full(*what: Any, **how: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(prompt_files, "write", full)
    async with remembering_gateway(tmp_path) as it:
        for _ in range(2):
            assert await it.ask(messages=[{"role": "user", "content": LONG}]) == 200
    said = capfd.readouterr().err
    assert "No space left on device" in said and "swordfish" not in said
