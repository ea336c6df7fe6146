"""`soak`: a workload's levels again and again for hours, watched, stored as they end, and resumed after any end."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from random import Random

from sparkwright.app.bench.evaluate import probe_all
from sparkwright.app.bench.measure import RunningBench, create_run, end_task, measure_level, same_server
from sparkwright.app.bench.prompt_corpus import prepare
from sparkwright.app.bench.target import PreparedBench, Screen
from sparkwright.app.services import finished
from sparkwright.domain.errors import NotReady, UsageError
from sparkwright.domain.evaluation import Evaluation, Event, ProbeOutcome, ProbeState
from sparkwright.domain.run import Level, Run
from sparkwright.domain.units import duration, gib
from sparkwright.domain.workload import LevelPlan, Soak
from sparkwright.evals.catalog import chosen
from sparkwright.loadgen.endurance import SOAK, is_soak
from sparkwright.loadgen.prompts import written

_LEAST = 5.0  # seconds; a level that would have less is not begun
_LEVEL = 300.0  # of a level without a time of its own
_AWAY, _AGAIN = 900.0, 5.0  # for a server that is gone: a relaunch with weights takes minutes
_FLOOR_EVERY = 5.0
_LEAVES, _LONGEST = (0.3, 3.0), 4000
_BREATH = 1.0  # after a level in which everything was refused at once


async def soak(ready: PreparedBench, screen: Screen) -> Run:
    """The run as it is stored at the end. Whatever ends it, it can be resumed for the time that is left.

    Raises UsageError for a run that cannot be resumed, NotReady for a server that does not answer at the beginning.
    """
    bench, resume = ready.bench, ready.request.resume
    terms = ready.workload.soak or Soak()
    if resume:
        same_server(resumable(resume), ready.conditions)
    run = resume or replace(await create_run(ready), evaluation=Evaluation(SOAK, floor=terms.floor))
    texts = await prepare(ready, f"{run.id}/{bench.machine.nonce}", screen.note)
    await (bench.runs.end(run.id, "running", 0.0) if resume else bench.runs.begin(run))
    running = RunningBench(ready, screen, run, texts, soak=True)
    going = _Soaking(running, terms, run.evaluation or Evaluation(SOAK))
    screen.note(f"{'resuming' if resume else 'stored as'} {run.id}; Ctrl-C ends it, --resume {run.id} continues it")
    if resume:
        going.happened("resumed", f"resumed after {duration(going.found.seconds)} under load")
    state = "stopped"
    try:
        state = await going.all()
    finally:
        await finished(bench.runs.end(run.id, state, bench.clock.now()))
    return await bench.runs.load(run.id)


def resumable(run: Run) -> Run:
    """Raises UsageError."""
    if not is_soak(run):
        raise UsageError(f"{run.id} is no soak", "sparkwright runs list shows the kind of each run")
    if run.state == "done":
        raise UsageError(f"{run.id} is complete", f"sparkwright report {run.id}")
    return run


@dataclass(slots=True)
class _Soaking:
    running: RunningBench
    terms: Soak
    found: Evaluation
    left_out: int = 0
    probed_at: float = field(default=float("-inf"))  # seconds under load
    seen: set[str] = field(default_factory=set)

    async def all(self) -> str:
        """done: the time is up; stopped: the floor was met, or the server is gone for good."""
        self.seen = {one.text for one in self.found.events}
        repeat = 1 + max((level.repeat for level in self.running.run.levels), default=-1)
        while True:
            for plan in self.running.prepared.levels:
                left = self.running.prepared.workload.deadline - self.found.seconds
                if left < _LEAST:
                    if self.terms.probe_every and self.probed_at < self.found.seconds:
                        await self._probe()
                    return "done"
                if not await self._leg(repeat, plan, left):
                    await self._save()
                    return "stopped"
                await self._save()
            repeat += 1

    async def _leg(self, repeat: int, plan: LevelPlan, left: float) -> bool:
        """One level, then what is due. False: it is over."""
        due = self.terms.probe_every and self.found.seconds - self.probed_at >= self.terms.probe_every
        if due:
            await self._probe()
        began = self.running.bench.clock.monotonic()
        plan = replace(plan, rest=min(plan.rest, max(0.0, left - plan.seconds)))
        self.running.screen.level(plan, repeat, 0)
        level, gone = await self._measured(repeat, plan, min(left, plan.seconds or _LEVEL))
        took = self.running.bench.clock.monotonic() - began
        self.found = replace(self.found, seconds=self.found.seconds + took)
        await self._incidents()
        self.running.screen.note(self._told(plan, level))
        if gone:
            self.happened("gone", f"the server stopped answering during {plan.name}: {gone.message}")
            return await self._back()
        if any(one.kind == "floor" for one in self.found.events):
            return False
        if took < _BREATH:
            await self.running.bench.clock.sleep(_BREATH)
        return True

    async def _measured(self, repeat: int, plan: LevelPlan, seconds: float) -> tuple[Level | None, NotReady | None]:
        """None: memory met the floor, or the server is gone."""
        async with self._beside() as low:
            work = asyncio.ensure_future(measure_level(self.running, repeat, plan, seconds))
            try:
                await asyncio.wait({work, low}, return_when=asyncio.FIRST_COMPLETED)
                if not work.done():
                    self.happened("floor", low.result())
                    return None, None
                return work.result(), None
            except NotReady as error:
                return None, error
            finally:
                work.cancel()
                await asyncio.wait({work})

    @contextlib.asynccontextmanager
    async def _beside(self) -> AsyncIterator["asyncio.Task[str]"]:
        """Runs next to a level: clients that leave, and a memory check that ends at the floor."""
        low, leaving = asyncio.ensure_future(self._floor()), asyncio.ensure_future(self._leaving())
        try:
            yield low
        finally:
            await end_task(leaving)
            low.cancel()
            await asyncio.wait({low})

    async def _floor(self) -> str:
        while True:
            await self.running.bench.clock.sleep(_FLOOR_EVERY)
            for node, size in (await self.running.prepared.request.memory()).items():
                if size < self.found.floor:
                    return f"stopped: {gib(size)} available on {node}, below the floor of {gib(self.found.floor)}"

    async def _leaving(self) -> None:
        """Clients that close their connection in the middle of an answer, which the engine must give up."""
        target, dice = self.running.prepared.target, Random(f"{self.running.run.id}/{self.found.seconds}")
        while self.terms.leave_every:
            await self.running.bench.clock.sleep(self.terms.leave_every)
            prompt = written(self.running.texts, 200, dice)
            body = {"model": target.model, "messages": [{"role": "user", "content": prompt}], "max_tokens": 4000}
            url, seconds = f"{target.root}/v1/chat/completions", dice.uniform(*_LEAVES)
            with contextlib.suppress(NotReady):
                await self.running.bench.asker.post(url, json.dumps({**body, "stream": True}), target.key, seconds)

    async def _probe(self) -> None:
        """The quick ones, with other texts each time."""
        self.probed_at = self.found.seconds
        workload, at = self.running.prepared.workload, self.running.bench.clock.now() - self.running.run.began
        seeded = self.running.prepared.with_workload(replace(workload, seed=workload.seed + len(self.found.outcomes)))
        asked = probe_all(seeded, chosen((), True), _LONGEST, _Silent())
        outcomes = [replace(one, at=at) async for one in asked]
        self.found = replace(self.found, outcomes=(*self.found.outcomes, *outcomes))
        for one in outcomes:
            if one.state is ProbeState.FAILED:
                self.running.screen.note(f"FAILED {one.name}: {one.detail}")
        await self._save()

    async def _incidents(self) -> None:
        for at, text in (await self.running.prepared.request.incidents()).items():
            if at >= self.running.run.began and text not in self.seen:
                self.happened("incident", text, at)

    async def _back(self) -> bool:
        """True if the server answers again within the time that a relaunch may take."""
        await self._save()
        target, began = self.running.prepared.target, self.running.bench.clock.monotonic()
        while self.running.bench.clock.monotonic() - began < _AWAY:
            await self.running.bench.clock.sleep(_AGAIN)
            with contextlib.suppress(NotReady):
                if (await self.running.bench.asker.get(f"{target.root}/v1/models", target.key, 10.0)).status == 200:
                    away = self.running.bench.clock.monotonic() - began
                    self.happened("back", f"it answers again after {duration(away)}")
                    return True
        self.happened("gone", f"it did not come back within {duration(_AWAY)}")
        return False

    def happened(self, kind: str, text: str, at: float | None = None) -> None:
        self.seen.add(text)
        event = Event((self.running.bench.clock.now() if at is None else at) - self.running.run.began, kind, text)
        self.found = replace(self.found, events=(*self.found.events, event))
        self.running.screen.note(text)

    async def _save(self) -> None:
        await self.running.bench.runs.set_evaluation(self.running.run.id, self.found)

    def _told(self, plan: LevelPlan, level: Level | None) -> str:
        of = f"{duration(self.found.seconds)} of {duration(self.running.prepared.workload.deadline)}"
        if level is None:
            return f"[{of}] {plan.name}: cut short"
        failed = sum(bool(row.error) and row.kind != "time-up" for row in level.rows)
        last = next((scrape.memory for scrape in reversed(level.scrapes) if scrape.memory), {})
        memory = "".join(f", {gib(size)} available on {node}" for node, size in last.items())
        return f"[{of}] {plan.name}: {len(level.rows)} requests, {failed} failed{memory}"


class _Silent:
    """Implements evaluate.EvaluationScreen."""

    def begins(self, name: str, number: int, of: int) -> None: ...

    def ends(self, outcome: ProbeOutcome) -> None: ...

    def note(self, text: str) -> None: ...
