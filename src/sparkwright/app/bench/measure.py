"""The run itself: begun or resumed, stored as it goes, closed properly whatever happens."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from itertools import count
from random import Random

from sparkwright.app.bench.levels import LevelStep, measured, sent_away
from sparkwright.app.bench.target import PATIENCE, Bench, PreparedBench, Screen
from sparkwright.app.services import finished
from sparkwright.domain.errors import UsageError
from sparkwright.domain.run import Level, Row, Run, RunConditions
from sparkwright.domain.values import dataclass, replace
from sparkwright.domain.workload import LevelPlan, Workload
from sparkwright.loadgen.prompts import PromptTexts
from sparkwright.loadgen.slo import Next, Point, next_rate, share_in_slo
from sparkwright.loadgen.workloads import sessions


def repeated_levels(workload: Workload, levels: Sequence[LevelPlan]) -> Iterator[tuple[int, LevelPlan]]:
    """(repeat, level): all levels once, then again, so that a slow drift shows as spread and not as a difference."""
    for repeat in range(workload.repeats):
        for plan in levels:
            yield repeat, plan


_LEAST = 5.0  # seconds; a level that would have less is not begun
STOPPED, DONE = "stopped", "done"


async def create_run(bench: Bench, prepared: PreparedBench) -> Run:
    """A new run, not yet kept. Of its id the first free one is taken: one call may measure several endpoints."""
    now = bench.clock.now()
    day = time.strftime("%Y%m%d", time.gmtime(now))
    taken = {one.id for one in await bench.runs.list()}
    dice = Random(bench.machine.nonce)
    ids = (f"r-{day}-{dice.getrandbits(16):04x}" for _ in count())
    free = next(name for name in ids if name not in taken)
    request = prepared.request
    return Run(free, now, request.workload, prepared.conditions, tags=request.tags, note=request.note)


async def measure(bench: Bench, prepared: PreparedBench, screen: Screen, run: Run, texts: PromptTexts) -> Run:
    """The run as the store has it at the end. What is complete in it already is not measured again.

    Raises NotReady when nothing answers any more. However it ends, what was measured is stored and can be resumed.
    """
    state = STOPPED
    try:
        whole = await _all(_Going(bench, prepared, screen, run, texts))
        state = DONE if whole else STOPPED
    except asyncio.CancelledError:
        screen.note(f"what was measured is kept; continue with: sparkwright bench --resume {run.id}")
        raise
    finally:
        await finished(bench.runs.end(run.id, state, bench.clock.now()))
    return await bench.runs.load(run.id)


@dataclass(frozen=True, slots=True)
class _Going:
    bench: Bench
    prepared: PreparedBench
    screen: Screen
    run: Run
    texts: PromptTexts


async def _all(going: _Going) -> bool:
    """Measures all levels. True if all were measured within the workload's time."""
    workload = going.prepared.workload
    done = {(level.plan.name, level.repeat) for level in going.run.levels if level.complete}
    ends = going.bench.clock.monotonic() + workload.deadline
    if workload.search:
        # Rates one after the other, each decided by all its repeats
        search, slo, points = going.prepared.workload.search, going.prepared.workload.slo, list[Point]()
        assert search and slo
        while isinstance(wanted := next_rate(search, points), Next):
            rows = await _rate(going, at_rate(going.prepared.levels[0], wanted.rate), ends)
            if rows is None:
                return False
            points.append((wanted.rate, (share_in_slo(rows, slo, True) or 0.0) >= slo.share))
        found = f"{wanted.rate:.3g} requests/s meet the SLO" if wanted.rate else "no rate meets the SLO"
        going.screen.note(f"search: {found}; {wanted.why}")
        return True
    whole = True
    for repeat, plan in repeated_levels(workload, going.prepared.levels):
        if (plan.name, repeat) in done:
            continue
        level = await _within(going, repeat, plan, ends)
        if level is None:
            return False
        whole = whole and level.complete
    return whole


async def _rate(going: _Going, plan: LevelPlan, ends: float) -> list[Row] | None:
    """Its counted requests, of all repeats; None when time was up before."""
    known = {(level.plan.name, level.repeat): level for level in going.run.levels if level.complete}
    rows: list[Row] = []
    for repeat in range(going.prepared.workload.repeats):
        level = known.get((plan.name, repeat)) or await _within(going, repeat, plan, ends)
        if level is None:
            return None
        rows += [row for row in level.rows if row.counted and not row.warmup]
    return rows


def at_rate(plan: LevelPlan, rate: float) -> LevelPlan:
    """The search's level at one rate."""
    return replace(plan, name=f"{rate:.3g} requests/s", pace=replace(plan.pace, rate=rate))


async def _within(going: _Going, repeat: int, plan: LevelPlan, ends: float) -> Level | None:
    """None when the time that is left is too short to begin."""
    left = ends - going.bench.clock.monotonic()
    if left < _LEAST:
        limit = f"{going.prepared.workload.deadline:.0f} s"
        going.screen.note(f"time is up after {limit}: {plan.name} and the rest are left out")
        return None
    return await _one(going, repeat, plan, left)


async def _one(going: _Going, repeat: int, plan: LevelPlan, left: float) -> Level:
    """Measures a level; once more where the server refused all with a Retry-After. Raises NotReady when it is gone."""
    made, seconds = sessions(plan, going.prepared.workload, repeat, going.texts), min(left, plan.seconds or left)
    step = LevelStep(going.run.id, plan, repeat, made, seconds, seconds == plan.seconds, going.texts.doubts)
    level = await _shown(going, step)
    pause = sent_away(level)
    if pause is not None and pause <= min(PATIENCE, seconds):
        going.screen.note(f"{plan.name}: the server sent all requests away for {pause:.0f} s; once more after that")
        await going.bench.clock.sleep(pause)
        level = await _shown(going, step)
    return level


async def _shown(going: _Going, step: LevelStep) -> Level:
    going.screen.level(step.plan, step.repeat, going.prepared.workload.repeats)
    level = await measured(going.bench, going.prepared, going.screen, step)
    for doubt in level.doubts[len(step.doubts) :]:
        going.screen.note(f"{step.plan.name}: {doubt}")
    going.screen.done()
    return level


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
