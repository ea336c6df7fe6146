"""The running engine behind its web server: ranks that may be lost, faults that count requests, vLLM's ways to end."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from sparkwright.domain.values import dataclass
from sparkwright.simulator import boot
from sparkwright.simulator.answers import Answers
from sparkwright.simulator.asked import Rules
from sparkwright.simulator.job import BlockPool, EngineDead
from sparkwright.simulator.link import HeadLink, PeerLost, patient
from sparkwright.simulator.log import Web, recorded, web_server
from sparkwright.simulator.metrics import Metrics, Stats
from sparkwright.simulator.rank import SPIN, Hoard, RankActivity, SimulatedRank
from sparkwright.simulator.scheduler import SimulatedEngine, SimulatedMachine
from sparkwright.simulator.server import LISTED, Server
from sparkwright.simulator.text import SimulatedTokenizer

DESTROY = (
    "Warning: WARNING: destroy_process_group() was not called before program exit, which can leak resources. For more "
    "info, please see https://pytorch.org/docs/stable/distributed.html#shutdown (function operator())"
)
POLL_S = 0.1
ACCEPTANCE = 0.8  # chance that a drafted token is accepted


class SimulatedService:
    """The running engine behind its web server."""

    def __init__(self, rank: SimulatedRank, link: HeadLink, stop: asyncio.Future[None]) -> None:
        self.rank = rank
        self.link = link
        self.stop = stop
        self.core = Core(rank, link, DialectTrouble(self._silent, self._lost))
        self.engine, self.metrics, self.stats = self.core.engine, self.core.metrics, self.core.stats
        self.server = self._server()
        self.metrics.set("vllm:cache_config_info", 1.0, **_cache_labels(rank))

    def _silent(self) -> None:
        self.rank.voices.core.line("shm_broadcast.py:681")

    async def _lost(self, engine: SimulatedEngine) -> None:
        """Loses a rank. Until the watchdog ends the worker /health is 200."""
        if self.link.lost():
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
        site = web_server(self.server.app(keys), rank.args, rank.voices.api)
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
        """A worker that has died while nothing is asked."""
        while self.link.notices:
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


def _cache_labels(rank: SimulatedRank) -> dict[str, str]:
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


@dataclass(frozen=True, slots=True)
class DialectTrouble:
    """A dialect's words about other ranks: silent ones, lost ones. `lost` returns when the engine is to end."""

    silent: Callable[[], None]
    lost: Callable[[SimulatedEngine], Awaitable[None]]


@dataclass(slots=True)
class _Ranks:
    """The engine's view of the other ranks (scheduler.Ranks)."""

    rank: SimulatedRank
    link: HeadLink
    trouble: DialectTrouble
    activity: RankActivity
    engine: SimulatedEngine | None = None

    async def step(self, answered: int, seconds: float) -> None:
        rank = self.rank
        rank.faults.refresh()
        if rank.faults.due("freeze_after", answered):
            await asyncio.Event().wait()
        self.activity.begin()
        work = asyncio.ensure_future(self.link.ask({"op": "step", "answered": answered, "seconds": seconds}))
        try:
            await patient(work, rank.settings.shm_warn_s, self.trouble.silent)
            if rank.faults.due("spin_after", answered):
                self.activity.hang(SPIN)
                await asyncio.Event().wait()
            self.activity.end(seconds)
        except PeerLost:
            if self.engine is not None:
                await self.trouble.lost(self.engine)
            raise EngineDead from None
        finally:
            work.cancel()


class Core:
    """The engine with its names, metrics and rules."""

    def __init__(self, rank: SimulatedRank, link: HeadLink, trouble: DialectTrouble) -> None:
        self.rank = rank
        args, limits = rank.args, rank.limits
        self.names = tuple(args.served_model_name or [args.model])
        drafts = int((args.speculative_config or {}).get("num_speculative_tokens", 0))
        self.metrics = Metrics(self.names[0], drafts > 0)
        pool = BlockPool(rank.ledger.blocks, limits.block, limits.prefix_caching)
        accepted, found = self._drifted("accept", ACCEPTANCE), self._drifted("hits", 1.0)
        scale, slower = rank.settings.token_scale, self._drifted("slow", 1.0)
        machine = SimulatedMachine(limits, pool, rank.speed, scale, slower, drafts, accepted, found)
        self.tokenizer = SimulatedTokenizer(rank.model.vocab)
        self.activity = RankActivity(rank.number)
        ranks = _Ranks(rank, link, trouble, self.activity)
        self.stats = Stats(self.metrics)
        self.engine = ranks.engine = SimulatedEngine(machine, self.tokenizer, self.stats, ranks)
        self.metrics.before_scrape(self._gauges)

    def rules(self) -> Rules:
        args = self.rank.args
        return Rules(
            names=self.names,
            context=self.rank.limits.context,
            tokenizer=self.tokenizer,
            reasoning=bool(args.reasoning_parser),
            auto_tools=bool(args.enable_auto_tool_choice and args.tool_call_parser),
            template=args.default_chat_template_kwargs or {},
            force_usage=bool(args.enable_force_include_usage),
            garbage=lambda: self.rank.faults.has("garbage"),
            any_name=bool(getattr(args, "any_name", False)),
            wrong=lambda: self.rank.faults.wrong,
        )

    def _drifted(self, fault: str, usual: float) -> Callable[[], float]:
        """The usual value, unless a fault has changed it."""
        return lambda: usual if (value := self.rank.faults.value(fault)) is None else value

    def load(self) -> tuple[int, int, float]:
        """Running, waiting, share of the pool in use, as the last step left them: vLLM learns them with its results."""
        return self.engine.load

    async def watch(self) -> None:
        """Faults that count requests; only polled when faults were asked for."""
        faults, hoard = self.rank.faults, Hoard(self.rank.faults)
        while self.rank.settings.fault or self.rank.settings.control:
            await asyncio.sleep(POLL_S)
            faults.refresh()
            due = faults.due("die_after", self.engine.answered)
            if due:
                os._exit(due.exit_code)
            hoard.grow(self.engine.answered)

    def abort_all(self) -> None:
        for job in [*self.engine.running, *self.engine.waiting]:
            self.engine.abort(job)

    def _gauges(self) -> None:
        running, waiting, usage = self.load()
        self.metrics.set("vllm:num_requests_running", running)
        self.metrics.set("vllm:num_requests_waiting", waiting)
        self.metrics.set("vllm:num_requests_waiting_by_reason", waiting, reason="capacity")
        self.metrics.set("vllm:kv_cache_usage_perc", usage)
