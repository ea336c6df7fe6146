"""The run itself: begun or resumed, level by level, stored as it goes, closed properly whatever happens.

While a level runs, the server's own counters and the nodes' memory are read, too.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from itertools import count, islice
from random import Random

from sparkwright.app.bench.target import PATIENCE, Bench, PreparedBench, Screen, one_line
from sparkwright.app.services import finished
from sparkwright.domain.errors import NotReady, UsageError
from sparkwright.domain.run import Lag, Level, LoadJob, Reads, Row, Run, RunConditions, Scrape, Session
from sparkwright.domain.values import dataclass, replace
from sparkwright.domain.workload import Api, LevelPlan, Pace, Workload
from sparkwright.facts.engine_metrics import figures
from sparkwright.loadgen.prompts import PromptTexts
from sparkwright.loadgen.sessions import job_pace, sessions, split_warmup
from sparkwright.loadgen.slo import Next, Point, next_rate, share_in_slo

STOPPED, DONE = "stopped", "done"
_LEAST = 5.0  # seconds; a level that would have less is not begun
_ROWS, _FLUSH = 64, 1.0  # rows, and seconds, after which what was measured is stored
_QUICK = 10.0
_GRACE = 30.0  # for the client to end once a job's time is up
_PATHS = {Api.CHAT: "/v1/chat/completions", Api.COMPLETIONS: "/v1/completions"}
TIME_UP = "time-up"
_OWN = (TIME_UP, "not-sent")
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class RunningBench:
    """A run that is being measured.

    soak: for hours. Only the ends of each answer are stored, samples are rare, and the clock ends each level.
    """

    prepared: PreparedBench
    screen: Screen
    run: Run
    texts: PromptTexts
    soak: bool = False

    @property
    def bench(self) -> Bench:
        return self.prepared.bench


async def create_run(prepared: PreparedBench) -> Run:
    """Create a run with the first free id; it is not stored yet. One call may measure several endpoints."""
    bench = prepared.bench
    now = bench.clock.now()
    day = time.strftime("%Y%m%d", time.gmtime(now))
    taken = {one.id for one in await bench.runs.list()}
    dice = Random(bench.machine.nonce)
    ids = (f"r-{day}-{dice.getrandbits(16):04x}" for _ in count())
    free = next(name for name in ids if name not in taken)
    request = prepared.request
    return Run(free, now, request.workload, prepared.conditions, tags=request.tags, note=request.note)


async def measure(running: RunningBench) -> Run:
    """The run as the store has it at the end. What is complete in it already is not measured again.

    Raises NotReady when nothing answers any more. However it ends, what was measured is stored and can be resumed.
    """
    bench, run, state = running.bench, running.run, STOPPED
    try:
        search = running.prepared.workload.search
        whole = await (_search_rates(running) if search else _all_levels(running))
        state = DONE if whole else STOPPED
    except asyncio.CancelledError:
        running.screen.note(f"what was measured is kept; continue with: sparkwright bench --resume {run.id}")
        raise
    finally:
        await finished(bench.runs.end(run.id, state, bench.clock.now()))
    return await bench.runs.load(run.id)


def repeated_levels(workload: Workload, levels: Sequence[LevelPlan]) -> Iterator[tuple[int, LevelPlan]]:
    """(repeat, level): all levels once, then again, so that a slow drift shows as spread and not as a difference."""
    for repeat in range(workload.repeats):
        for plan in levels:
            yield repeat, plan


async def _all_levels(running: RunningBench) -> bool:
    """True if all were measured within the workload's time."""
    workload = running.prepared.workload
    done = {(level.plan.name, level.repeat) for level in running.run.levels if level.complete}
    ends = running.bench.clock.monotonic() + workload.deadline
    whole = True
    for repeat, plan in repeated_levels(workload, running.prepared.levels):
        if (plan.name, repeat) in done:
            continue
        level = await _within(running, repeat, plan, ends)
        if level is None:
            return False
        whole = whole and level.complete
    return whole


async def _search_rates(running: RunningBench) -> bool:
    """Rates one after the other, each decided by all its repeats. True if the search ended within its time."""
    search, slo, points = running.prepared.workload.search, running.prepared.workload.slo, list[Point]()
    assert search and slo
    ends = running.bench.clock.monotonic() + running.prepared.workload.deadline
    while isinstance(wanted := next_rate(search, points), Next):
        rows = await _rate(running, at_rate(running.prepared.levels[0], wanted.rate), ends)
        if rows is None:
            return False
        points.append((wanted.rate, (share_in_slo(rows, slo, True) or 0.0) >= slo.share))
    found = f"{wanted.rate:.3g} requests/s meet the SLO" if wanted.rate else "no rate meets the SLO"
    running.screen.note(f"search: {found}; {wanted.why}")
    return True


