"""One drill of an outage: a chat completion every 0.3 s, a fault, `status` sampled, and what is recorded afterwards."""

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar

from cluster.drive import CommandDriver
from drills.figures import DrillRecord, FigureRow, action
from drills.ground import DrillGround
from drills.operator import Operator
from drills.outage import PATIENCE, Expected, Observed, View, missed, outage_view, outages
from drills.traffic import GatewayTarget, TrafficClient, TrafficLoad

EVERY = 0.3
WELL = 6.0
"""Seconds of good answers after which clients are served again."""
CHAT = TrafficLoad(prompt=(5, 10), tokens=(4, 4))


@dataclass
class OutageScene:
    """The scene of a fault. at, restored: when the fault was, and when what it took was there again (epoch seconds).

    missed, notes: what the fault itself found. others: requests of clients besides the prober.
    """

    ground: DrillGround
    client: TrafficClient
    operator: Operator
    at: float = field(default_factory=time.time)
    restored: float = 0.0
    missed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def check(self, true: object, words: str) -> None:
        if not true:
            self.missed.append(words)

    def well(self, seconds: float, since: float = 0.0) -> bool:
        """All that was sent in the last seconds, and after `since`, is answered; what was sent just now need not be."""
        now = time.time()
        recent = [one for one in list(self.client.requests) if one.sent >= now - seconds]
        late = any(now - seconds - PATIENCE < sent < now - 1.5 for sent in list(self.client.waiting))
        return now - seconds >= since and len(recent) > seconds and not late and all(map(_good, recent))

    def until_well(self, seconds: float = WELL, limit: float = 120.0) -> bool:
        since, end = time.time(), time.monotonic() + limit
        while not self.well(seconds, since):
            if time.monotonic() > end:
                return False
            time.sleep(0.1)
        return True

    def second(self) -> CommandDriver:
        """Another operator: a HOME of their own, the same nodes."""
        folder = self.ground.folder / "second"
        folder.mkdir(exist_ok=True)
        drive = self.ground.drive
        return CommandDriver(folder, drive.testbed, env=dict(drive.env), node_env=dict(drive.node_env), supervise=True)


def _good(one: object) -> bool:
    return getattr(one, "fate", "") == "answered"


@dataclass(frozen=True, slots=True)
class OutageDrill:
    """script: does the fault and takes it back. limit: seconds after it until clients must be served again."""

    weighed: ClassVar[bool] = False
    name: str
    fault: str
    script: Callable[[OutageScene], None]
    expected: Expected = field(default_factory=Expected)
    limit: float = 90.0
    idle: bool = False
    """Nothing is deployed before it, and there are no clients."""

    @property
    def timed(self) -> bool:
        return self.expected.away is not None

    async def measure(self, ground: DrillGround) -> tuple[FigureRow, View]:
        return await run(ground, self)


async def run(ground: DrillGround, drill: OutageDrill) -> tuple[FigureRow, View]:
    if drill.idle:
        return await _idle(ground, drill)
    client = TrafficClient(replace(ground.gateway, patience=PATIENCE), reuse=False)
    prober = asyncio.create_task(_probe(client))
    try:
        with Operator(ground.drive) as operator:
            scene = OutageScene(ground, client, operator)
            if not await asyncio.to_thread(scene.until_well, 3.0, 60.0):
                raise TimeoutError("the deployment does not serve before the fault")
            scene.at = time.time()
            await asyncio.to_thread(drill.script, scene)
            await asyncio.to_thread(scene.until_well, WELL, drill.limit)
            end = time.time()
        prober.cancel()
        await client.settle()
    finally:
        prober.cancel()
        await client.close()
    return await asyncio.to_thread(_judged, scene, drill, end)


async def _probe(client: TrafficClient) -> None:
    while True:
        client.launch(client.ask(client.body(CHAT)), client.requests)
        await asyncio.sleep(EVERY)


async def _idle(ground: DrillGround, drill: OutageDrill) -> tuple[FigureRow, View]:
    scene = OutageScene(ground, TrafficClient(GatewayTarget("", "", "")), Operator(ground.drive))
    await asyncio.to_thread(drill.script, scene)
    return _row(scene, drill, "", scene.missed), View(got="; ".join(scene.notes))


def _judged(scene: OutageScene, drill: OutageDrill, end: float) -> tuple[FigureRow, View]:
    ground, since = scene.ground, scene.at - 1.0
    requests = [one for one in scene.client.requests if one.sent >= since]
    log = ground.head.sh(f"cat {ground.home}/log", check=False)
    ground.lines += [f"status at {one.at - scene.at:.1f} s\n{one.text}" for one in scene.operator.samples]
    ground.lines += [
        f"request at {one.sent - scene.at:.1f} s, {one.ended - one.sent:.1f} s: {one.fate} {one.status} {one.said}"
        for one in sorted(requests, key=lambda one: one.sent)
    ]
    seen = Observed(
        scene.at,
        end,
        requests,
        scene.operator.samples,
        [tree for tree in scene.operator.incidents() if tree["opened_at"] >= since - 1.0],
        record=f"{scene.operator.record()}\n{log}",
        start=ground.start,
        restored=scene.restored,
        outages=outages(requests),
    )
    phases = ""
    if ground.watcher and ground.watcher.sights:
        before = ground.watcher.sights[0]
        phases = action(DrillRecord(scene.at, before, ground.watcher.since(scene.at)))
    return _row(scene, drill, phases, [*scene.missed, *missed(drill.expected, seen)]), _with(
        outage_view(seen), scene.notes
    )


def _with(made: View, notes: list[str]) -> View:
    return replace(made, got="; ".join([*notes, made.got])) if notes else made


def _row(scene: OutageScene, drill: OutageDrill, phases: str, found: list[str]) -> FigureRow:
    """notes: each refusal once, but for its figures."""
    refused = [one for one in scene.client.requests if one.status >= 500]
    texts = {re.sub(r"\d+", "", one.said): one.said for one in reversed(refused)}
    made = FigureRow(drill.name, drill.fault, None, None, None, None, phases, missed=tuple(found))
    return replace(made, notes=tuple(reversed(texts.values()))[:6], scale=scene.ground.scale)
