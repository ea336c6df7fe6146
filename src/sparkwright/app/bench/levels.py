"""The server's own counters and the nodes' memory before, during and after each level."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress

from sparkwright.app.bench.target import Bench, PreparedBench, Screen, one_line
from sparkwright.domain.errors import NotReady
from sparkwright.domain.run import Lag, Level, LoadJob, Reads, Row, Scrape, Session
from sparkwright.domain.values import dataclass, field, replace
from sparkwright.domain.workload import Api, LevelPlan, Pace
from sparkwright.facts.engine_metrics import figures
from sparkwright.loadgen.workloads import job_pace, split_warmup

_FIRST, _EVERY, _SELDOM, _MEMORY_EVERY = 0.1, 1.0, 5.0, 3.0  # seconds; a short level is looked at more often
_SECONDS = 5.0


@asynccontextmanager
async def watched(bench: Bench, prepared: PreparedBench, every: float = _EVERY) -> AsyncIterator[list[Scrape]]:
    """Fills the list while it is open; the first and the last are taken before and after, as far as it answers."""
    seen: list[Scrape] = []
    began = bench.clock.monotonic()

    async def take(memory: bool) -> None:
        nodes = await prepared.request.memory() if memory else {}
        counted = await _figures(bench, prepared)
        if counted or nodes:
            seen.append(Scrape(bench.clock.monotonic() - began, counted, nodes))

    async def go_on() -> None:
        last, pause = 0.0, _FIRST
        while True:
            await bench.clock.sleep(pause)
            pause = min(1.5 * pause, every)
            now = bench.clock.monotonic()
            due = now - last >= _MEMORY_EVERY
            last = now if due else last
            await take(due)

    await take(memory=True)
    began = bench.clock.monotonic()
    seen[:] = [Scrape(0.0, one.figures, one.memory) for one in seen]
    going = asyncio.ensure_future(go_on())
    try:
        yield seen
        await end_task(going)
        await take(memory=True)
    finally:
        await end_task(going)


async def end_task(task: asyncio.Task[None]) -> None:
    """A cancellation of the caller is not taken for the task's own."""
    task.cancel()
    await asyncio.wait({task})
    with suppress(asyncio.CancelledError):
        task.result()


async def _figures(bench: Bench, prepared: PreparedBench) -> Mapping[str, float]:
    if not prepared.probed.metrics:
        return {}
    try:
        engine = prepared.target.engine
        reply = await bench.asker.get(engine.root + prepared.probed.metrics, engine.key, _SECONDS)
    except NotReady:
        return {}
    return figures(reply.body, prepared.probed.names) if reply.status == 200 else {}


_ROWS, _FLUSH = 64, 1.0
_QUICK = 10.0
_GRACE = 30.0  # for the client to end once a job's time is up
_PATHS = {Api.CHAT: "/v1/chat/completions", Api.COMPLETIONS: "/v1/completions"}
TIME_UP = "time-up"
_OWN = (TIME_UP, "not-sent")
_SAID = 200


@dataclass(slots=True)
class _Heard:
    """The state of a repeat. key: the level's key in the store.

    allowed: requests in a row without a single byte of an answer, after which nothing counts as answering any more.
    """

    bench: Bench
    screen: Screen
    key: int
    allowed: int
    light: bool = False
    silent: int = 0
    rows: list[Row] = field(default_factory=list)
    lag: Lag = field(default_factory=Lag)
    kept: int = 0
    kept_at: float = 0.0

    async def take(self, item: Row | Lag) -> None:
        if isinstance(item, Lag):
            self.lag = item
            self.screen.lag(item)
            return
        item = replace(item, reads=condensed(item.reads)) if self.light else item
        self.rows.append(item)
        silent = item.status == 0 and item.headers is None and item.kind not in _OWN
        self.silent = self.silent + 1 if silent else 0
        self.screen.row(item)
        now = self.bench.clock.monotonic()
        if len(self.rows) - self.kept >= _ROWS or now - self.kept_at >= _FLUSH:
            await self.flush()
            self.kept_at = now

    async def flush(self) -> None:
        fresh, self.kept = self.rows[self.kept :], len(self.rows)
        if fresh:
            await self.bench.runs.add_rows(self.key, fresh)


@dataclass(frozen=True, slots=True)
class LevelStep:
    """One repeat of one level of a run. seconds: how long it may last; planned: by the level itself.

    doubts: about its prompts. light: only the ends of each answer are stored, and samples are rare: for hours.
    """

    run: str
    plan: LevelPlan
    repeat: int
    sessions: tuple[Session, ...]
    seconds: float
    planned: bool = False
    doubts: tuple[str, ...] = ()
    light: bool = False


