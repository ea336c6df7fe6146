"""The running engine behind its web server: ranks that may be lost, faults that count requests, vLLM's ways to end."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from sparkwright.twin import boot, phases
from sparkwright.twin.answers import Answers
from sparkwright.twin.asked import Rules
from sparkwright.twin.job import EngineDead
from sparkwright.twin.link import Head, PeerLost, patient
from sparkwright.twin.log import recorded
from sparkwright.twin.metrics import Metrics
from sparkwright.twin.prefix_cache import BlockPool
from sparkwright.twin.rank import Rank, leak
from sparkwright.twin.scheduler import Engine, Machine
from sparkwright.twin.server import LISTED, Server
from sparkwright.twin.stats import Stats
from sparkwright.twin.tokenizer import Tokenizer
from sparkwright.twin.web import Web, web

POLL_S = 0.1


@dataclass(slots=True)
class _Ranks:
    """The engine's view of the other ranks (scheduler.Ranks)."""

    rank: Rank
    link: Head
    engine: Engine | None = None

    async def step(self, answered: int) -> None:
        rank = self.rank
        rank.faults.refresh()
        if rank.faults.due("freeze_after", answered):
            await asyncio.Event().wait()
        work = asyncio.ensure_future(self.link.ask({"op": "step", "answered": answered}))
        try:
            await patient(work, rank.settings.shm_warn_s, self._silent)
        except PeerLost:
            await self._lost()
            raise EngineDead from None
        finally:
            work.cancel()

    def _silent(self) -> None:
        self.rank.voices.core.info("shm_broadcast.py:681", phases.SHM)

    async def _lost(self) -> None:
        """NCCL notices at once, the watchdog ends the worker a minute later; until then /health is 200 (capture m1)."""
        recorded("peer-lost", self.rank.voices, {"HOST": socket.gethostname()})
        await asyncio.sleep(self.rank.settings.dead_s)
        engine = self.engine
        running = engine.running if engine else []
        values = {
            "CONFIG": boot.described(self.rank),
            "REQS": str([job.name for job in running]),
            "RUNNING": str(len(running)),
            "USAGE": str(engine.machine.pool.usage if engine else 0.0),
        }
        recorded("engine-fatal", self.rank.voices, values)


