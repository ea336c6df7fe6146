"""llama.cpp: `llama-server -m FILE.gguf ...` and the `rpc-server -H ADDRESS -p PORT` that it spreads layers over.

Read from tools/server, tools/rpc and ggml/src/ggml-rpc of the source in the llama-cpp-python sdist 0.3.36, and from the
log of the server inside the xllamacpp wheel 2026.10.11549. A GGUF file's size is believed, its content is not read; the
shape is config.json's next to it, or twin-tiny's.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import sys
import time
from argparse import Namespace
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from simulators import console
from simulators.life import Head
from simulators.site import SimulatedSite
from sparkwright.simulator.asked import json_response
from sparkwright.simulator.link import Frame, WorkerPeer, read_frame, write_frame
from sparkwright.simulator.link import HeadLink as Link
from sparkwright.simulator.log import LineForm
from sparkwright.simulator.model import GIB
from sparkwright.simulator.rank import SimulatedRank, StartFailed
from sparkwright.simulator.service import Core

VERSION = "2026.10.11549"
PROTOCOL = "4.0.1"
NO_MODEL = "sparkwright/twin-tiny"
CRASHED = "Remote RPC server crashed or returned malformed response"
REFUSAL = "error: invalid argument: {}\n"
METRICS: Mapping[str, str] = {
    "llamacpp:prompt_tokens_total": "vllm:prompt_tokens_total",
    "llamacpp:tokens_predicted_total": "vllm:generation_tokens_total",
    "llamacpp:prompt_tokens_cached_total": "vllm:prompt_tokens_cached_total",
    "llamacpp:requests_processing": "vllm:num_requests_running",
    "llamacpp:requests_deferred": "vllm:num_requests_waiting",
    "llamacpp:spec_decode_num_draft_tokens_total": "vllm:spec_decode_num_draft_tokens_total",
    "llamacpp:spec_decode_num_accepted_tokens_total": "vllm:spec_decode_num_accepted_tokens_total",
    "llamacpp:spec_decode_num_drafts_total": "vllm:spec_decode_num_drafts_total",
    "llamacpp:n_decode_total": "vllm:iteration_tokens_total",
}
OPEN_PATHS = ("/health", "/v1/health", "/models", "/v1/models", "/")
BORN = time.monotonic()


def run(argv: list[str], env: Mapping[str, str]) -> int:
    """llama-server. Raises NoStart and, for a refused command line, SystemExit(1)."""
    keys = tuple(filter(None, env.get("LLAMA_API_KEY", "").split(",")))
    own = console.settings(env, keys)
    version = own.version or VERSION
    parser = console.parser("llama-server", f"llama-cpp-{version}", REFUSAL, code=1, allow_abbrev=False)
    given = parser.parse_args(argv)
    if given.version:
        sys.stderr.write(f"version: {version.rpartition('.')[2]} (simulated)\n")
        return 0
    size = _size(given.model)
    servers = [_address(text) for text in (given.rpc or "").split(",") if text]
    args = _canonical(given, 1 + len(servers))
    rank = console.make_rank(args, replace(own, weights_gib=own.weights_gib or size), LineForm(_own, lambda: ""))
    link = Caller(servers)
    return asyncio.run(Head(rank, LlamaDialect(given), link, link.call, f"llama.cpp {version}").run())


def _size(path: str | None) -> float:
    """GiB of the file. Raises NoStart for what llama.cpp cannot load."""
    try:
        with Path(path or "").open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise console.NoStart(f"E srv    load_model: failed to load model, '{path}': {error.strerror}") from None
    if magic != b"GGUF":
        raise console.NoStart(f"E gguf_init_from_reader: invalid magic characters: '{magic!r}', expected 'GGUF'")
    return Path(path or "").stat().st_size / GIB


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


def _canonical(given: Namespace, nodes: int) -> Namespace:
    slots = int(given.parallel or 4)
    folder = Path(given.model).parent
    context = int(given.ctx_size or 0) // slots
    return console.canonical(
        str(folder) if (folder / "config.json").is_file() else NO_MODEL,
        served_model_name=[given.alias or Path(given.model).name],
        host=given.host or "127.0.0.1",
        port=int(given.port or 8080),
        pipeline_parallel_size=nodes,
        max_model_len=context or None,
        max_num_seqs=slots,
        max_num_batched_tokens=int(given.batch_size or 2048),
        enforce_eager=True,
        uvicorn_log_level="error",  # its web server is another, and says little
        enable_auto_tool_choice=True,
        tool_call_parser="hermes",
    )


def _own(level: str) -> str:
    """Uptime in minutes, seconds, milli- and microseconds, and a letter."""
    spent = int((time.monotonic() - BORN) * 1e6)
    minutes, rest = divmod(spent, 60_000_000)
    return f"{minutes}.{rest // 1_000_000:02d}.{rest // 1000 % 1000:03d}.{rest % 1000:03d} {level[0]} "


class LlamaDialect:
    """llama-server's (dialect.Dialect)."""

    notices = False
    api = None
    metrics = METRICS

    def __init__(self, given: Namespace) -> None:
        self.given = given

    def greet(self, rank: SimulatedRank) -> None:
        say = rank.voices.api
        say.warning("", f"cmn   llama_server: {console.SIMULATED.format(engine='llama.cpp')}")
        say.info("", "srv   llama_server: initializing ...")

    def join(self, rank: SimulatedRank) -> None:
        rank.voices.api.info("", f"srv     load_model: loading model '{self.given.model}'")

    def met(self, rank: SimulatedRank, others: list[Frame]) -> None:
        """Its devices and their memory are printed by the loader."""
        for number, other in enumerate(others):
            free = float(other["free"]) * 1024
            rank.voices.api.info("", f"llama_prepare_model_devices: using device RPC{number} - {free:.0f} MiB free")

    async def load(self, rank: SimulatedRank) -> None:
        say, part = rank.voices.api, rank.ledger.weights * 1024
        await rank.enter("load")
        await rank.passing(rank.speed.load_s * (rank.faults.value("slow_load") or 1.0))
        for number in range(rank.limits.world):
            name = f"RPC{number - 1}" if number else "CUDA0"
            say.info("", f"load_tensors: {name:>12} model buffer size = {part:8.2f} MiB")
        say.raw("." * 80 + "\n")

    async def fit(self, rank: SimulatedRank) -> None:
        await rank.enter("kv")
        say, limits, ledger = rank.voices.api, rank.limits, rank.ledger
        tokens = limits.context * limits.sequences
        size = tokens * ledger.per_token / 2**20
        if size / 1024 > ledger.cache:
            raise StartFailed("", {"ERROR": f"unable to allocate KV cache of {size:.2f} MiB"})
        say.info("", f"llama_context: n_ctx         = {tokens}")
        say.info("", f"llama_kv_cache: size = {size:7.2f} MiB ({tokens} cells, {rank.model.layers} layers)")

    async def capture(self, rank: SimulatedRank) -> None:
        await rank.enter("graphs")
        limits, say = rank.limits, rank.voices.api
        say.info("", "cmn  common_init_: warming up the model with an empty run - please wait ...")
        await rank.passing(2.0)
        say.info("", f"srv     load_model: initializing, n_slots = {limits.sequences}, n_ctx_slot = {limits.context}")
        say.info("", "srv   llama_server: model loaded")

    def listening(self, rank: SimulatedRank) -> None:
        rank.voices.api.info("", f"srv   llama_server: listening on http://{rank.args.host}:{rank.args.port}")

    def ready(self, rank: SimulatedRank) -> None:
        rank.voices.api.info("", "srv  update_slots: all slots are idle")

    def failed(self, rank: SimulatedRank, why: str) -> None:
        rank.voices.api.error("", f"srv     load_model: failed to load model, '{self.given.model}': {why}")
        rank.voices.api.error("", "srv   llama_server: exiting due to model loading error")

    async def lost(self, rank: SimulatedRank) -> int:
        """GGML_ABORT: the process gets SIGABRT at once."""
        rank.voices.api.raw(f"ggml-rpc.cpp:519: {CRASHED}\n")
        os.kill(os.getpid(), signal.SIGABRT)
        return 1

    async def drained(self, core: Core) -> None:
        """It does not wait."""

    def exits(self) -> int:
        return 0

    def stopping(self, rank: SimulatedRank) -> None:
        rank.voices.api.info("", "srv    operator(): cleaning up before exit...")

    @contextlib.asynccontextmanager
    async def companions(self, rank: SimulatedRank) -> AsyncIterator[None]:
        yield

    def routes(self, site: SimulatedSite) -> list[Route]:
        async def health(request: Request) -> Response:
            return json_response({"status": "ok"})

        async def props(request: Request) -> Response:
            slots = site.core.rank.limits.sequences
            return json_response({"total_slots": slots, "model_path": self.given.model, "simulated": True})

        found = [Route("/health", health), Route("/v1/health", health), Route("/props", props)]
        return [*found, Route("/metrics", site.scrape)] if self.given.metrics else found

    def guarded(self, path: str) -> bool:
        return path not in OPEN_PATHS

    def labels(self, line: str) -> str:
        """It has none."""
        return line[: line.index("{")] + line[line.index("}") + 1 :] if "{" in line else line