async def _rate(running: RunningBench, plan: LevelPlan, ends: float) -> list[Row] | None:
    """Its counted requests, of all repeats; None when time was up before."""
    known = {(level.plan.name, level.repeat): level for level in running.run.levels if level.complete}
    rows: list[Row] = []
    for repeat in range(running.prepared.workload.repeats):
        level = known.get((plan.name, repeat)) or await _within(running, repeat, plan, ends)
        if level is None:
            return None
        rows += [row for row in level.rows if row.counted and not row.warmup]
    return rows


def at_rate(plan: LevelPlan, rate: float) -> LevelPlan:
    """The search's level at one rate."""
    return replace(plan, name=f"{rate:.3g} requests/s", pace=replace(plan.pace, rate=rate))


async def _within(running: RunningBench, repeat: int, plan: LevelPlan, ends: float) -> Level | None:
    """None when the time that is left is too short to begin."""
    left = ends - running.bench.clock.monotonic()
    if left < _LEAST:
        limit = f"{running.prepared.workload.deadline:.0f} s"
        running.screen.note(f"time is up after {limit}: {plan.name} and the rest are left out")
        return None
    return await _measure_patiently(running, repeat, plan, left)


async def _measure_patiently(running: RunningBench, repeat: int, plan: LevelPlan, left: float) -> Level:
    """Measures a level; once more where the server refused all with a Retry-After. Raises NotReady when it is gone."""
    seconds = min(left, plan.seconds or left)
    level = await _shown(running, repeat, plan, seconds)
    pause = sent_away(level)
    if pause is not None and pause <= min(PATIENCE, seconds):
        running.screen.note(f"{plan.name}: the server sent all requests away for {pause:.0f} s; once more after that")
        await running.bench.clock.sleep(pause)
        level = await _shown(running, repeat, plan, seconds)
    return level


async def _shown(running: RunningBench, repeat: int, plan: LevelPlan, seconds: float) -> Level:
    running.screen.level(plan, repeat, running.prepared.workload.repeats)
    level = await measure_level(running, repeat, plan, seconds)
    for doubt in level.doubts[len(running.texts.doubts) :]:
        running.screen.note(f"{plan.name}: {doubt}")
    running.screen.done()
    return level


async def measure_level(running: RunningBench, repeat: int, plan: LevelPlan, seconds: float) -> Level:
    """Measures one repeat of a level, `seconds` at most, and stores it as it goes.

    A failing server shows in its rows and doubts. Raises NotReady, with all of it kept, when it is gone for good.
    """
    bench, prepared = running.bench, running.prepared
    before, planned = split_warmup(sessions(plan, prepared.workload, repeat, running.texts))
    doubts = () if running.soak else running.texts.doubts
    level = Level(plan, repeat, bench.clock.now(), doubts=doubts, complete=False)
    key = await bench.runs.add_level(running.run.id, level)
    pace, ends = job_pace(plan), bench.clock.monotonic() + seconds
    rows: list[Row] = []
    if before:
        # What warms up is sent no harder than what is measured
        await _collect(running, key, _job(prepared, before, Pace(concurrency=max(1, pace.concurrency)), seconds), rows)
    async with watched(prepared, _SELDOM if running.soak else _EVERY) as scrapes:
        left = max(1.0, ends - bench.clock.monotonic())
        whole, lag = await _collect(running, key, _job(prepared, planned, pace, left), rows)
        if plan.rest:
            await bench.clock.sleep(plan.rest)
    level = replace(level, rows=tuple(rows), lag=lag, scrapes=tuple(scrapes))
    lost = await _lost(prepared) if not whole or unanswered(level) else None
    requests = sum(len(session.turns) for session in planned)
    ended_by_plan = running.soak or seconds == plan.seconds
    level = _ended(level, requests, whole and not lost, ended_by_plan)
    await bench.runs.end_level(key, level)
    if lost:
        what = f"{prepared.target.name} no longer answers (level {plan.name}): {lost.message}"
        hint = f"what was measured is kept; when it serves again: sparkwright bench --resume {running.run.id}"
        raise NotReady(what, hint) from lost
    return level


def _job(prepared: PreparedBench, sessions: Sequence[Session], pace: Pace, seconds: float) -> LoadJob:
    url = prepared.target.root + _PATHS[prepared.workload.api]
    return LoadJob(url, tuple(sessions), pace, first_byte=seconds, whole=seconds)


