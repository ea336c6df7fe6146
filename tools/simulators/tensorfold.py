"""TensorFold's CUDA server: `tensorfold serve MODEL --tp N --rank R --master HOST ...`, one process a rank.

Written from the documentation (README, docs/api.md, docs/recipes/cuda.md and glm-5.3-flash.md) and the lines that
src/tensorfold/cli.py, cuda/capacity.py, cuda/server.py and cuda/health.py of github.com/ashhart/TensorFold print, as of
October 2026; tests/unit/simulator/test_tensorfold.py quotes them. It was never compared with a running TensorFold. Its
weights and caches are counted as vLLM's are here: only the form of the estimate is TensorFold's.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import stat
import time
import uuid
from argparse import Namespace
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from simulators import console
from simulators.life import Head, run_worker
from simulators.site import SimulatedSite, SiteApi, checked
from sparkwright.simulator.answers import sse_event
from sparkwright.simulator.asked import ApiError, json_response
from sparkwright.simulator.link import Frame, HeadLink
from sparkwright.simulator.log import LineForm, LogVoice
from sparkwright.simulator.rank import SimulatedRank, StartFailed
from sparkwright.simulator.service import Core

VERSION = "0.6.6"
RESERVE, LEAST_RESERVE = 0.1, 4.0  # "a floor of a tenth of RAM (at least 4 GiB)"
SLOTS = 7  # of an estimate that owners quote: window 262144, cache slots 262151
METRICS: Mapping[str, str] = {
    "tensorfold:requests_running": "vllm:num_requests_running",
    "tensorfold:num_requests_running": "vllm:num_requests_running",
    "tensorfold:requests_waiting": "vllm:num_requests_waiting",
    "tensorfold:num_requests_waiting": "vllm:num_requests_waiting",
    "tensorfold:prompt_tokens_total": "vllm:prompt_tokens_total",
    "tensorfold:generation_tokens_total": "vllm:generation_tokens_total",
    "tensorfold:prompt_tokens_cached_total": "vllm:prompt_tokens_cached_total",
    "tensorfold:kv_cache_usage_perc": "vllm:kv_cache_usage_perc",
    "tensorfold:mtp_drafted_total": "vllm:spec_decode_num_draft_tokens_total",
    "tensorfold:mtp_accepted_total": "vllm:spec_decode_num_accepted_tokens_total",
    "tensorfold:request_latency_seconds": "vllm:e2e_request_latency_seconds",
    "tensorfold:time_to_first_token_seconds": "vllm:time_to_first_token_seconds",
}
NUMBERS = ("port", "context", "tp", "rank", "master-port", "max-tokens", "thinking-budget", "mtp-drafts")
TEXTS = ("host", "name", "parallel", "kv-dtype", "master", "drafter", "api-key-file", "precision", "reasoning-effort")
SWITCHES = ("no-drafts", "vision", "metrics-open", "no-update-check", "ple-on-ssd")
PAIRS = ("thinking", "prefill-fp8")
UNAUTHORIZED = {"error": {"message": "a valid API key is required", "type": "invalid_request_error"}}


def run(argv: list[str], env: Mapping[str, str]) -> int:
    """One rank. Raises NoStart and, for a refused command line, SystemExit(2)."""
    given = _given(argv)
    own = console.settings(env, _keys(given.api_key_file))
    if given.tp > 1 and not given.master:
        raise console.NoStart("tensorfold: --tp 2 needs --master: rank 0's address on the link between the machines")
    args = _canonical(given)
    rank = console.make_rank(args, own, LineForm(lambda level: "[tensorfold] ", lambda: ""))
    dialect = FoldDialect(given)
    if given.rank:
        return asyncio.run(run_worker(rank, dialect, given.master, given.master_port))
    link = HeadLink(given.tp)

    async def meet() -> None:
        await link.listen(given.master, given.master_port)
        await link.all_joined()

    return asyncio.run(Head(rank, dialect, link, meet, f"TensorFold {own.version or VERSION}").run())


def _given(argv: list[str]) -> Namespace:
    parser = argparse.ArgumentParser("tensorfold", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"tensorfold {VERSION} (simulated)")
    serve = parser.add_subparsers(required=True).add_parser("serve", allow_abbrev=False)
    serve.add_argument("model")
    for name in NUMBERS:
        serve.add_argument(f"--{name}", type=int)
    for name in TEXTS:
        serve.add_argument(f"--{name}", default="")
    for name in SWITCHES:
        serve.add_argument(f"--{name}", action="store_true")
    for name in PAIRS:
        serve.add_argument(f"--{name}", action=argparse.BooleanOptionalAction)
    serve.set_defaults(host="127.0.0.1", port=8080, tp=1, rank=0, master_port=29551, parallel="auto", max_tokens=4096)
    return parser.parse_args(argv)


def _keys(path: str) -> tuple[str, ...]:
    """The keys of a file, one a line, each perhaps after a label. Raises NoStart for a file that others may read."""
    if not path:
        return ()
    try:
        text, mode = Path(path).read_text(encoding="utf-8"), Path(path).stat().st_mode
    except OSError as error:
        raise console.NoStart(f"tensorfold: {error}") from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise console.NoStart(f"tensorfold: {path} is readable by other users; chmod 600 it")
    lines = (line.strip() for line in text.splitlines())
    return tuple(line.rpartition(": ")[2] for line in lines if line and not line.startswith("#"))


def _canonical(given: Namespace) -> Namespace:
    streams = 1 if given.parallel == "auto" else int(given.parallel)
    drafts = None if given.no_drafts else {"method": "mtp", "num_speculative_tokens": given.mtp_drafts or 3}
    return console.canonical(
        given.model,
        served_model_name=[given.name or Path(given.model).name],
        host=given.host,
        port=given.port,
        tensor_parallel_size=given.tp,
        nnodes=given.tp,
        node_rank=given.rank,
        master_addr=given.master,
        master_port=given.master_port,
        max_model_len=given.context or None,
        max_num_seqs=streams,
        speculative_config=drafts,
        reasoning_parser="qwen3",
        enable_auto_tool_choice=True,
        tool_call_parser="hermes",
        enforce_eager=True,
        enable_force_include_usage=True,
        uvicorn_log_level="error",  # its web server is another
    )


class FoldDialect:
    """TensorFold's (dialect.Dialect)."""

    notices = True
    metrics = METRICS

    def __init__(self, given: Namespace) -> None:
        self.given, self.began, self.api = given, time.monotonic(), SiteApi(self.answered, refused, too_long, True)
        self.served = given.name or Path(given.model).name
        self.where = f", rank {given.rank} of {given.tp}" if given.tp > 1 else ""
        self.voice: LogVoice | None = None

    def greet(self, rank: SimulatedRank) -> None:
        self.voice = rank.voices.api
        self.voice.info("", console.SIMULATED.format(engine="TensorFold"))
        family = f"{rank.model.architecture} (simulated)"
        self.voice.info("", f"loading {self.served}: {family} on CUDA{self.where}")

    def join(self, rank: SimulatedRank) -> None:
        """Prints nothing: ranks wait for each other without a word."""

    def met(self, rank: SimulatedRank, others: list[Frame]) -> None:
        """One estimate and one decision for all ranks, before any weights are read. Raises StartFailed."""
        free = [rank.settings.free_gib, *(float(other["free"]) for other in others)]
        reserve = max(LEAST_RESERVE, RESERVE * rank.settings.memory_gib)
        room, budget = min(free) - reserve, rank.settings.free_gib - reserve
        fitting, window, native = self._fitting(rank, room), rank.limits.context, rank.model.limit
        if window > fitting:
            wanted = f"requested context {window}" if self.given.context else f"the {window}-token native window"
            wanted += "" if self.given.context else " or any smaller one"
            smaller = f"Use --context {fitting} with a smaller prompt/reply reserve, or " if fitting else "Please "
            why = f"CUDA startup memory budget cannot fit {wanted}; estimated largest fitting prompt-plus-reply window:"
            why += f" {fitting} tokens across the ranks. {smaller}free memory or use smaller/quantized weights; no"
            why += " model weights or KV caches have been loaded. KV precision is unchanged."
            raise StartFailed("", {"ERROR": why})
        need = self._needed(rank, window)
        text = f"CUDA rank {rank.number} startup estimate {need:.2f} GiB within {budget:.2f} GiB; native {native}, "
        rank.voices.api.info("", text + f"allocated prompt/reply window {window}, cache slots {window + SLOTS}")

    def _needed(self, rank: SimulatedRank, window: int) -> float:
        ledger, streams = rank.ledger, rank.limits.sequences
        return ledger.weights + ledger.overhead + streams * window * ledger.per_token / 2**30

    def _fitting(self, rank: SimulatedRank, room: float) -> int:
        ledger, streams = rank.ledger, rank.limits.sequences
        left = room - ledger.weights - ledger.overhead
        return max(0, min(rank.model.limit, int(left * 2**30 / ledger.per_token / streams)))

    async def load(self, rank: SimulatedRank) -> None:
        """Nothing is printed while the weights are read."""
        await rank.enter("load")
        await rank.passing(rank.speed.load_s * (rank.faults.value("slow_load") or 1.0))

    async def fit(self, rank: SimulatedRank) -> None:
        await rank.enter("kv")

    async def capture(self, rank: SimulatedRank) -> None:
        await rank.enter("graphs")
        took = rank.speed.compile_s * rank.settings.boot_scale
        await rank.passing(rank.speed.compile_s)
        limits, each = rank.limits, rank.limits.context * rank.ledger.per_token / 2**30
        window = f"{limits.context} prompt/reply tokens while memory lasts"
        free = f"({limits.sequences * each:.1f} GiB free for their caches, {each:.2f} GiB for one at the full window)"
        text = f"{rank.model.architecture} on CUDA: up to {limits.sequences} streams, each growing to {window} {free}, "
        rank.voices.api.info("", f"{text}eager; 0 decode graphs captured; prompt kernels warmed in {took:.1f}s")
        if rank.number:
            seconds = time.monotonic() - self.began
            rank.voices.api.info("", f"rank {rank.number} ready in {seconds:.1f}s, following rank 0")

    def listening(self, rank: SimulatedRank) -> None:
        """Nothing between the last line of loading and the one that it serves."""

    def ready(self, rank: SimulatedRank) -> None:
        drafts = "off" if self.given.no_drafts else "on"
        told = f"sampling: temperature 1.0, top_k 20, top_p 0.95; drafts: {drafts}"
        seconds = time.monotonic() - self.began
        at = f"http://{self.given.host}:{self.given.port}/v1"
        ends = f"({told}; context: {rank.limits.context}; loaded in {seconds:.1f}s)"
        rank.voices.api.info("", f"serving {self.served} at {at} on CUDA{self.where} {ends}")

    def failed(self, rank: SimulatedRank, why: str) -> None:
        rank.voices.api.raw(f"tensorfold: {why}\n")

    async def lost(self, rank: SimulatedRank) -> int:
        """NCCL ends the process a while after the other rank."""
        await asyncio.sleep(rank.settings.dead_s)
        rank.voices.api.raw("RuntimeError: NCCL error: remote process exited or there was a network error\n")
        return 1

    async def drained(self, core: Core) -> None:
        """It does not wait."""

    def exits(self) -> int:
        return 0

    def stopping(self, rank: SimulatedRank) -> None:
        """It prints nothing."""

    @contextlib.asynccontextmanager
    async def companions(self, rank: SimulatedRank) -> AsyncIterator[None]:
        yield

    def routes(self, site: SimulatedSite) -> list[Route]:
        keyed = bool(site.core.rank.settings.api_keys)

        async def health(request: Request) -> Response:
            """The counters, or with keys no more than that it lives."""
            running, _, _ = site.core.load()
            state = {"ok": True, "backend": "tensorfold", "busy": running > 0, "requests_running": running}
            full = state | {"context_length": site.core.rank.limits.context, "simulated": True}
            return json_response({"status": "ok"} if keyed else full)

        async def models(request: Request) -> Response:
            names = site.answers.rules.names
            data = [{"id": name, "object": "model", "owned_by": "tensorfold"} for name in names]
            return json_response({"object": "list", "data": data})

        async def tokenize(request: Request) -> Response:
            rules, body = site.answers.rules, await request.json()
            tokens = rules.tokenizer.encode(str(body.get("prompt", body.get("messages", ""))))
            return json_response({"count": len(tokens), "tokens": tokens, "max_model_len": rules.context})

        api = checked(tokenize, self.api, site._tokens)
        posts = [Route(path, api, methods=["POST"]) for path in ("/tokenize", "/v1/tokenize")]
        gets = [Route(path, health) for path in ("/health", "/v1/health")]
        gets += [Route(path, site.scrape) for path in ("/metrics", "/v1/metrics")]
        return [*gets, *posts, Route("/v1/models", models), Route("/models", models)]

    def guarded(self, path: str) -> bool:
        return "health" not in path and not (self.given.metrics_open and "metrics" in path)

    def labels(self, line: str) -> str:
        """It has none but the pool's."""
        return line[: line.index("{")] + line[line.index("}") + 1 :] if "{" in line else line

    def answered(self, response: Response, tokens: Callable[[str], int]) -> Response:
        """vLLM's answer as TensorFold's, and the line that its log gets."""
        if isinstance(response, StreamingResponse):
            response.body_iterator = self._stream(response.body_iterator)
            return response
        body = json.loads(bytes(response.body))
        if "choices" not in body:
            return response
        for choice in body["choices"]:
            _renamed(choice.get("message"))
        self._done(body["usage"], body["choices"][0].get("finish_reason"))
        return json_response(body | {"tensorfold": {"token_sha": _sha(body)}})

    async def _stream(self, chunks: Any) -> AsyncIterator[bytes]:
        finish = None
        async for chunk in chunks:
            text = chunk.decode()
            body = json.loads(text.removeprefix("data: ")) if text.startswith("data: {") else {}
            for choice in body.get("choices") or ():
                _renamed(choice.get("delta"))
                finish = choice.get("finish_reason") or finish
            if body.get("usage"):
                self._done(body["usage"], finish)
            yield sse_event(body) if body else chunk

    def _done(self, usage: Mapping[str, Any], finish: str | None) -> None:
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
        counts = f"prompt={usage['prompt_tokens']} cached={cached} thinking=True tokens={usage['completion_tokens']}"
        pace = "tok/s=0.0 ttft=0.10s prefill=0.10s rounds=1 accepted=0/0"
        if self.voice:
            self.voice.info("", f"done req-{uuid.uuid4().hex[:12]} {counts} sha=simulated finish={finish} {pace}")


def _renamed(said: dict[str, Any] | None) -> None:
    """Reasoning as `reasoning_content`."""
    if said and "reasoning" in said and (text := said.pop("reasoning")):
        said["reasoning_content"] = text


def _sha(body: Mapping[str, Any]) -> str:
    return uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(body["choices"])).hex[:12]


def refused(error: ApiError) -> Response:
    return json_response({"error": {"message": str(error), "type": "invalid_request_error"}}, error.status)


def too_long(context: int, wanted: int, prompt: int) -> ApiError:
    asked = f"the rendered prompt has {prompt} tokens and requests {wanted} reply tokens"
    text = f"This server's maximum context length is {context} tokens: {asked}, which exceeds the context window"
    return ApiError(400, text, "invalid_request_error")
