"""A simulator in this process: its app driven directly, every body message saved as one network read."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparkwright.simulator import model, options
from sparkwright.simulator.rank import SimulatedRank, rank_from
from sparkwright.simulator.service import SimulatedService
from sparkwright.simulator.settings import Faults, settings_from

CAPTURES = Path(__file__).parents[2] / "data" / "captures" / "twin"
FLAGS = ["--served-model-name", "tiny-qwen3", "--max-model-len", "32768", "--gpu-memory-utilization", "0.2"]
MakeRank = Callable[..., SimulatedRank]
MakeClient = Callable[..., Awaitable["InProcessClient"]]


def rank_in(folder: Path, *flags: str, config: str = "tiny-qwen3", env: dict[str, str] | None = None) -> SimulatedRank:
    """A rank at full speed, of a model with this configuration, which is copied there."""
    (folder / config).mkdir(exist_ok=True)
    shutil.copy(CAPTURES / f"{config}.config.json", folder / config / "config.json")
    args = options.parse([str(folder / config), *FLAGS, *flags])
    settings = settings_from({"SPARKWRIGHT_SIMULATOR_TIME_SCALE": "0", **(env or {})})
    shape = model.read(folder / config, str(folder / config), settings.weights_gib)
    return rank_from(args, shape, settings, Faults(settings.fault, settings.control, args.node_rank))


@dataclass
class InProcessReply:
    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    reads: list[bytes] = field(default_factory=list)

    @property
    def text(self) -> str:
        return b"".join(self.reads).decode()

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def events(self) -> list[Any]:
        """The stream's JSON chunks, without [DONE]."""
        lines = [line.removeprefix("data: ") for line in self.text.split("\n\n") if line]
        return [json.loads(line) for line in lines if line != "[DONE]"]

    @property
    def usage(self) -> Any:
        return self.events[-1]["usage"]


@dataclass
class InProcessClient:
    service: SimulatedService

    async def get(self, path: str, key: str = "") -> InProcessReply:
        return await self.send("GET", path, b"", key)

    async def post(self, path: str, body: Any, key: str = "", leave_after: float | None = None) -> InProcessReply:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.send("POST", path, raw, key, leave_after)

    async def send(
        self, method: str, path: str, body: bytes, key: str, leave_after: float | None = None
    ) -> InProcessReply:
        rank = self.service.rank
        app = self.service.server.app((*rank.settings.api_keys, *(rank.args.api_key or ())))
        headers = [(b"content-length", str(len(body)).encode())]
        headers += [(b"authorization", f"Bearer {key}".encode())] if key else []
        scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode(), "headers": headers}
        scope |= {"query_string": b"", "http_version": "1.1", "asgi": {"version": "3.0", "spec_version": "2.3"}}
        reply, sent = InProcessReply(), False

        async def receive() -> dict[str, Any]:
            nonlocal sent
            if sent and leave_after is not None:
                await asyncio.sleep(leave_after)
                return {"type": "http.disconnect"}
            if sent:
                await asyncio.Event().wait()
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def store(message: Any) -> None:
            if message["type"] == "http.response.start":
                reply.status = message["status"]
                reply.headers = [(k.decode(), v.decode()) for k, v in message["headers"]]
            elif message.get("body"):
                reply.reads.append(message["body"])

        await app(scope, receive, store)
        return reply


def plain_bytes(read: str) -> str:
    """A chunk with what may differ between two runs replaced: ids, times, names, texts, counts, fingerprint."""
    read = re.sub(r'"id":"(chatcmpl|cmpl|modelperm)-[0-9a-f]{16}"', r'"id":"\1-#"', read)
    read = re.sub(r'"(text|content|reasoning)":"(?:[^"\\]|\\.)+"', r'"\1":"..."', read)
    read = re.sub(r'"(created|prompt_tokens|total_tokens|completion_tokens|cached_tokens)":\d+', r'"\1":#', read)
    return re.sub(r'"vllm-0\.21\.0-[0-9a-z-]+"', '"FINGERPRINT"', read)


def collapsed(reads: list[str]) -> list[str]:
    """Runs of the same chunk count once: how many tokens share one differs from run to run."""
    plain = [plain_bytes(r) for r in reads]
    return [r for i, r in enumerate(plain) if i == 0 or r != plain[i - 1]]


async def wait_until(check: Any, seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not check():
            await asyncio.sleep(0.005)