def serve_rpc(argv: list[str], env: Mapping[str, str]) -> int:
    """rpc-server: one head at a time, until a signal. Raises NoStart and SystemExit."""
    parser = argparse.ArgumentParser("rpc-server", add_help=False, allow_abbrev=False)
    for flags, default in ((("-H", "--host"), "127.0.0.1"), (("-p", "--port"), "50052"), (("-t", "--threads"), "")):
        parser.add_argument(*flags, default=default)
    parser.add_argument("-d", "--device")
    parser.add_argument("-c", "--cache", action="store_true")
    given, unknown = parser.parse_known_args(argv)
    if unknown:
        raise console.NoStart(f"error: unknown argument: {unknown[0]}")
    own = console.settings(env)
    cache = f"{env.get('LLAMA_CACHE') or env.get('HOME', '') + '/.cache/llama.cpp'}/rpc/" if given.cache else "n/a"
    mib = f"({own.memory_gib * 1024:.0f} MiB, {own.free_gib * 1024:.0f} MiB free)"
    say = [console.SIMULATED.format(engine="llama.cpp's rpc-server"), f"Starting RPC server v{PROTOCOL}"]
    say += [f"  endpoint       : {given.host}:{given.port}", f"  local cache    : {cache}", "Devices:"]
    _print(*say, f"  CUDA0: simulated GB10 {mib}", "  transport      : TCP")
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        asyncio.run(_lent(given.host, int(given.port), own.free_gib))
    except OSError:
        raise console.NoStart("Failed to create server socket") from None
    return 0


async def _lent(host: str, port: int, free: float) -> None:
    turn = asyncio.Lock()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with turn:
            _print("Accepted client connection")
            await answering(reader, writer, free=free)
            _print("Client connection closed")

    server = await asyncio.start_server(serve, host, port)
    await server.serve_forever()


def _print(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


class Caller(Link):
    """Rank 0's side where it is the one that connects (llama.cpp's RPC)."""

    def __init__(self, servers: list[tuple[str, int]]) -> None:
        super().__init__(1 + len(servers))
        self.servers = servers

    async def call(self) -> None:
        """Raises OSError at the first server that is not there: nobody tries again."""
        for rank, (host, port) in enumerate(self.servers, 1):
            self.peers[rank] = WorkerPeer(rank, *await asyncio.open_connection(host, port))


async def answering(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, **more: Any) -> None:
    """The other side of a Caller: answers every frame until the connection ends."""
    try:
        while (await read_frame(reader))["op"] != "bye":
            write_frame(writer, {"op": "done", **more})
            await writer.drain()
    except (EOFError, OSError):
        pass
    writer.close()
