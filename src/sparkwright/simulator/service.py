"""The running engine behind its web server: ranks that may be lost, faults that count requests, vLLM's ways to end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine
from typing import Any

from sparkwright.simulator import boot
from sparkwright.simulator.answers import Answers
from sparkwright.simulator.core import POLL_S, Core, Link, Trouble
from sparkwright.simulator.log import recorded
from sparkwright.simulator.rank import Rank
from sparkwright.simulator.ray_ranks import RayRanks
from sparkwright.simulator.scheduler import Engine
from sparkwright.simulator.server import LISTED, Server
from sparkwright.simulator.web import Web, web


class Service:
    """The running engine behind its web server."""

    def __init__(self, rank: Rank, link: Link, stop: asyncio.Future[None]) -> None:
        self.rank = rank
        self.link = link
        self.stop = stop
        self.core = Core(rank, link, Trouble(self._silent, self._lost))
        self.engine, self.metrics, self.stats = self.core.engine, self.core.metrics, self.core.stats
        self.server = self._server()
        self.metrics.set("vllm:cache_config_info", 1.0, **_cache_labels(rank))

    def _silent(self) -> None:
        self.rank.voices.core.line("shm_broadcast.py:681")

    async def _lost(self, engine: Engine) -> None:
        """NCCL notices at once, the watchdog ends the worker a minute later; until then /health is 200."""
        if isinstance(self.link, RayRanks):
            text = f"RayWorkerProc rank={self.link.dead()} died unexpectedly, shutting down executor."
            self.rank.voices.core.error("ray_executor_v2.py:464", text)
            return
        recorded("peer-lost", self.rank.voices, {"HOST": socket.gethostname()})
        await asyncio.sleep(self.rank.settings.dead_s)
        values = {
            "CONFIG": boot.described(self.rank),
            "REQS": str([job.name for job in engine.running]),
            "RUNNING": str(len(engine.running)),
            "USAGE": str(engine.machine.pool.usage),
        }
        recorded("engine-fatal", self.rank.voices, values)

    def _server(self) -> Server:
        args = self.rank.args
        parallel = f"-tp{args.tensor_parallel_size}" if args.tensor_parallel_size > 1 else ""
        fingerprint = f"vllm-0.21.0{parallel}-simulated"
        voice = self.rank.voices.api
        answers = Answers(self.engine, self.core.rules(), fingerprint, bool(args.enable_prompt_tokens_details), voice)
        faults = self.rank.faults
        return Server(answers, self.metrics, str(args.model), voice, lambda: faults.has("freeze_api"))

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
        found: list[Coroutine[Any, Any, None]] = [self.core.watch(), self._notice()]
        if not self.rank.args.disable_log_stats:
            found.append(self.stats.report(self.rank.voices.api, self.rank.settings.stats_s, self.core.load))
        return found

    async def _notice(self) -> None:
        """Ray reports at once that a worker has died, also while nothing is asked."""
        while isinstance(self.link, RayRanks):
            await asyncio.sleep(POLL_S)
            if self.link.gone():
                self.engine.wake()
                return

    async def _die(self, site: Web) -> None:
        """Waiting clients get their 500s first."""
        await asyncio.sleep(0.05)
        recorded("engine-exit", self.rank.voices, {})
        site.should_exit = True

    async def _shut(self, site: Web, computing: asyncio.Future[None]) -> None:
        """vLLM's order: engine first, requests aborted, then the web server, then the other ranks."""
        core = self.rank.voices.core
        core.line("core.py:1242", shutdown_timeout=self.rank.args.shutdown_timeout)
        limit = self.rank.args.shutdown_timeout
        waited = 0.0
        while (self.engine.running or self.engine.waiting) and waited < limit:
            await asyncio.sleep(POLL_S)
            waited += POLL_S
        computing.cancel()
        self.core.abort_all()
        core.line("core.py:1265")
        await self.link.bye()
        site.should_exit = True


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