async def _collect(running: RunningBench, key: int, job: LoadJob, rows: list[Row]) -> tuple[bool, Lag]:
    """Runs the job, adds its rows to `rows`, and stores them under the level's key as they come.

    True if it came to its end: the client did not hang, and the server answered to the last. A server that sends not a
    single byte of an answer to so many requests in a row counts as gone.
    """
    bench, whole, lag = running.bench, True, Lag()
    allowed = max(8, 2 * job.pace.concurrency)
    fresh, stored_at = list[Row](), 0.0
    items = bench.client.run(job, running.prepared.target.key)
    try:
        async with asyncio.timeout(job.whole + _GRACE), aclosing(items) as stream:  # type: ignore[type-var]
            async for item in stream:
                if isinstance(item, Lag):
                    lag = item
                    running.screen.lag(item)
                    continue
                row = replace(item, reads=condensed(item.reads)) if running.soak else item
                rows.append(row)
                fresh.append(row)
                running.screen.row(row)
                now = bench.clock.monotonic()
                if len(fresh) >= _ROWS or now - stored_at >= _FLUSH:
                    await bench.runs.add_rows(key, fresh)
                    fresh, stored_at = [], now
                if len(rows) >= allowed and all(_is_silent(row) for row in islice(reversed(rows), allowed)):
                    whole = False
                    break
    except TimeoutError:
        whole = False
    if fresh:
        await bench.runs.add_rows(key, fresh)
    return whole, lag


def _is_silent(row: Row) -> bool:
    """True if not a single byte of an answer came."""
    return row.status == 0 and row.headers is None and row.kind not in _OWN


def condensed(reads: Reads) -> Reads:
    """The first read and the rest as one: time per token stays as it was, gaps between tokens are gone."""
    if len(reads.at) < 3:
        return reads
    return Reads((reads.at[0], reads.at[-1]), (reads.tokens[0], sum(reads.tokens[1:])), exact=False)


async def _lost(prepared: PreparedBench) -> NotReady | None:
    """The reason why the server does not answer; None if it answers, whatever the status."""
    try:
        await prepared.bench.asker.get(f"{prepared.target.root}/v1/models", prepared.target.key, _QUICK)
    except NotReady as error:
        return error
    return None


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
    return [f"{count} of {len(rows)} requests: {kind}: {one_line(words, _SHOWN)}"]


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


# The server's counters and the nodes' memory

_FIRST, _EVERY, _SELDOM, _MEMORY_EVERY = 0.1, 1.0, 5.0, 3.0  # seconds; a short level is looked at more often
_SECONDS = 5.0


@asynccontextmanager
async def watched(prepared: PreparedBench, every: float = _EVERY) -> AsyncIterator[list[Scrape]]:
    """Fills the list while it is open; the first and the last are taken before and after, as far as it answers."""
    seen: list[Scrape] = []
    clock = prepared.bench.clock
    began = clock.monotonic()

    async def take(memory: bool) -> None:
        nodes = await prepared.request.memory() if memory else {}
        counted = await _figures(prepared)
        if counted or nodes:
            seen.append(Scrape(clock.monotonic() - began, counted, nodes))

    async def go_on() -> None:
        last, pause = 0.0, _FIRST
        while True:
            await clock.sleep(pause)
            pause = min(1.5 * pause, every)
            now = clock.monotonic()
            due = now - last >= _MEMORY_EVERY
            last = now if due else last
            await take(due)

    await take(memory=True)
    began = clock.monotonic()
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


async def _figures(prepared: PreparedBench) -> Mapping[str, float]:
    if not prepared.probed.metrics:
        return {}
    try:
        engine = prepared.target.engine
        reply = await prepared.bench.asker.get(engine.root + prepared.probed.metrics, engine.key, _SECONDS)
    except NotReady:
        return {}
    return figures(reply.body, prepared.probed.names) if reply.status == 200 else {}


# Resuming a run


def same_server(run: Run, now: RunConditions) -> None:
    """A run mixes no two servers. Raises UsageError."""
    before = run.conditions
    pairs = {name: (getattr(before, name), getattr(now, name)) for name in _SAME}
    changed = [f"{name} {old!r} -> {new!r}" for name, (old, new) in pairs.items() if old != new]
    if changed:
        hint = "start a new run and `sparkwright compare` both"
        raise UsageError(f"cannot resume {run.id}: the server changed ({'; '.join(changed)})", hint)


_SAME = (
    *("model", "engine", "engine_version", "recipe_hash", "image"),
    *("max_context", "tokenizer", "simulated", "front_door"),
)


def resumed(run: Run) -> Run:
    """The run as it is resumed. Raises UsageError when nothing is missing."""
    if run.imported:
        raise UsageError(f"{run.id} was imported from {run.imported}: its requests were not sent by sparkwright")
    if run.evaluation and run.evaluation.kind == "soak":
        raise UsageError(f"{run.id} is a soak", f"sparkwright soak --resume {run.id}")
    if run.evaluation:
        raise UsageError(f"{run.id} is an evaluation: it is asked again as a whole", "sparkwright eval --help")
    if run.state == DONE:
        raise UsageError(f"{run.id} is complete", f"sparkwright report {run.id}")
    return replace(run, state="running")