async def measured(bench: Bench, prepared: PreparedBench, screen: Screen, step: LevelStep) -> Level:
    """Measures one repeat and stores it as it goes. A failing server shows in its rows and doubts.

    Raises NotReady, with all of it kept, when the server is gone for good.
    """
    level = Level(step.plan, step.repeat, bench.clock.now(), doubts=step.doubts, complete=False)
    key = await bench.runs.add_level(step.run, level)
    pace = job_pace(step.plan)
    heard = _Heard(bench, screen, key, max(8, 2 * pace.concurrency), step.light)
    before, sessions = split_warmup(step.sessions)
    ends = bench.clock.monotonic() + step.seconds
    if before:
        # What warms up is sent no harder than what is measured
        await _run(heard, _job(prepared, before, Pace(concurrency=max(1, pace.concurrency)), step.seconds), prepared)
    async with watched(bench, prepared, _SELDOM if step.light else _EVERY) as scrapes:
        left = max(1.0, ends - bench.clock.monotonic())
        whole = await _run(heard, _job(prepared, sessions, pace, left), prepared)
        if step.plan.rest:
            await bench.clock.sleep(step.plan.rest)
    await heard.flush()
    level = replace(level, rows=tuple(heard.rows), lag=heard.lag, scrapes=tuple(scrapes))
    lost = await _lost(bench, prepared) if not whole or unanswered(level) else None
    planned = sum(len(session.turns) for session in sessions)
    level = _ended(level, planned, whole and not lost, step.planned)
    await bench.runs.end_level(key, level)
    if lost:
        what = f"{prepared.target.name} no longer answers (level {step.plan.name}): {lost.message}"
        hint = f"what was measured is kept; when it serves again: sparkwright bench --resume {step.run}"
        raise NotReady(what, hint) from lost
    return level


def condensed(reads: Reads) -> Reads:
    """The first read and the rest as one: time per token stays as it was, gaps between tokens are gone."""
    if len(reads.at) < 3:
        return reads
    return Reads((reads.at[0], reads.at[-1]), (reads.tokens[0], sum(reads.tokens[1:])), exact=False)


async def _lost(bench: Bench, prepared: PreparedBench) -> NotReady | None:
    """The reason why the server does not answer; None if it answers, whatever the status."""
    try:
        await bench.asker.get(f"{prepared.target.root}/v1/models", prepared.target.key, _QUICK)
    except NotReady as error:
        return error
    return None


def _job(prepared: PreparedBench, sessions: Sequence[Session], pace: Pace, seconds: float) -> LoadJob:
    url = prepared.target.root + _PATHS[prepared.workload.api]
    return LoadJob(url, tuple(sessions), pace, first_byte=seconds, whole=seconds)


async def _run(heard: _Heard, job: LoadJob, prepared: PreparedBench) -> bool:
    """Runs the job. True if it came to its end: the client did not hang, and the server answered to the last."""
    items = heard.bench.client.run(job, prepared.target.key)
    try:
        async with asyncio.timeout(job.whole + _GRACE), aclosing(items) as stream:  # type: ignore[type-var]
            async for item in stream:
                await heard.take(item)
                if heard.silent >= heard.allowed:
                    return False
    except TimeoutError:
        return False
    return True


def _ended(level: Level, planned: int, whole: bool, by_plan: bool) -> Level:
    """The finished level with its doubts. by_plan: a level that its own clock ends is complete."""
    rows = [row for row in level.rows if not row.warmup]
    cut = any(row.kind == TIME_UP for row in rows)
    # What a failed turn takes with it is never sent; only what the clock has cut off is missing.
    missing = cut or (len(rows) < planned and not any(row.error for row in rows))
    doubts = [*level.doubts, *_time(rows, planned, missing), *_failures(rows)]
    seconds = max((row.sent + (row.end or 0.0) for row in rows), default=0.0)
    complete = whole and not _refused(rows) and (by_plan or not missing)
    return replace(level, seconds=seconds, complete=complete, doubts=tuple(doubts))


def _time(rows: Sequence[Row], planned: int, missing: bool) -> list[str]:
    done = sum(row.kind not in _OWN for row in rows)
    return [f"time was up: {done} of {planned} requests had ended"] if missing else []


def _failures(rows: Sequence[Row]) -> list[str]:
    """The most frequent failure, quoted from the server; the count is with the figures."""
    failed = [row for row in rows if row.error and row.kind not in _OWN]
    if not failed:
        return []
    kind, count = Counter(row.kind for row in failed).most_common(1)[0]
    words = next(row.error for row in failed if row.kind == kind)
    return [f"{count} of {len(rows)} requests: {kind}: {one_line(words, _SAID)}"]


def unanswered(level: Level) -> bool:
    """True if a request got no answer at all, or none was sent: the caller should then check that the server lives."""
    rows = [row for row in level.rows if row.kind not in _OWN]
    return not rows or any(row.status == 0 for row in rows)


def sent_away(level: Level) -> float | None:
    """Seconds to wait where all were sent away with a time to come again."""
    rows = [row for row in level.rows if not row.warmup]
    pauses = [row.retry_after for row in rows if row.retry_after is not None]
    return max(pauses) if _refused(rows) and len(pauses) == len(rows) else None


def _refused(rows: Sequence[Row]) -> bool:
    """True if all requests were refused as too early: nothing was measured then."""
    return bool(rows) and all(row.status in (429, 503) for row in rows)
