"""The engine: continuous batching over the simulated pool, one step at a time.

A step takes up to `batched` tokens: one for each running sequence (more with speculation), the rest for chunks of
prompts, oldest first. When the pool is full the newest running request is preempted and starts again (vLLM's rule).
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from typing import Protocol

from sparkwright.domain.values import dataclass
from sparkwright.simulator.job import BlockPool, EngineDead, Job
from sparkwright.simulator.ledger import Limits
from sparkwright.simulator.metrics import Stats
from sparkwright.simulator.rank import SimulatedSpeed
from sparkwright.simulator.text import Piece, SimulatedTokenizer


class Ranks(Protocol):
    async def step(self, answered: int, seconds: float) -> None:
        """All ranks are in one step, which takes so long. Raises EngineDead when they never will be."""


@dataclass(frozen=True, slots=True)
class SimulatedMachine:
    """The machine that the engine runs on."""

    limits: Limits
    pool: BlockPool
    speed: SimulatedSpeed
    scale: float
    slower: Callable[[], float]
    """How many times as long a step takes now."""
    drafts: int
    """Tokens drafted per step and sequence; 0 without speculation."""
    acceptance: Callable[[], float]
    found: Callable[[], float]
    """Share of the prefix cache that a new request may use."""


class SimulatedEngine:
    def __init__(self, machine: SimulatedMachine, tokenizer: SimulatedTokenizer, stats: Stats, ranks: Ranks) -> None:
        self.machine = machine
        self.tokenizer = tokenizer
        self.stats = stats
        self.ranks = ranks
        self.running: list[Job] = []
        self.waiting: deque[Job] = deque()
        self.answered = 0
        self.dead = False
        self.load = (0, 0, 0.0)
        """Running, waiting, share of the pool in use, after the last step."""
        self._computing = False
        self._left: list[Job] = []
        self._work = asyncio.Event()
        self._dice = random.Random(1)

    def submit(self, job: Job) -> None:
        """Raises EngineDead once the engine has ended."""
        if self.dead:
            raise EngineDead
        job.arrived = asyncio.get_running_loop().time()
        job.hashes = self.machine.pool.hashes(job.prompt)
        self.waiting.append(job)
        self._work.set()

    def wake(self) -> None:
        """One step now, even with nothing to do: it finds out whether all ranks are there."""
        self._work.set()

    def abort(self, job: Job) -> None:
        """The client is gone: its blocks are free at once."""
        if job.over:
            return
        if job in self.running:
            self.running.remove(job)
        elif job in self.waiting:
            self.waiting.remove(job)
        self.machine.pool.release(job.table)
        job.end("abort")
        self._left.append(job)
        if not self._computing:
            self._tell()

    async def run(self) -> None:
        """Runs until the ranks are dead; then every request fails. Idle costs nothing."""
        while True:
            await self._work.wait()
            plan = self._plan()
            self._computing, seconds = True, self._seconds(plan) * self.machine.scale * self.machine.slower()
            try:
                await self.ranks.step(self.answered, seconds)
            except EngineDead as error:
                self._die(error)
                return
            await asyncio.sleep(seconds)
            self._apply(plan)
            self._computing = False
            self._tell()
            if not self.running and not self.waiting:
                self._work.clear()

    def _tell(self) -> None:
        """Reports a step. Clients' actions during it are counted with its results: nothing moves in a hanging
        engine."""
        for job in self._left:
            self.stats.finished(job, "abort")
        self._left.clear()
        self.load = len(self.running), len(self.waiting), self.machine.pool.usage

    def _die(self, error: EngineDead) -> None:
        self.dead = True
        for job in [*self.running, *self.waiting]:
            job.fail(error)

    def _plan(self) -> list[tuple[Job, int]]:
        """(job, tokens to compute) of the next step, with blocks taken for them."""
        budget = self.machine.limits.batched
        plan: list[tuple[Job, int]] = []
        for job in list(self.running):
            count = min(job.length - job.computed, budget)
            if job in self.running and count > 0 and self._room(job, count):
                plan.append((job, count))
                budget -= count
        while budget > 0 and self.waiting and len(self.running) < self.machine.limits.sequences:
            job = self.waiting[0]
            count = self._admit(job, budget)
            if count == 0:
                break
            plan.append((job, count))
            budget -= count
        return [(job, count) for job, count in plan if job in self.running]

    def _admit(self, job: Job, budget: int) -> int:
        pool = self.machine.pool
        known = job.hashes[: round(len(job.hashes) * self.machine.found())]
        job.computed = pool.match(job.table, known, len(job.prompt))
        count = min(job.length - job.computed, budget)
        if not pool.grow(job.table, self._wanted(job, count)):
            pool.release(job.table)
            return 0
        self.running.append(self.waiting.popleft())
        if not job.started:
            job.cached = job.computed
            job.started = asyncio.get_running_loop().time()
            self.stats.admitted(job)
        return count

    def _room(self, job: Job, count: int) -> bool:
        """Preempts the newest until there is room; False when that was `job` itself."""
        while not self.machine.pool.grow(job.table, self._wanted(job, count)):
            victim = self.running.pop()
            self.machine.pool.release(victim.table)
            victim.computed = 0
            self.waiting.appendleft(victim)
            self.stats.preempted()
            if victim is job:
                return False
        return True

    def _wanted(self, job: Job, count: int) -> int:
        """Drafted tokens need room too, but never beyond the context, which the pool was checked to hold."""
        return min(job.computed + count + self.machine.drafts, self.machine.limits.context)

    def _seconds(self, plan: list[tuple[Job, int]]) -> float:
        prefill = sum(count for _, count in plan if count > 1)
        decoding = [job for job, count in plan if count == 1]
        return self.machine.speed.step_s(prefill, len(decoding), sum(job.length for job in decoding))

    def _apply(self, plan: list[tuple[Job, int]]) -> None:
        now = asyncio.get_running_loop().time()
        made = prompts = 0
        for job, count in plan:
            if job not in self.running:
                continue
            job.computed += count
            self._publish(job)
            if job.computed < job.length:
                continue
            before = len(job.made)
            prompts += len(job.prompt) if not before else 0
            self._emit(job)
            made += len(job.made) - before
            self.stats.tokens(job, len(job.made) - before, now)
            if job.over:
                self.running.remove(job)
                self.machine.pool.release(job.table)
                self.answered += 1
                self.stats.finished(job, job.finish)
        self.stats.step(prompts, made)

    def _publish(self, job: Job) -> None:
        pool = self.machine.pool
        full = job.computed // pool.size
        if full > len(job.hashes):
            known = len(job.hashes)
            tokens = [*job.prompt, *job.made][: full * pool.size]
            job.hashes += pool.hashes(tokens, known, job.hashes[-1] if known else 0)
        pool.name(job.table, job.hashes[len(job.table.named) : full])

    def _emit(self, job: Job) -> None:
        """The step's token, and those drafted ones that were right."""
        self._token(job)
        if not self.machine.drafts or len(job.made) < 2:
            return
        accepted, acceptance = 0, self.machine.acceptance()
        while accepted < self.machine.drafts and not job.over and self._dice.random() < acceptance:
            self._token(job)
            accepted += 1
        job.computed += accepted
        self.stats.drafted(self.machine.drafts, accepted)

    def _token(self, job: Job) -> None:
        piece = next(job.pieces, None)
        if piece is None:
            job.take(0, Piece("hidden", ""))
            job.end("stop")
            return
        job.take(self.tokenizer.encode(piece.text)[0] if piece.text else 0, piece)