class Service:
    """The running engine behind its web server."""

    def __init__(self, rank: Rank, link: Head, stop: asyncio.Future[None]) -> None:
        self.rank = rank
        self.link = link
        self.stop = stop
        args, limits = rank.args, rank.limits
        self.names = tuple(args.served_model_name or [args.model])
        speculation = args.speculative_config or {}
        drafts = int(speculation.get("num_speculative_tokens", 0))
        self.metrics = Metrics(self.names[0], drafts > 0)
        pool = BlockPool(rank.ledger.blocks, limits.block, limits.prefix_caching)
        machine = Machine(limits, pool, rank.speed, rank.settings.token_scale, drafts, rank.settings.acceptance)
        tokenizer = Tokenizer(rank.model.vocab)
        ranks = _Ranks(rank, link)
        self.stats = Stats(self.metrics)
        self.engine = ranks.engine = Engine(machine, tokenizer, self.stats, ranks)
        self.server = self._server(tokenizer)
        self.metrics.before_scrape(self._gauges)
        self.metrics.set("vllm:cache_config_info", 1.0, **_cache_labels(rank))

    def _server(self, tokenizer: Tokenizer) -> Server:
        args, limits = self.rank.args, self.rank.limits
        rules = Rules(
            names=self.names,
            context=limits.context,
            tokenizer=tokenizer,
            reasoning=bool(args.reasoning_parser),
            auto_tools=bool(args.enable_auto_tool_choice and args.tool_call_parser),
            template=args.default_chat_template_kwargs or {},
            force_usage=bool(args.enable_force_include_usage),
            garbage=lambda: self.rank.faults.has("garbage"),
        )
        parallel = f"-tp{args.tensor_parallel_size}" if args.tensor_parallel_size > 1 else ""
        fingerprint = f"vllm-0.21.0{parallel}-simulated"
        voice = self.rank.voices.api
        answers = Answers(self.engine, rules, fingerprint, bool(args.enable_prompt_tokens_details), voice)
        return Server(answers, self.metrics, str(args.model), voice)

    async def run(self, sock: socket.socket) -> int:
        rank = self.rank
        boot.opened(rank, LISTED)
        keys = (*rank.settings.api_keys, *(rank.args.api_key or ()))
        site = web(self.server.app(keys), rank.args, rank.voices.api)
        serving = asyncio.ensure_future(site.serve(sockets=[sock]))
        computing = asyncio.ensure_future(self.engine.run())
        helpers = [asyncio.ensure_future(h) for h in self._helpers()]
        await asyncio.wait({serving, computing, self.stop}, return_when=asyncio.FIRST_COMPLETED)
        if computing.done():
            computing.result()
            await self._die(site)
        else:
            await self._shut(site, computing)
        await serving
        for task in helpers:
            task.cancel()
        if not self.engine.dead:
            rank.voices.native("ProcessGroupNCCL.cpp:1575", DESTROY, rank=0)
        return 0

    def _helpers(self) -> list[Coroutine[Any, Any, None]]:
        found: list[Coroutine[Any, Any, None]] = []
        if not self.rank.args.disable_log_stats:
            found.append(self.stats.report(self.rank.voices.api, self.rank.settings.stats_s, self._load))
        if self.rank.settings.fault or self.rank.settings.control:
            found.append(self._watch())
        return found

    async def _watch(self) -> None:
        """Faults that count requests; only polled when faults were asked for."""
        held: list[bytearray] = []
        while True:
            await asyncio.sleep(POLL_S)
            self.rank.faults.refresh()
            due = self.rank.faults.due("die_after", self.engine.answered)
            if due:
                os._exit(due.exit_code)
            size = self.rank.faults.value("leak") or 0.0
            while size and len(held) < self.engine.answered:
                leak(size, held)

    async def _die(self, site: Web) -> None:
        """Waiting clients get their 500s first."""
        await asyncio.sleep(0.05)
        recorded("engine-exit", self.rank.voices, {})
        site.should_exit = True

    async def _shut(self, site: Web, computing: asyncio.Future[None]) -> None:
        """vLLM's order: engine first, requests aborted, then the web server, then the other ranks."""
        core = self.rank.voices.core
        core.info("core.py:1242", f"Shutdown initiated (timeout={self.rank.args.shutdown_timeout})")
        limit = self.rank.args.shutdown_timeout
        waited = 0.0
        while (self.engine.running or self.engine.waiting) and waited < limit:
            await asyncio.sleep(POLL_S)
            waited += POLL_S
        computing.cancel()
        for job in [*self.engine.running, *self.engine.waiting]:
            self.engine.abort(job)
        core.info("core.py:1265", "Shutdown complete")
        await self.link.bye()
        site.should_exit = True

    def _load(self) -> tuple[int, int, float]:
        engine = self.engine
        return len(engine.running), len(engine.waiting), engine.machine.pool.usage

    def _gauges(self) -> None:
        running, waiting, usage = self._load()
        self.metrics.set("vllm:num_requests_running", running)
        self.metrics.set("vllm:num_requests_waiting", waiting)
        self.metrics.set("vllm:num_requests_waiting_by_reason", waiting, reason="capacity")
        self.metrics.set("vllm:kv_cache_usage_perc", usage)


DESTROY = (
    "Warning: WARNING: destroy_process_group() was not called before program exit, which can leak resources. For more "
    "info, please see https://pytorch.org/docs/stable/distributed.html#shutdown (function operator())"
)


def _cache_labels(rank: Rank) -> dict[str, str]:
    args, limits = rank.args, rank.limits
    same = ("calculate_kv_scales", "kv_cache_memory_bytes", "kv_offloading_backend", "kv_offloading_size")
    also = ("kv_sharing_fast_prefill", "mamba_block_size", "mamba_cache_dtype", "mamba_cache_mode")
    more = ("mamba_ssm_cache_dtype", "num_gpu_blocks_override", "prefix_caching_hash_algo", "gpu_memory_utilization")
    return {
        **{name: str(getattr(args, name)) for name in (*same, *also, *more)},
        "_block_size_resolved": "True",
        "block_size": str(limits.block),
        "cache_dtype": str(args.kv_cache_dtype),
        "enable_prefix_caching": str(limits.prefix_caching),
        "hash_block_size": "None",
        "is_attention_free": "False",
        "kv_cache_dtype_skip_layers": str(args.kv_cache_dtype_skip_layers or []),
        "mamba_page_size_padded": "None",
        "num_cpu_blocks": "None",
        "num_gpu_blocks": str(rank.ledger.blocks),
        "sliding_window": "None",
        "user_specified_block_size": str(args.block_size is not None),
        "user_specified_mamba_block_size": str(args.mamba_block_size is not None),
    }
