"""What computes behind every dialect's web server: the engine over all ranks, its rules, its counts."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from sparkwright.simulator.activity import SPIN, Activity
from sparkwright.simulator.asked import Rules
from sparkwright.simulator.job import BlockPool, EngineDead
from sparkwright.simulator.link import Frame, PeerLost, patient
from sparkwright.simulator.metrics import Metrics
from sparkwright.simulator.rank import Hoard, Rank
from sparkwright.simulator.scheduler import Engine, Machine
from sparkwright.simulator.stats import Stats
from sparkwright.simulator.text import Tokenizer

POLL_S = 0.1
ACCEPTANCE = 0.8  # chance that a drafted token is accepted


class Link(Protocol):
    """The other ranks, as rank 0 reaches them (link.Head)."""

    async def barrier(self, phase: str, **more: float) -> list[Frame]:
        """All have finished `phase`; what they report for it. Raises PeerLost."""
        ...

    async def ask(self, frame: Frame) -> list[Frame]:
        """Raises PeerLost."""
        ...

    def gone(self) -> bool:
        """Whether one has ended, as far as an idle rank 0 can see."""
        ...

    async def bye(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Trouble:
    """How a dialect speaks of other ranks: silent ones, lost ones. `lost` returns when the engine is to end."""

    silent: Callable[[], None]
    lost: Callable[[Engine], Awaitable[None]]


@dataclass(slots=True)
class _Ranks:
    """The engine's view of the other ranks (scheduler.Ranks)."""

    rank: Rank
    link: Link
    trouble: Trouble
    activity: Activity
    engine: Engine | None = None

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

    def __init__(self, rank: Rank, link: Link, trouble: Trouble) -> None:
        self.rank = rank
        args, limits = rank.args, rank.limits
        self.names = tuple(args.served_model_name or [args.model])
        drafts = int((args.speculative_config or {}).get("num_speculative_tokens", 0))
        self.metrics = Metrics(self.names[0], drafts > 0)
        pool = BlockPool(rank.ledger.blocks, limits.block, limits.prefix_caching)
        machine = Machine(limits, pool, rank.speed, rank.settings.token_scale, drafts, self._acceptance, self._found)
        self.tokenizer = Tokenizer(rank.model.vocab)
        self.activity = Activity(rank.number)
        ranks = _Ranks(rank, link, trouble, self.activity)
        self.stats = Stats(self.metrics)
        self.engine = ranks.engine = Engine(machine, self.tokenizer, self.stats, ranks)
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
        )

    def _acceptance(self) -> float:
        drifted = self.rank.faults.value("accept")
        return ACCEPTANCE if drifted is None else drifted

    def _found(self) -> float:
        drifted = self.rank.faults.value("hits")
        return 1.0 if drifted is None else drifted

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
