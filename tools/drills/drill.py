"""One drill: clients at the gateway, a fault, and what became of both, as a row of the table."""

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar

from drills.faults import Mark
from drills.figures import DrillRecord, DrillTarget, FigureRow, figure_row, noticed_at, with_leak
from drills.ground import DrillGround
from drills.traffic import TrafficClient, TrafficLoad
from drills.watch import Sight
from sparkwright.supervisor.core.detect.setting import Patience

AFTER = 4.0
"""Seconds of traffic once all is well again."""


@dataclass(frozen=True, slots=True)
class Drill:
    """limit: seconds until it must have come to rest. meanwhile: what is done once the fault was noticed (it fixes
    something, or harms more), and when the way back can begin by it; rest: seconds that it must stay untouched, for
    drills in which nothing may happen."""

    idle: ClassVar[bool] = False
    name: str
    fault: str
    inject: Callable[[DrillGround], Mark]
    target: DrillTarget = field(default_factory=DrillTarget)
    meanwhile: Callable[[DrillGround], float] | None = None
    limit: float = 90.0
    rest: float = 0.0
    settled: bool = False
    """Only once the engine is no longer new: what is new may be compiling, and is given more time."""
    patience: float = 60.0
    """Seconds until a client takes its request for lost."""
    warm: float = 3.0
    """Seconds of traffic before the fault."""
    leaks: bool = False
    """What is left at the notice counts, too."""
    weighed: bool = False
    """What the supervisor itself takes is measured."""
    load: TrafficLoad = field(default_factory=TrafficLoad)

    @property
    def timed(self) -> bool:
        """The way back is measured against the engine's own start."""
        return self.target.beyond is not None

    async def measure(self, ground: DrillGround) -> tuple[FigureRow, None]:
        return await run(ground, self), None


async def run(ground: DrillGround, drill: Drill) -> FigureRow:
    """Raises TimeoutError when there is no ground to drill on: the deployment does not serve before the fault."""
    client = TrafficClient(replace(ground.gateway, patience=drill.patience))
    tasks = [asyncio.create_task(client.traffic(drill.load)), asyncio.create_task(client.probing())]
    try:
        await _until(lambda: ground.now.phase == "ready", 30, "the deployment to be ready")
        await asyncio.sleep(drill.warm)
        if drill.settled:
            await asyncio.sleep(max(0.0, ground.now.at + Patience().fresh_for * ground.scale - time.time()))
        before = ground.now
        mark = await asyncio.to_thread(drill.inject, ground)
        while ground.sent:
            path, what = ground.sent.pop()
            body = client.body(what) if isinstance(what, TrafficLoad) else {"model": ground.gateway.model, **what}
            client.launch(client.fetch("POST", path, body), client.requests)
        late, restored = await _follow(ground, drill, mark, before)
        await asyncio.sleep(AFTER)
        tasks[0].cancel()
        tasks[1].cancel()
        await client.settle()
    finally:
        for task in tasks:
            task.cancel()
        await client.close()
    seen = DrillRecord(
        mark.at, before, _sights(ground, mark), client.requests, client.probes, ground.start, restored=restored
    )
    made = figure_row(drill.name, drill.fault, drill.target, seen, (*_troubles(ground, seen), *_words(client)))
    made = replace(made, scale=ground.scale, missed=(*late, *made.missed))
    return with_leak(made, ground.memory(), seen) if drill.leaks else made


async def _follow(ground: DrillGround, drill: Drill, mark: Mark, before: Sight) -> tuple[tuple[str, ...], float]:
    """Follows the drill until its target's last phase after detection. Returns the phases waited for in vain."""
    restored = mark.restored
    if not drill.target.sign:
        await asyncio.sleep(drill.rest)
        return (), restored

    def seen() -> DrillRecord:
        return DrillRecord(mark.at, before, _sights(ground, mark))

    try:
        await _until(lambda: noticed(drill.target, seen()) is not None, drill.limit, "it to be noticed")
        if drill.meanwhile is not None:
            restored = await asyncio.to_thread(drill.meanwhile, ground)
        await _until(lambda: has_settled(drill.target, seen()), drill.limit, f"{' or '.join(drill.target.final)}")
    except TimeoutError as late:
        return (str(late),), restored
    return (), restored


def has_settled(target: DrillTarget, seen: DrillRecord) -> bool:
    last = seen.sights[-1] if seen.sights else seen.before
    if last.phase not in target.final:
        return False
    enough = last.relaunches - seen.before.relaunches >= target.relaunches
    return enough and (last.serving or last.phase != "ready")


def noticed(target: DrillTarget, seen: DrillRecord) -> float | None:
    return noticed_at(target.sign, seen)


def _sights(ground: DrillGround, mark: Mark) -> list[Sight]:
    assert ground.watcher
    return ground.watcher.since(mark.at)


def _troubles(ground: DrillGround, seen: DrillRecord) -> tuple[str, ...]:
    """The troubles shown, in the supervisor's words."""
    assert ground.watcher
    kinds = sorted({kind for one in seen.sights for kind in one.troubles} - set(seen.before.troubles))
    return tuple(f"{kind}: {ground.watcher.said.get(kind, '')}" for kind in kinds)


def _words(client: TrafficClient) -> tuple[str, ...]:
    """The texts sent to clients: the first of those that differ by figures alone, and how often."""
    said: dict[str, list[str]] = {}
    for one in client.requests:
        if one.fate != "answered":
            words = f"{one.status or 'no answer'}: {one.said}"
            said.setdefault(re.sub(r"\d+", "", words)[:120], []).append(words)
    return tuple(f"{len(same)} x {same[0]}" for same in list(said.values())[:4])


async def _until(check: Callable[[], bool], seconds: float, what: str) -> None:
    end = time.monotonic() + seconds
    while not check():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {seconds:.0f} s in vain for {what}")
        await asyncio.sleep(0.05)
