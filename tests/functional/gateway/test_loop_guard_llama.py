"""A loop of a real engine: llama.cpp, held to a sentence by its grammar, is ended by the gateway and is free again."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import httpx
import openai
import pytest

from fakes.ports import free_port
from functional.gateway.test_loop_guard import CHAT, KEY, TURNS, gateway_before
from functional.tiny_gguf import write_tiny_gguf
from sparkwright.domain.recipe import Serving
from sparkwright.gateway import loops

pytest.importorskip("xllamacpp", reason="the wheel that holds llama.cpp's server is not installed")
from functional.test_llama_cpp import KEY as ENGINE_KEY
from functional.test_llama_cpp import RECIPE, render_rank, served

LONG = replace(RECIPE, serving=Serving(context=2048, sequences=1, batched_tokens=256))
GRAMMAR = 'root ::= (" I should read the file again.")+'
MOST = 2000


@pytest.mark.full
async def test_a_real_engine_s_loop_is_ended_and_the_engine_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Guards the whole way: the client's library, the gateway, and the engine that stops computing at once.

    The tiny model has a context of 2,048 letters, so a loop is one after 1,024 here.
    """
    monkeypatch.setattr(loops, "OF_WORDS", 1024)
    port = free_port()
    spec = render_rank(write_tiny_gguf(tmp_path / "tiny.gguf"), port, LONG)
    async with served(spec, tmp_path / "log"), gateway_before(tmp_path, port, {"end_loops": True}, ENGINE_KEY) as one:
        client = openai.AsyncOpenAI(base_url=f"{one.url}/v1", api_key=KEY, max_retries=0, timeout=300)
        stream = await client.chat.completions.create(
            model="tiny",
            messages=TURNS,
            stream=True,
            max_tokens=MOST,
            temperature=0,
            extra_body={"grammar": GRAMMAR, "ignore_eos": True},
        )
        chunks = [chunk async for chunk in stream]
        text = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
        assert chunks[-1].choices[0].finish_reason == "length"
        assert "sparkwright ended this answer: it repeated itself" in text
        assert len(text) < 2000
        used = await one.used()
        assert used["looped"] == 1 and used["at_least"] < MOST
        headers = {"Authorization": f"Bearer {ENGINE_KEY}"}
        async with asyncio.timeout(60), httpx.AsyncClient(headers=headers, timeout=60) as direct:
            body = {"model": "tiny", "messages": TURNS, "max_tokens": 1}
            (await direct.post(f"http://127.0.0.1:{port}{CHAT}", json=body)).raise_for_status()
