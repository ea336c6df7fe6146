"""First token of a long context after a kill of the real llama.cpp: lost, sent again as by `serving.remember`, and

restored by the engine from its own file (`--slot-save-path`).

bench_prefixes.py [--tokens 62000] [--threads 2] [--json]. A model of random weights whose tokens are letters, narrow
and with one layer: what a context costs is quadratic in attention alone. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx

HERE = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(HERE / "tests")]

from fakes.ports import free_port  # type: ignore[import-not-found]  # noqa: E402
from functional import tiny_gguf  # type: ignore[import-not-found]  # noqa: E402
from sparkwright.adapters.prompt_files import PromptFiles  # noqa: E402
from sparkwright.engines.launchers import llama_server  # noqa: E402
from sparkwright.gateway.prompts import PromptShelf, prompt_to_keep  # noqa: E402

CHAT = "/v1/chat/completions"
WORDS = "the quick brown fox jumps over a lazy dog while rain falls on the old harbour and nobody counts the boats "


@dataclass
class PrefixFigures:
    """Seconds. The first token of the same question: cold is its first time, warm while the engine has its context.

    cpu: llama.cpp's processor time for the first time. load: of the machine at the end.
    """

    prompt_tokens: int
    load: float
    cpu: float
    cold: float
    warm: float
    after_kill_lost: float
    after_kill_sent_again: float
    sending_again: float
    after_kill_restored: float
    saving: float
    restoring: float
    slot_file_bytes: int
    kept_file_bytes: int


@dataclass(frozen=True)
class ContextSize:
    """tokens: letters of the text, about four fifths of them become tokens. threads: of the engine."""

    tokens: int
    threads: int


def processor_time(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def conversation(tokens: int) -> list[dict[str, str]]:
    """A context of about that many tokens: the model's own are letters."""
    text = (WORDS * (tokens // len(WORDS) + 1))[:tokens]
    return [{"role": "system", "content": text}, {"role": "user", "content": "How many boats?"}]


@asynccontextmanager
async def engine(folder: Path, model: Path, size: ContextSize) -> AsyncIterator[tuple[httpx.AsyncClient, int]]:
    """llama.cpp's server and its pid; killed at the end, as by kill -9."""
    port = free_port()
    argv = [sys.executable, llama_server.__file__, "-m", str(model), "--host", "127.0.0.1", "--port", str(port)]
    argv += ["-c", str(size.tokens * 2), "-np", "1", "-b", "2048", "-t", str(size.threads), "-a", "tiny", "--slots"]
    argv += ["-cram", "0", "-fa", "on", "-ctk", "q8_0", "-ctv", "q8_0", "--slot-save-path", f"{folder}/"]
    with (folder / "log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(*argv, stdout=log, stderr=log, env=dict(os.environ))
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=3600) as client:
            await _ready(client, process)
            yield client, process.pid
    finally:
        process.kill()
        await process.wait()


async def _ready(client: httpx.AsyncClient, process: asyncio.subprocess.Process) -> None:
    while True:
        if process.returncode is not None:
            raise SystemExit("llama.cpp's server has ended; see its log")
        try:
            if (await client.get("/health")).status_code == 200:
                return
        except httpx.TransportError:
            pass
        await asyncio.sleep(0.1)


async def first_token(client: httpx.AsyncClient, messages: list[dict[str, str]]) -> tuple[float, int]:
    """Seconds until the first byte of a stream's answer with text, and the prompt's tokens."""
    body: dict[str, Any] = {"model": "tiny", "messages": messages, "max_tokens": 4, "stream": True, "temperature": 0}
    body |= {"ignore_eos": True, "stream_options": {"include_usage": True}}
    began, first, prompt = time.monotonic(), 0.0, 0
    async with client.stream("POST", CHAT, json=body) as answer:
        answer.raise_for_status()
        async for line in answer.aiter_lines():
            if not line.startswith("data: {"):
                continue
            event = json.loads(line[6:])
            if not first and any("content" in choice["delta"] for choice in event.get("choices", ())):
                first = time.monotonic() - began
            prompt = (event.get("usage") or {}).get("prompt_tokens", prompt)
    return first, prompt


async def move_slot(client: httpx.AsyncClient, what: str) -> float:
    began = time.monotonic()
    (await client.post(f"/slots/0?action={what}", json={"filename": "slot.bin"})).raise_for_status()
    return time.monotonic() - began


async def measured(folder: Path, size: ContextSize) -> PrefixFigures:
    tiny_gguf.CONTEXT, tiny_gguf.LAYERS, tiny_gguf.HEADS, tiny_gguf.KV_HEADS = size.tokens * 2, 1, 2, 1
    model, messages = tiny_gguf.write_tiny_gguf(folder / "tiny.gguf"), conversation(size.tokens)
    async with engine(folder, model, size) as (client, pid):
        cold, prompt = await first_token(client, messages)
        cpu = processor_time(pid)
        warm = statistics.median([(await first_token(client, messages))[0] for _ in range(3)])
        saving = await move_slot(client, "save")
    files, body = _kept(folder, messages, prompt)
    async with engine(folder, model, size) as (client, _):
        lost, _ = await first_token(client, messages)
    async with engine(folder, model, size) as (client, _):
        began = time.monotonic()
        (await client.post(CHAT, content=body)).raise_for_status()
        again = time.monotonic() - began
        sent, _ = await first_token(client, messages)
    async with engine(folder, model, size) as (client, _):
        restoring = await move_slot(client, "restore")
        restored, _ = await first_token(client, messages)
    sizes = (folder / "slot.bin").stat().st_size, sum(one.stat().st_size for one in files.folder.iterdir())
    load = os.getloadavg()[1]
    return PrefixFigures(prompt, load, cpu, cold, warm, lost, sent, again, restored, saving, restoring, *sizes)


def _kept(folder: Path, messages: list[dict[str, str]], tokens: int) -> tuple[PromptFiles, str]:
    """The prompt as the gateway keeps it, and as the supervisor reads it again after a start."""
    home = folder / "supervision" / "tiny"
    home.mkdir(parents=True)
    files, shelf = PromptFiles(home), PromptShelf(1 << 30, 3600.0)
    prompt = prompt_to_keep(CHAT, json.dumps({"model": "tiny", "messages": messages}).encode())
    assert prompt, "a shorter one is not kept"
    shelf.add(prompt, tokens, time.time())
    (kept,) = files.save(shelf.sort(time.time()))
    return files, files.body(kept)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench_prefixes.py", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--tokens", type=int, default=62_000, help="letters of the context (default 62,000)")
    parser.add_argument("--threads", type=int, default=2, help="of llama.cpp (default 2)")
    parser.add_argument("--json", action="store_true", help="the figures as JSON")
    chosen = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="prefixes-") as folder:
        found = asyncio.run(measured(Path(folder), ContextSize(chosen.tokens, chosen.threads)))
    if chosen.json:
        print(json.dumps(asdict(found)))
    else:
        for name, value in asdict(found).items():
            print(f"{name.replace('_', ' '):24} {value:,.3f}" if isinstance(value, float) else f"{name:24} {value:,}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
